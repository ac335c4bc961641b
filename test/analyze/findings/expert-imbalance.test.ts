import { expect, test } from '@jest/globals'
import { lookedAt } from '../../../lib/analysis.ts'
import { analyze } from '../../../lib/index.ts'
import { EXPERT_BYTES, logOf, type MadeCall } from '../experts/made-log.ts'
import { expectChecks } from './made-run.ts'

/** Decodes of two layers with 6 experts, of which a token has 2. */
const decodes = (count: number, idsOf: (i: number, layer: number) => readonly number[]): MadeCall[] =>
  Array.from({ length: count }, (_, i) => ({
    phase: 'decode',
    layers: [0, 1].map((layer) => ({ ids: [idsOf(i, layer)], ns: 1000, faults: 0 })),
  }))

const found = async (calls: readonly MadeCall[]) => {
  const log = logOf(calls)
  const analysis = await analyze(log)
  await expectChecks(analysis, log)
  return analysis.findings.filter(({ rule }) => rule === 'expert-imbalance')
}

const figuresOf = async (calls: readonly MadeCall[]) => {
  const analysis = await analyze(logOf(calls))
  return lookedAt(analysis)
    .filter(({ rule }) => rule === 'expert-imbalance')
    .flatMap(({ figures }) => figures.map(({ figure }) => figure))
}

test('two of six experts take most tokens', async () => {
  // Layer 0: 0 and 1 of 9 of 10 tokens; layer 1: 2 and 3 of 8 of 10.
  const calls = decodes(100, (i, layer) => (i % 10 < 9 - layer ? [2 * layer, 2 * layer + 1] : [4, 2 - 2 * layer]))
  const [finding, ...others] = await found([{ ...calls[0]!, phase: 'prefill' }, ...calls])
  expect(others).toEqual([])
  expect(finding!.sentence).toBe(
    '2 of 6 experts of a layer take 85 % of the choices of decode (an even choice: 33 %), 4 of 12 are never chosen',
  )
  expect(finding).toMatchObject({ time_ns: 0, confidence: 'high' })
  expect(finding!.evidence).toMatchObject({
    ...{ phase: 'decode', top_share: expect.closeTo(0.85, 9), even_share: expect.closeTo(1 / 3, 9), unused_experts: 4 },
    ...{ layer: 0, expert: 0, activations: 90, tokens: 100, unused_weight_bytes: 4 * EXPERT_BYTES },
  })
})

test('no finding in an even choice, nor in one of few experts that have twice less', async () => {
  const even = decodes(100, (i) => [i % 6, (i + 1) % 6])
  expect(await found(even)).toEqual([])
  expect(await figuresOf(even)).toEqual([
    expect.stringMatching(
      /^2 of 6 experts of a layer take 3\d % of the choices of decode \(an even choice: 33 %\), 0 of 12/,
    ),
  ])
  // 60 %: more than half, but not twice 33 %.
  const uneven = decodes(100, (i) => (i % 10 < 5 ? [0, 1] : [2 + (i % 4), (3 + (i % 4)) % 6]))
  expect(await found(uneven)).toEqual([])
})

test('no finding where each expert was chosen a few times only', async () => {
  const calls = decodes(40, () => [0, 1])
  expect(await found(calls)).toEqual([])
  expect(await figuresOf(calls)).toEqual(['decode chooses an expert 13 times on average: too few to judge the balance'])
})
