import { describe, expect, test } from '@jest/globals'
import { type GgtraceToken, GgtraceWriter } from '../../../lib/core.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'

const MS = 1e6
const [CONTEXT, OTHER] = [0x1000, 0x2000]

type Step =
  | (Partial<GgtraceToken> & { readonly at: number; readonly to: number; readonly position: number })
  | { readonly what: 'clear' | 'save-state'; readonly at: number; readonly context?: number }
  | { readonly what: 'remove'; readonly at: number; readonly from: number }

/** Analyses a log with these steps of a program; of a call, the position of its first token and its times in ms. */
async function analysisOf(steps: readonly Step[]): Promise<Analysis> {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(7)
  let call = 0
  for (const step of steps) {
    const atNs = step.at * MS
    if ('to' in step) {
      const { at, to, position, tokens = 1, ...more } = step
      const spans = [{ sequence: 0, position, tokens }]
      host.token({ startNs: atNs, endNs: to * MS, call: call++, tokens, spans, context: CONTEXT, ...more })
      continue
    }
    const { what } = step
    const context = ('context' in step && step.context) || CONTEXT
    const none = { sequence: -1, to: -1, from: -1, end: -1, delta: 0, isDone: true }
    if (what === 'remove') host.sequence({ what, atNs, context, ...none, sequence: 0, from: step.from })
    else if (what === 'clear') host.sequence({ what, atNs, context, ...none })
    else {
      const of = { name: 0, sequence: 0, output: -1, value: 100 }
      host.function({ what, startNs: atNs, endNs: atNs + 1000, context, ...of })
    }
  }
  writer.end(1000 * MS)
  return analyze({ name: 'log', source: writer.take() })
}

const unread = { followsUnread: true }
const clear = (at: number): Step => ({ what: 'clear', at })
const prompt = (at: number, to: number, more: Partial<GgtraceToken> & { readonly position?: number } = {}): Step => {
  return { at, to, position: 0, tokens: 16, ...unread, ...more }
}
/** A benchmark's generation: it reads no output. */
const generation = (at: number, ms: number, count: number, from = 0): Step[] =>
  Array.from({ length: count }, (_, i) => ({ at: at + i * ms, to: at + (i + 1) * ms, position: from + i, ...unread }))

describe('clearings of the memory divide calls into runs', () => {
  const bench = [
    ...[clear(0), prompt(1, 11), clear(12), prompt(13, 33)],
    ...[clear(100), ...generation(101, 2, 5), clear(120), ...generation(121, 4, 5)],
  ]

  test('each kind of run has a row, with means over its runs', async () => {
    const { calls } = await analysisOf(bench)
    const none = { ttft_ns: null, prefill_tokens_per_s: null, tpot_ns: null, decode_tokens_per_s: null }
    const rate = (16 / 0.01 + 16 / 0.02) / 2
    expect(calls.runs).toEqual([
      {
        ...{ depth: 0, prompt_tokens: 16, generated_tokens: 0, sequences: 1, runs: 2 },
        ...{ ...none, time_ns: 15 * MS, ttft_ns: 15 * MS, tokens_per_s: rate, prefill_tokens_per_s: rate },
      },
      {
        ...{ depth: 0, prompt_tokens: 0, generated_tokens: 5, sequences: 1, runs: 2 },
        ...{ ...none, time_ns: 15 * MS, tpot_ns: 3 * MS, tokens_per_s: 375, decode_tokens_per_s: 375 },
      },
    ])
    expect(calls).toMatchObject({ ttft_ns: 15 * MS, ttft_runs: 2, tpot_ns: 3 * MS, further_runs: 0 })
  })

  test('the first token that a benchmark generates is no prompt', async () => {
    const { by_phase } = (await analysisOf(bench)).calls
    expect(by_phase).toEqual({ prefill: { calls: 2, tokens: 32 }, decode: { calls: 10, tokens: 10 } })
  })

  test('a prompt of one token is one, where its output is read', async () => {
    const read = generation(1, 2, 5).map((step) => ({ ...step, followsUnread: false }))
    const { calls } = await analysisOf([clear(0), ...read])
    expect(calls.by_phase).toEqual({ prefill: { calls: 1, tokens: 1 }, decode: { calls: 4, tokens: 4 } })
    expect(calls).toMatchObject({ runs: [], ttft_ns: 2 * MS, ttft_runs: 1 })
  })

  test('a saved context is the depth of a run, as one that is restored is', async () => {
    const depth = prompt(1, 41, { tokens: 64 })
    const at64 = { position: 64 }
    const saved: Step = { what: 'save-state', at: 45 }
    const { calls } = await analysisOf([
      ...[clear(0), depth, saved, prompt(50, 60, at64)],
      ...[clear(70), prompt(71, 91, { ...at64, followsUnread: true })],
      ...[clear(100), ...generation(101, 2, 5, 64)],
    ])
    const { runs, ttft_ns, ttft_runs } = calls
    expect(runs).toMatchObject([
      { depth: 64, prompt_tokens: 16, generated_tokens: 0, runs: 2, time_ns: 15 * MS },
      { depth: 64, prompt_tokens: 0, generated_tokens: 5, runs: 1, time_ns: 10 * MS, decode_tokens_per_s: 500 },
    ])
    expect([ttft_ns, ttft_runs]).toEqual([15 * MS, 2])
  })

  test('a checkpoint within a prompt whose output is read divides nothing', async () => {
    const saved: Step = { what: 'save-state', at: 12 }
    const answer = generation(30, 2, 3, 32).map((step) => ({ ...step, followsUnread: false }))
    const { calls } = await analysisOf([clear(0), prompt(1, 11), saved, prompt(13, 23, { position: 16 }), ...answer])
    expect(calls).toMatchObject({ runs: [], ttft_ns: 22 * MS, ttft_runs: 1 })
  })

  test('a memory that is cleared before all calls makes one run, whatever the number of contexts', async () => {
    const { calls } = await analysisOf([
      ...[clear(0), { what: 'clear', at: 1, context: OTHER } as const],
      ...[prompt(2, 10), prompt(10, 14, { context: OTHER })],
    ])
    expect(calls).toMatchObject({ runs: [], ttft_ns: 12 * MS, ttft_runs: 1 })
  })

  test('there are at most 64 rows; runs of further kinds are counted', async () => {
    const steps = Array.from({ length: 70 }, (_, i) => [clear(3 * i), prompt(3 * i + 1, 3 * i + 2, { tokens: i + 2 })])
    const { runs, further_runs } = (await analysisOf(steps.flat())).calls
    expect([runs.length, further_runs]).toEqual([64, 6])
  })
})

describe('accepted tokens of drafts', () => {
  const verify = (at: number, position: number): Step => ({ at, to: at + 8, position, tokens: 4, areAllOutput: true })
  const reads = { followsUnread: false }

  test('are those whose positions remain in the memory, also of the last verification', async () => {
    const { calls } = await analysisOf([
      ...[prompt(0, 10, reads), verify(10, 16), { what: 'remove', at: 19, from: 17 } as const],
      ...[verify(20, 17), { what: 'remove', at: 29, from: 20 } as const],
    ])
    expect(calls.drafts).toEqual({ drafted_tokens: 6, accepted_tokens: 2, acceptance_share: 1 / 3 })
    expect(calls.tpot).toMatchObject({ count: 4 })
  })

  test('without removals, the next call shows them; of the last verification, they are not known', async () => {
    const { calls } = await analysisOf([prompt(0, 10, reads), verify(10, 16), verify(20, 18)])
    expect(calls.drafts).toEqual({ drafted_tokens: 3, accepted_tokens: 1, acceptance_share: 1 / 3 })
  })

  test('a call that repeats what the target verified is no prompt, and makes no tokens', async () => {
    const draft = (at: number, position: number): Step => ({ at, to: at + 1, position, context: OTHER })
    const drafts = (at: number, position: number) => [0, 1, 2].map((i) => draft(at + i, position + i))
    const repeated = (at: number, position: number): Step => ({ at, to: at + 2, position, tokens: 4, context: OTHER })
    const { calls } = await analysisOf([
      ...[prompt(0, 10, reads), prompt(10, 14, { ...reads, context: OTHER })],
      ...[...drafts(14, 16), verify(20, 16), repeated(28, 16), { what: 'remove', at: 30, from: 18 } as const],
      ...[...drafts(31, 18), verify(35, 18), repeated(43, 18), { what: 'remove', at: 46, from: 22 } as const],
    ])
    expect(calls.by_phase).toEqual({ prefill: { calls: 2, tokens: 32 }, decode: { calls: 10, tokens: 22 } })
    expect(calls.drafts).toEqual({ drafted_tokens: 6, accepted_tokens: 4, acceptance_share: 2 / 3 })
    expect(calls.contexts).toMatchObject([
      { role: 'target', tpot: { count: 6 } },
      { role: 'draft', tpot: { count: 6 } },
    ])
  })
})
