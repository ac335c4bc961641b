import { expect, test } from '@jest/globals'
import { type Analysis, analyze, convert, type EventInput, type Names, type TraceEvent } from '../../../lib/index.ts'
import { openTrace } from '../../../lib/node.ts'

/** Calls on a backend that computes asynchronously: they return before their work is done, and the program waits when it reads results. */
const MS = 1e6
const TID = 7
const CONTEXT = 0x1000

/** Start, return and end of the work of each call, in ms; a prompt of four tokens first. */
const CALLS = [
  [0, 2, 40],
  [42, 43, 60],
  [61, 62, 80],
  [82, 83, 100],
] as const

/** `synchronised`: the program waits inside its calls. */
function made(synchronised: boolean, more: (id: (text: string) => number) => TraceEvent[] = () => []): EventInput {
  return {
    name: synchronised ? 'synchronised' : 'asynchronous',
    *events(names) {
      const id = (text: string) => names.id(text)
      const wait = (name: string, from: number, to: number): TraceEvent => ({
        ...{ kind: 'function', what: 'synchronize', name: name ? id(name) : 0, startNs: from * MS, endNs: to * MS },
        ...{ tid: TID, context: name ? 0 : CONTEXT, sequence: -1, output: -1, value: -1 },
      })
      const events = CALLS.flatMap(([start, end, done], call): TraceEvent[] => {
        const tokens = call === 0 ? 4 : 1
        const batch = {
          ...{ function: 'llama_decode' as const, areAllOutput: false, isLeftOut: false, result: 0, context: CONTEXT },
          spans: [{ sequence: 0, position: call === 0 ? 0 : 3 + call, tokens }],
        }
        const span = { startNs: start * MS, endNs: (synchronised ? done : end) * MS }
        const graph = { startNs: (start + 0.25) * MS, endNs: (start + 0.75) * MS }
        const copy = { startNs: (start + 0.05) * MS, endNs: (start + 0.24) * MS, from: 0, to: 0, tensor: -1, tid: TID }
        return [
          // A copy of inputs, with a wait in it.
          { kind: 'copy', what: 'copy', bytes: 64, ...copy },
          { kind: 'graph', backend: id('Vulkan0'), nodes: 9, call, split: 0, ...graph, inferred: 0 },
          // Then the end of the call's work: the inner function first, as a log contains them.
          wait('Vulkan0', start + 0.1, start + 0.2),
          ...(synchronised ? [wait('Vulkan0', end, done - 0.1)] : []),
          {
            kind: 'token',
            call,
            phase: call === 0 ? 'prefill' : 'decode',
            tokens,
            ...span,
            tid: TID,
            inferred: 0,
            batch,
          },
          ...(synchronised ? [] : [wait('Vulkan0', end + 0.5, done - 0.1), wait('', end + 0.5, done)]),
        ]
      })
      yield [
        { kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
        ...events,
        ...more(id),
      ]
    },
  }
}

const partsOf = ({ call_time }: Analysis, phase: string) =>
  Object.fromEntries(call_time.find((of) => of.phase === phase)!.parts.map(({ what, time_ns }) => [what, time_ns / MS]))

test('times of asynchronous calls are those of the same calls with the wait inside', async () => {
  const [late, inside] = [await analyze(made(false)), await analyze(made(true))]
  for (const { calls, rooflines: _, call_time } of [late, inside]) {
    expect(calls).toMatchObject({
      ttft_ns: 40 * MS,
      tpot_ns: 20 * MS,
      prefill_tokens_per_s: 100,
      decode_tokens_per_s: 50,
    })
    expect(call_time.map(({ phase, calls }) => [phase, calls])).toEqual([
      ['prefill', 1],
      ['decode', 3],
    ])
  }
  expect(late.calls.tpot).toEqual(inside.calls.tpot)
  expect(late.calls.slope?.call).toEqual(inside.calls.slope?.call)
})

test('the time of calls contains waits for backends, in calls and after them, and what is submitted', async () => {
  const late = await analyze(made(false))
  const waits = 3 * 0.1 + (16.5 + 17.5 + 16.5) // in calls; after them
  const after = 17 + 18 + 17
  const parts = partsOf(late, 'decode')
  const { 'waiting for a backend': waiting, 'submitting to a backend': submitting } = parts
  expect(parts['copying for backends']).toBeCloseTo(3 * (0.19 - 0.1))
  expect(submitting).toBeCloseTo(3 * 0.5)
  expect(waiting).toBeCloseTo(3 * 0.1 + after)
  expect(waiting).toBeGreaterThan(waits)
  expect(late.call_time.find(({ phase }) => phase === 'decode')!.time_ns / MS).toBeCloseTo(3 + after)
})

test('a wait after sampling, in the next call or below 10 µs is no part of the call before', async () => {
  const last = CALLS.at(-1)![2]
  const other = (what: 'sample' | 'synchronize', from: number, to: number): TraceEvent => ({
    ...{ kind: 'function', what, name: 0, startNs: from * MS, endNs: to * MS, tid: TID, context: CONTEXT },
    ...{ sequence: -1, output: -1, value: -1 },
  })
  const sampled = await analyze(
    made(true, () => [other('sample', last, last + 1), other('synchronize', last + 2, 200)]),
  )
  const short = await analyze(made(true, () => [other('synchronize', last, last + 0.009)]))
  for (const { calls } of [sampled, short]) expect(calls.tpot_ns).toBe(20 * MS)
})

/** The asynchronous run with other events. */
const changed = (change: (events: TraceEvent[], names: Names) => TraceEvent[]): EventInput => ({
  name: 'changed',
  *events(names) {
    for (const batch of made(false).events(names) as Iterable<TraceEvent[]>) yield change(batch, names)
  },
})

const FIGURES = { ttft_ns: 40 * MS, tpot_ns: 20 * MS, prefill_tokens_per_s: 100, decode_tokens_per_s: 50 }

test('a reader may hold a call until after the waits for it, and until the next call has begun', async () => {
  for (const behind of [1, 3, 5]) {
    const late = changed((events) => {
      const order = events.map((event, i) => [event, event.kind === 'token' ? i + behind + 0.5 : i] as const)
      return order.sort(([, a], [, b]) => a - b).map(([event]) => event)
    })
    expect((await analyze(late)).calls).toMatchObject(FIGURES)
    expect((await analyze(late)).call_time).toEqual((await analyze(made(false))).call_time)
  }
})

test('batches of any size', async () => {
  const split: EventInput = {
    name: 'split',
    *events(names) {
      for (const batch of made(false).events(names) as Iterable<TraceEvent[]>) yield* batch.map((event) => [event])
    },
  }
  expect((await analyze(split)).calls).toMatchObject(FIGURES)
})

test('where no waits are recorded, the times of the GPU end calls, whenever they are read', async () => {
  const onGpu = (call: number): TraceEvent => ({
    ...{ kind: 'gpu', what: 'kernel', name: 0, startNs: CALLS[call]![1] * MS, endNs: CALLS[call]![2] * MS, call },
    ...{
      device: 0,
      context: 1,
      contextName: 0,
      stream: 0,
      streamName: 0,
      pid: 1,
      correlation: -1,
      signature: 0,
      facts: {},
    },
  })
  const before = changed((events) =>
    events.flatMap((event) =>
      event.kind === 'token' ? [onGpu(event.call), event] : event.kind === 'function' ? [] : [event],
    ),
  )
  const after = changed((events) =>
    events.flatMap((event) =>
      event.kind === 'token' ? [event, onGpu(event.call)] : event.kind === 'function' ? [] : [event],
    ),
  )
  for (const log of [before, after]) {
    const analysis = await analyze(log)
    expect(analysis.calls).toMatchObject(FIGURES)
    expect(partsOf(analysis, 'prefill')['waiting for a backend']).toBeCloseTo(38 + 0.5) // after the call, and in its graph run
  }
})

test('a prompt in several calls, of which the program waits for the last one only', async () => {
  const [start, end] = [-10, -8]
  const first = changed((events, names) => {
    const [call] = events.filter((event) => event.kind === 'token')
    const span = { startNs: start * MS, endNs: end * MS }
    const graph = { kind: 'graph', backend: names.id('Vulkan0'), nodes: 9, split: 0, call: 0, inferred: 0 } as const
    const moved = events.map((event) => {
      if (event.kind === 'token') return { ...event, call: event.call + 1 }
      return event.kind === 'graph' ? { ...event, call: event.call + 1 } : event
    })
    return [moved[0]!, { ...graph, ...span, endNs: span.endNs - 1 }, { ...call!, ...span }, ...moved.slice(1)]
  })
  const { calls } = await analyze(first)
  // Its work lasts until the next call, which is behind it in the same queue.
  expect(calls).toMatchObject({ ttft_ns: 50 * MS, tpot_ns: 20 * MS, prefill_tokens_per_s: (8 * 1000) / 50 })
})

test('on the CPU, a call is complete when it returns: what waits then is not its work', async () => {
  const onCpu = changed((events, names) =>
    events.map((event) => (event.kind === 'graph' ? { ...event, backend: names.id('CPU') } : event)),
  )
  expect((await analyze(onCpu)).calls).toMatchObject({ ttft_ns: 2 * MS, tpot_ns: 27 * MS, prefill_tokens_per_s: 2000 })
})

test('the trace has the same ends and rates', async () => {
  const trace = await openTrace(convert(made(false)))
  const [rate, returned] = ['tok_per_s', 'return_ns'].map((key) => `extract_arg(arg_set_id, 'debug.${key}')`)
  const args = `dur / ${MS}, ${rate}, ${returned} / ${MS}`
  const { rows } = trace.query(`select ${args} from slice where category = 'token' order by ts`)
  expect(rows.map((row) => row.map(Number))).toEqual(
    CALLS.map(([start, end, done], call) => [done - start, (call === 0 ? 4000 : 1000) / (done - start), end - start]),
  )
  const { calls } = await analyze(made(false))
  const sql =
    'include perfetto module ggml.calls; select ttft, tpot, prefill_tokens_per_s, tokens_per_s from ggml_decoding'
  const { ttft_ns, tpot_ns, prefill_tokens_per_s, decode_tokens_per_s } = calls
  expect(trace.query(sql).rows[0]!.map(Number)).toEqual([ttft_ns, tpot_ns, prefill_tokens_per_s, decode_tokens_per_s])
  trace.close()
})
