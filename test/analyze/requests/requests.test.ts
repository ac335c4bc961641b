import { expect, test } from '@jest/globals'
import { type Analysis, analyze } from '../../../lib/index.ts'
import type { FunctionEvent, FunctionPurpose, TraceEvent } from '../../../lib/model/events.ts'
import { logOf, logOfRequests, type MadePart, type MadeRequest } from './made-requests.ts'

const MS = 1e6
const ms = (...parts: (readonly [MadePart[0], number, MadePart[2]?])[]): MadePart[] =>
  parts.map(([what, until, of = {}]) => [what, until * MS, of])

const sumOf = (parts: object | null) => Object.values(parts!).reduce((sum: number, ns: number) => sum + ns, 0)

/** Request 1 decodes; the prompt of request 2 stops it, once in calls of its own, once in a common call. */
const STALLED: readonly MadeRequest[] = [
  {
    startNs: 0,
    firstTokenNs: 12 * MS,
    ...{ promptTokens: 10, reusedTokens: 4, generatedTokens: 6 },
    parts: ms(
      ['queued', 1],
      ['prepare', 2],
      ['prefill', 11, { call: 0, tokens: 6 }],
      ['sample', 12],
      ['decode', 22, { call: 1, tokens: 1 }],
      ['decode', 32, { call: 2, tokens: 1 }],
      ['decode', 42, { call: 3, tokens: 1 }],
      ['stalled', 142, { others: 1, othersTokens: 500 }],
      ['decode', 202, { call: 5, tokens: 1, others: 1, othersTokens: 300 }],
      ['decode', 212, { call: 6, tokens: 1, others: 1, othersTokens: 1 }],
      ['sample', 213],
      ['other', 215],
    ),
  },
  {
    startNs: 40 * MS,
    firstTokenNs: 203 * MS,
    ...{ promptTokens: 800, reusedTokens: 0, generatedTokens: 2 },
    parts: ms(
      ['stalled', 42, { others: 1, othersTokens: 1 }],
      ['prefill', 142, { call: 4, tokens: 500 }],
      ['prefill', 202, { call: 5, tokens: 300, others: 1, othersTokens: 1 }],
      ['decode', 212, { call: 6, tokens: 1, others: 1, othersTokens: 1 }],
      ['send', 220],
    ),
  },
]

test('parts sum to the latency; stalls are of those who were worked on', async () => {
  const { requests } = await analyze(logOfRequests(STALLED))
  const [second, first] = requests!.slowest.toSorted((a, b) => b.id - a.id)
  for (const row of requests!.slowest) expect(sumOf(row.parts)).toBe(row.latency_ns)
  expect(first).toMatchObject({
    task: 101,
    slot: 0,
    latency_ns: 215 * MS,
    ttft_ns: 12 * MS,
    tpot_ns: (213 - 12) * (MS / 5),
    stalled_inferred_ns: 50 * MS,
    parts: { queued_ns: MS, decode_ns: 50 * MS, stalled_ns: 150 * MS, sample_ns: 2 * MS, other_ns: 2 * MS },
  })
  expect(first!.stalled_by).toEqual([
    ...[
      {
        id: 2,
        task: 102,
        time_ns: 150 * MS,
        share: 150 / 215,
        prefill_ns: 150 * MS,
        prefill_tokens: 800,
        overlap_ns: 160 * MS,
      },
    ],
  ])
  expect(second!.stalled_by).toMatchObject([{ id: 1, time_ns: 2 * MS, prefill_ns: 0, prefill_tokens: 0 }])
  expect(requests).toMatchObject({
    count: 2,
    outcomes: { complete: 2 },
    latency_ns: (215 + 180) * MS,
    reuse: { prompt_tokens: 810, reused_tokens: 4, lost_requests: 0 },
    cancelled: null,
  })
  expect(sumOf(requests!.parts)).toBe(requests!.latency_ns)
  expect(requests!.stalls.pairs[0]).toMatchObject({ stalled_id: 1, id: 2, time_ns: 150 * MS })
  expect(requests!.slots.map(({ slot, requests }) => [slot, requests])).toEqual([
    [0, 1],
    [1, 1],
  ])
  const { latency, ttft } = requests!.by_type.completion!
  expect([latency!.count, latency!.max_ns, latency!.min_ns, ttft!.mean_ns]).toEqual([2, 215e6, 180e6, 87.5e6])
})

test('time in which the calling thread has no CPU is no time of the call', async () => {
  const call = (call: number, startNs: number, endNs: number): TraceEvent => {
    return { kind: 'token', call, phase: 'decode', tokens: 1, startNs, endNs, tid: 7, inferred: 0 }
  }
  const state = (state: 'running' | 'runnable', atNs: number): TraceEvent => {
    return { kind: 'state', tid: 7, cpu: 0, state, atNs }
  }
  const { requests } = await analyze(
    logOfRequests([{ startNs: 0, parts: ms(['decode', 10, { call: 0 }], ['decode', 30, { call: 1 }]) }], () => [
      ...[state('running', 0), call(0, 0, 10 * MS), call(1, 10 * MS, 30 * MS)],
      ...[state('runnable', 8 * MS), state('running', 15 * MS), state('running', 40 * MS)],
    ]),
  )
  expect(requests!.slowest[0]!.parts).toMatchObject({ preempted_ns: 7 * MS, decode_ns: 23 * MS })
})

test('time of two others at once is divided by their tokens', async () => {
  const { requests } = await analyze(
    logOfRequests([
      { startNs: 0, parts: ms(['prepare', 10], ['stalled', 50], ['prefill', 60, { tokens: 5 }]) },
      { startNs: 0, parts: ms(['prefill', 40, { tokens: 30 }]) },
      { startNs: 0, parts: ms(['prefill', 40, { tokens: 10 }], ['decode', 50, { tokens: 1 }]) },
    ]),
  )
  const of = requests!.slowest.find(({ id }) => id === 1)!
  expect(of.stalled_by.map(({ id, time_ns }) => [id, Math.round(time_ns / MS)])).toEqual([
    [2, 23], // 30 ms by tokens
    [3, 18], // and 10 ms alone
  ])
  expect(of.stalled_by.reduce((sum, { time_ns }) => sum + time_ns, 0)).toBeCloseTo(40 * MS)
})

test('tokens that the slot had, and that are processed again', async () => {
  const { requests } = await analyze(
    logOfRequests(
      [
        {
          ...{ startNs: 0, promptTokens: 100, reusedTokens: 20, generatedTokens: 1, outcome: 'cancelled' },
          lost: { position: 20, tokens: 60, reason: 1 },
          parts: ms(['prefill', 40, { tokens: 80 }]),
        },
        // The whole prompt is in the cache; only the answer before is dropped.
        {
          startNs: 0,
          promptTokens: 100,
          reusedTokens: 99,
          lost: { position: 99, tokens: 50 },
          parts: ms(['prefill', 4]),
        },
      ],
      (names) => (names.id('a reason') > 0 ? [] : []),
    ),
  )
  expect(requests!.reuse).toMatchObject({
    reused_share: 119 / 200,
    lost_requests: 2,
    processed_again: 61,
    lost_ns: 34 * MS,
  })
  expect(requests!.slowest[0]!.lost).toMatchObject({ position: 20, tokens: 60, processed_again: 60, time_ns: 30 * MS })
  expect(requests!.cancelled).toEqual({
    ...{ requests: 1, timed: 1, time_ns: 40 * MS, prompt_tokens: 80, generated_tokens: 1 },
  })
})

const call = (
  what: FunctionPurpose,
  startNs: number,
  endNs: number,
  of: Partial<FunctionEvent> = {},
): FunctionEvent => {
  return {
    ...{ kind: 'function', what, name: 0, startNs, endNs, tid: 1, context: 0 },
    ...{ sequence: -1, output: -1, value: -1 },
    ...of,
  }
}

const functions = (make: (id: (name: string) => number) => FunctionEvent[]): Promise<Analysis> =>
  analyze(logOf((names) => make((name) => names.id(name))))

test('samplers count without those within them', async () => {
  const { sampling } = await functions((id) => [
    call('sample', 1, 5, { name: id('top-k') }),
    call('sample', 5, 9, { name: id('dist') }),
    call('sample', 0, 10, { name: id('chain') }),
    call('sample', 5, 9, { name: id('dist'), tid: 2 }),
    call('accept', 10, 13, { name: id('grammar') }),
  ])
  expect(sampling).toMatchObject({ time_ns: 17, share: 1 })
  expect(
    sampling!.samplers.map(({ what, name, calls, time_ns, max_ns }) => [what, name, calls, time_ns, max_ns]),
  ).toEqual([
    ['sample', 'dist', 2, 8, 4],
    ['sample', 'top-k', 1, 4, 4],
    ['accept', 'grammar', 1, 3, 3],
    ['sample', 'chain', 1, 2, 10],
  ])
})

test('stages of loading, and other functions', async () => {
  const { load, functions: others } = await functions((id) => [
    call('read-header', 0, 10),
    call('copy-weights', 20, 30, { value: 100 }),
    call('copy-weights', 30, 60, { value: 300 }),
    call('load-model', 0, 100, { value: 400 }),
    call('reserve', 110, 130),
    call('create-context', 100, 150),
    call('tokenize', 200, 220, { value: 5 }),
    call('synchronize', 220, 221, { name: id('CUDA0') }),
    call('save-state', 230, 240, { value: 9 }),
  ])
  expect(load!.time_ns).toBe(150)
  expect(load!.stages.map(({ stage, calls, time_ns, bytes }) => [stage, calls, time_ns, bytes])).toEqual([
    ['read-header', 1, 10, null],
    ['copy-weights', 2, 40, 400],
    ['load-model', 1, 50, 400],
    ['reserve', 1, 20, null],
    ['create-context', 1, 30, null],
  ])
  expect(load!.stages[1]!.bytes_per_s).toBe(1e10)
  expect(others.map(({ what, name, time_ns, tokens, bytes }) => [what, name, time_ns, tokens, bytes])).toEqual([
    ['tokenize', '', 20, 5, null],
    ['save-state', '', 10, null, 9],
    ['synchronize', 'CUDA0', 1, null, null],
  ])
})

test('drafts pay if tokens with them take less time than without, of the same run', async () => {
  const cycle = (at: number): MadePart[] =>
    ms(['draft', at + 10, { tokens: 3 }], ['verify', at + 40, { tokens: 4, accepted: 1 }], ['sample', at + 42])
  const plain = (at: number): MadePart[] => ms(['decode', at + 15, { tokens: 1 }], ['sample', at + 16])
  const parts = [...cycle(0), ...cycle(42), ...plain(84), ...plain(100), ...plain(116)]
  const { speculation } = await analyze(logOfRequests([{ startNs: 0, parts }]))
  expect(speculation).toMatchObject({
    ...{ cycles: 2, drafted_tokens: 6, accepted_tokens: 2, generated_tokens: 4, with_token_ns: 21 * MS },
    ...{ without_token_ns: 16 * MS, without_from: 'plain decode calls', without_calls: 3, speedup: 16 / 21 },
    by_length: [{ drafted: 3, cycles: 2, accepted_tokens: 2, acceptance_share: 1 / 3, verify_mean_ns: 30 * MS }],
  })
})

test('without plain calls, a token without drafts is inferred from drafts of several lengths', async () => {
  const verify = (fromNs: number, tokens: number): MadePart[] =>
    ms(['draft', fromNs + 1], ['verify', fromNs + 1 + 10 + 5 * tokens, { tokens, accepted: tokens - 1 }])
  const parts = [...verify(0, 2), ...verify(21, 3), ...verify(47, 5)]
  const { speculation, undetermined } = await analyze(logOfRequests([{ startNs: 0, parts }]))
  expect(speculation!.without_token_ns).toBeCloseTo(15 * MS)
  expect(speculation!.without_from).toBe('verify calls, extrapolated to one token')
  expect(undetermined.map(({ what }) => what)).not.toContain('speculation.without_token_ns')
  const same = await analyze(logOfRequests([{ startNs: 0, parts: verify(0, 2) }]))
  expect(same.speculation).toMatchObject({ without_token_ns: null, speedup: null })
  expect(same.undetermined.map(({ what }) => what)).toContain('speculation.without_token_ns')
})

test('a row of each request on demand', async () => {
  const { series } = await analyze(logOfRequests(STALLED), { series: ['requests'] })
  expect(series!.requests).toMatchObject({ count: 2, every: 1, rows: [{ id: 1 }, { id: 2 }] })
  expect((await analyze(logOfRequests(STALLED))).series).toBeUndefined()
})

test('a log without requests has no figures of them', async () => {
  const analysis = await analyze(logOf(() => []))
  expect([analysis.requests, analysis.sampling, analysis.speculation, analysis.load]).toEqual([null, null, null, null])
  expect(analysis.functions).toEqual([])
})
