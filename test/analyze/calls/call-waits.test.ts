import { expect, test } from '@jest/globals'
import { type Analysis, analyze, type EventInput, type TraceEvent } from '../../../lib/index.ts'

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
