import { expect, test } from '@jest/globals'
import { toText } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { lookedAt } from '../../lib/analysis.ts'
import { analyze } from '../../lib/index.ts'
import { reportHtml } from '../../lib/report.ts'
import { type MadeCall, madeRun } from './findings/made-run.ts'

/** Whether TPOT changes with the context: one field, which all commands print. */

const SHOWN = { by: ['op'], top: 9, sort: 'wall', calls: false, experts: false, isPublic: false } as const
const OP = 'FLASH_ATTN_EXT'
const PROMPT: MadeCall = { phase: 'prefill', tokens: 16, steps: [{ name: 'kqv_out-0', op: OP, ns: [900_000] }] }

const scatter = (i: number) => ((i * 7919) % 1000) * 300

test.each<[name: string, isClear: boolean, count: number, nsOf: (i: number) => number]>([
  ['grows', true, 60, (i) => 200_000 + 4000 * i],
  ['falls', true, 60, (i) => 500_000 - 4000 * i],
  ['falls steeply in a few calls', false, 9, (i) => 500_000 - 40_000 * i],
  ['scatters more than it grows', false, 60, (i) => 200_000 + 200 * i + scatter(i)],
])('stats, why and the report agree: it %s', async (_, isClear, count, nsOf) => {
  const steps = (i: number) => [{ name: 'kqv_out-0', op: OP, ns: [nsOf(i)] }]
  const decodes = Array.from({ length: count }, (_, i): MadeCall => ({ phase: 'decode', steps: steps(i) }))
  const analysis = await analyze(madeRun({ calls: [PROMPT, ...decodes] }), { series: ['calls'] })
  expect(analysis.calls.slope!.is_clear).toBe(isClear)
  const [why] = lookedAt(analysis).find(({ rule }) => rule === 'context-growth')!.figures
  const page = reportHtml(analysis)
  const texts = [toText(sectionsOf(analysis, SHOWN), 200).join('\n'), why!.figure, page]
  expect(texts.map((text) => /TPOT does not clearly change/.test(text))).toEqual(texts.map(() => !isClear))
  expect(page.includes('The line grows by')).toBe(isClear)
  if (!isClear) expect(why!.finding).toBeUndefined()
})

test('growth is found, at a lower confidence, where single calls differ by more than it', async () => {
  const fitted = async (scatterNs: number) => {
    const nsOf = (i: number) => 200_000 + 2000 * i + (i % 7 === 0 ? scatterNs : 0)
    const steps = (i: number) => [{ name: 'kqv_out-0', op: OP, ns: [nsOf(i)] }]
    const decodes = Array.from({ length: 400 }, (_, i): MadeCall => ({ phase: 'decode', steps: steps(i) }))
    const { calls, findings, verdict } = await analyze(madeRun({ calls: [PROMPT, ...decodes] }))
    const { is_clear, tpot } = calls.slope!
    const found = findings.map(({ rule, confidence }) => [rule, confidence])
    return { is_clear, fit: tpot.r_squared!, found, cause: verdict.cause?.rule }
  }
  const [clear, weak] = [await fitted(100_000), await fitted(2_000_000)]
  expect(clear).toMatchObject({ is_clear: true, found: [['context-growth', 'high']], cause: 'context-growth' })
  expect(weak).toMatchObject({ is_clear: true, found: [['context-growth', 'medium']], cause: 'context-growth' })
  expect(clear.fit).toBeGreaterThan(0.5)
  expect(weak.fit).toBeLessThan(0.2)
})
