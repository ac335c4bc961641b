import { describe, expect, test } from '@jest/globals'
import { toText } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { describeLosses } from '../../bin/summary.ts'
import { findings, lookedAt } from '../../lib/analysis.ts'
import { type Analysis, analyze, type ConvertOptions, convert, type Input, type Summary } from '../../lib/index.ts'
import { ISSUES, type IssueCode } from '../../lib/model/issues.ts'
import { reportHtml } from '../../lib/report.ts'
import { inParts, someOf } from '../long.ts'
import { PROVOKED, type Provocation } from '../model/provoked.ts'
import { PROVOKED_BY_KERNEL } from '../model/provoked-kernel.ts'
import { SHOWN } from './shown.ts'

/** Each kind of issue, provoked: convert, stats, why and the report agree whether it is a loss. */

const provoked = Object.entries({ ...PROVOKED, ...PROVOKED_BY_KERNEL }) as [IssueCode, () => Provocation][]

const isOne = (one: Provocation): one is Input => !Array.isArray(one)
const partsOf = (of: Provocation): readonly [readonly Input[], ConvertOptions?] => (isOne(of) ? [[of]] : of)

async function summariesOf([inputs, options]: ReturnType<typeof partsOf>): Promise<Summary[]> {
  const pieces = convert([...inputs], { ...options, findings: true })
  let next = await pieces.next()
  while (!next.done) next = await pieces.next()
  return next.value
}

/** Undefined for what has nothing to analyse, or is refused with a message. */
const analysed = ([inputs, options]: ReturnType<typeof partsOf>): Promise<Analysis | undefined> =>
  analyze([...inputs], { ...(options?.from && { from: options.from }) }).catch((error: unknown) => {
    if (error instanceof Error && /^(?:FormatError|UsageError)$/.test(error.name)) return undefined
    throw error
  })

describe('an issue and a loss are the same in all commands', () => {
  inParts(test).each(someOf(provoked, 2))('%s', async (code, provocation) => {
    const summaries = await summariesOf(partsOf(provocation()))
    const analysis = await analysed(partsOf(provocation()))
    const { isLoss } = ISSUES[code]
    const found = summaries.flatMap(({ issues }) => issues).filter((issue) => issue.code === code)
    expect(found.every((issue) => issue.is_loss === isLoss)).toBe(true)
    if (isLoss)
      expect(
        summaries.some(
          (summary) => /loss(es)?\b/.test(describeLosses(summary)) && !/^no losses/.test(describeLosses(summary)),
        ),
      ).toBe(true)
    if (!analysis) return
    const page = reportHtml(analysis)
    const stats = toText(sectionsOf(analysis, SHOWN), 400).join('\n')
    const why = lookedAt(analysis)
      .find(({ rule }) => rule === 'losses')!
      .figures.map(({ figure }) => figure)
    const isCounted = analysis.run.losses[code] !== undefined
    if (!analysis.inputs.some(({ issues }) => issues[code] !== undefined)) return
    expect([code, isCounted]).toEqual([code, isLoss])
    const [, losses = ''] = /^ {2}losses +(.*)$/m.exec(stats) ?? []
    expect(losses.split(/[ ,]+/).includes(code)).toBe(isLoss)
    if (isLoss) expect(why.join()).toMatch(new RegExp(`${code}|and \\d+ more`))
    expect(why.some((figure) => figure.includes('no losses'))).toBe(Object.keys(analysis.run.losses).length === 0)
    expect(findings(analysis).some(({ rule }) => rule === 'losses')).toBe(Object.keys(analysis.run.losses).length > 0)
    if (isLoss) expect(page).toContain(`${code}: ${analysis.run.losses[code]}`)
  })
})
