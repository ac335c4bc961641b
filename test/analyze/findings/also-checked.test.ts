import { beforeAll, expect, test } from '@jest/globals'
import { lookedAt } from '../../../lib/analysis.ts'
import { verdictOf } from '../../../lib/analyze/verdict/verdict.ts'
import { type Analysis, analyze, type Finding } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import { STORED_LOGS } from '../stored-logs.ts'

/**
 * What is said of all stored logs. What `why` lists as checked and not reported: nothing that takes more than a fifth of the time is left to
 * the reader. Verdicts: the cause is in the largest part of the time.
 */

const FIFTH = 20

type Part = 'decode_ns' | 'prefill_ns'

/** Shares in the figures without a finding, in percent. */
const sharesIn = (analysis: Analysis) =>
  lookedAt(analysis).flatMap(({ figures }) =>
    figures
      .filter(({ finding }) => !finding)
      .flatMap(({ figure }) =>
        [...figure.matchAll(/([\d.]+) %/g)].map(([, share]) => ({ figure, share: Number(share) })),
      ),
  )

/** All logs that can be analysed, once for all tests. */
const analysed: { readonly log: string; readonly analysis: Analysis }[] = []

beforeAll(async () => {
  for (const log of STORED_LOGS) {
    const analysis = await analyze(inputOf(log)).catch(({ name }) => {
      // Companions, and files that are no log.
      expect([log, name]).toEqual([log, expect.stringMatching(/^(?:UsageError|FormatError)$/)])
    })
    if (analysis) analysed.push({ log, analysis })
  }
  expect(analysed.length).toBeGreaterThan(150)
})

test('no share above a fifth is among what was checked and not reported', () => {
  const all = analysed.flatMap(({ log, analysis }) => sharesIn(analysis).map((one) => ({ log, ...one })))
  expect(all.filter(({ share }) => share > FIFTH)).toEqual([])
  expect(all.length).toBeGreaterThan(100)
})

test('the cause of a verdict is the finding with the most time, and a tenth of the time that is asked about or more', () => {
  const named = analysed.flatMap(({ log, analysis: { verdict, findings } }) => {
    const certain = findings.filter(({ rule, confidence }) => confidence !== 'low' && rule !== 'roofline')
    const mostNs = Math.max(...certain.map(({ time_ns }) => time_ns))
    return verdict.cause ? [{ log, ...verdict.cause, mostNs }] : []
  })
  expect(named.length).toBeGreaterThan(25)
  expect(named.filter(({ time_ns, share, mostNs }) => time_ns < mostNs || (share ?? 1) < 0.1)).toEqual([])
})

test('a cause in the tokens or the prompts of requests is named where these take the larger part of the latencies', () => {
  const served = analysed.filter(({ analysis }) => analysis.verdict.subject === 'requests')
  expect(served.length).toBeGreaterThan(8)
  const of = (rule: string, part: Part, { analysis, log }: (typeof served)[number]) => {
    const { latency_ns, parts } = analysis.requests!
    const finding = {
      ...{ rule, sentence: `${rule} is found`, time_ns: 0.15 * latency_ns, evidence: {}, check: { evidence: '' } },
      ...{ confidence: 'high', confidence_reason: '', advice: '' },
    } as Finding
    const { cause, sentence } = verdictOf({ ...analysis, findings: [finding] })
    const isNamed = sentence.includes(finding.sentence)
    expect([log, isNamed]).toEqual([log, cause !== null])
    const queuedNs = (parts.call_wait_ns ?? 0) + (parts.deferred_ns ?? 0) + (parts.queued_ns ?? 0)
    const most = Math.max(queuedNs, ...Object.values(parts).map((ns) => ns ?? 0))
    if ((parts[part] ?? 0) === most) expect([log, cause?.rule]).toEqual([log, rule])
    if ((parts[part] ?? 0) < most / 2) expect([log, cause]).toEqual([log, null])
    return isNamed
  }
  const tokens = served.map((one) => of('context-growth', 'decode_ns', one))
  const prompts = served.map((one) => of('prompt-processed-again', 'prefill_ns', one))
  for (const named of [tokens, prompts]) expect([...new Set(named)].sort()).toEqual([false, true])
})
