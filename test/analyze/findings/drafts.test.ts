import { expect, test } from '@jest/globals'
import { findings } from '../../../lib/analysis.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { type Call, eventsOf, logOf } from '../workers-log.ts'

/**
 * Useless drafts of a small model on a CPU that computes it fast: 27 % of decode is outside of graphs, more than what the drafts cost, as on a Xeon. The
 * calls of drafts, and those that verify them, are most of decode.
 */

const TOKENS = 118

const CALL: Call = {
  phase: 'decode',
  at: [0, 1000],
  parts: [{ worker: 0, node: 'Qcur-0', at: [0, 730, 730], cpu: 0 }],
}

const run = async (calls: number, speculation?: Partial<Analysis['speculation'] & object>): Promise<string[]> => {
  const all = Array.from({ length: calls }, (_, i): Call => {
    const [{ node, worker }] = CALL.parts as [Call['parts'][number]]
    const at = 1000 * i
    return { ...CALL, at: [at, at + 1000], parts: [{ worker, node, at: [at, at + 730, at + 730], cpu: 0 }] }
  })
  const analysis = await analyze(logOf((names) => eventsOf(names, all)))
  const [decode] = analysis.call_time
  expect([decode!.calls, decode!.parts.find(({ what }) => what === 'outside graphs')?.share]).toEqual([calls, 0.27])
  const of = {
    with_token_ns: 4900,
    without_token_ns: 4000,
    speedup: 4000 / 4900,
    cycles: TOKENS,
    generated_tokens: TOKENS,
  }
  const known = {
    ...{ drafted_tokens: 3 * TOKENS, accepted_tokens: 0, acceptance_share: 0, draft_ns: 1, verify_ns: 1, sample_ns: 1 },
    ...{ without_from: 'verify calls, extrapolated to one token' as const, without_calls: TOKENS, by_length: [] },
  }
  const drafts = speculation && { ...known, ...of, ...speculation }
  return findings({ ...analysis, speculation: drafts ?? null }).map(({ rule }) => rule)
}

test('time outside of graphs in calls that only drafts cause is no cause of its own', async () => {
  expect(await run(584)).toEqual(['outside-graphs'])
  expect(await run(584, {})).toEqual(['speculation-slower'])
})

test('it is, where drafts pay, are too few to judge, or are no part of most calls', async () => {
  expect(await run(584, { speedup: 1.2 })).toEqual(['outside-graphs'])
  expect(await run(584, { cycles: 7 })).toEqual(['outside-graphs'])
  expect(await run(584, { generated_tokens: 570, with_token_ns: 1010, without_token_ns: 950 })).toEqual([
    'outside-graphs',
    'speculation-slower',
  ])
})
