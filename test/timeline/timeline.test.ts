import { expect, test } from '@jest/globals'
import { UNKNOWN } from '../../lib/core.ts'
import { convert, type EventInput, type Names } from '../../lib/index.ts'
import type { OperatorEvent, TensorEvent, TraceEvent } from '../../lib/model/events.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { ORIGIN_TS } from '../origin.ts'
import { drawn } from '../printing-sink.ts'

/** What events become, also those that no reader yields. */
const ORIGIN_NS = 1_700_000_000_123_456_789n // beyond 2^53, as CLOCK_REALTIME is

const input: TraceEvent = {
  kind: 'input',
  format: 'test',
  clock: 'REALTIME',
  originNs: ORIGIN_NS,
  attributes: { why: 'a test' },
}

/** An input of the events that `make` makes. */
const run = (make: (names: Names) => TraceEvent[]): EventInput => ({
  name: 'test',
  events: (names) => [[input, ...make(names)]],
})

const tensor = (id: number, fields: Partial<TensorEvent>): TensorEvent => ({
  ...UNKNOWN.tensor,
  id,
  name: 0,
  ...fields,
})

const operator = (startNs: number, endNs: number, fields: Partial<OperatorEvent> = {}): OperatorEvent => ({
  kind: 'operator',
  tensor: 0,
  worker: 0,
  tid: 1,
  cpu: -1,
  call: 0,
  startNs,
  endNs,
  waitEndNs: endNs,
  experts: undefined,
  inferred: 0,
  ...fields,
})

test('ranges nest per thread, arrows join them, and what stays open ends with the log', async () => {
  const ranges = run((names) => {
    const [outer, inner] = [names.id('outer'), names.id('inner')]
    return [
      { kind: 'range', edge: 'begin', tid: 7, name: outer, atNs: 100, flows: [5] },
      { kind: 'range', edge: 'begin', tid: 7, name: inner, atNs: 200 },
      { kind: 'range', edge: 'begin', tid: 8, name: inner, atNs: 250, flows: [5] },
      { kind: 'range', edge: 'end', tid: 7, name: 0, atNs: 300 },
      { kind: 'range', edge: 'end', tid: 8, name: 0, atNs: 350 },
      { kind: 'range', edge: 'end', tid: 9, name: 0, atNs: 360 },
      { kind: 'range', edge: 'begin', tid: 7, name: inner, atNs: 400 },
    ]
  })
  expect(await drawn(ranges)).toEqual([
    'Ranges/thread 7 | 100–400 outer →5',
    'Ranges/thread 7 | 200–300 outer > inner',
    'Ranges/thread 7 | 400–400 outer > inner',
    'Ranges/thread 8 | 250–350 inner →5',
    'Issues | 360 end without a start',
  ])
})

test('counters are exact, and the origin is known on all clocks', async () => {
  const counts = run((names) => {
    const name = names.id('cache misses')
    const at = (atNs: number, value: number): TraceEvent => ({ kind: 'counter', name, unit: 'count', atNs, value })
    const readings = [
      { clock: 'REALTIME', ns: ORIGIN_NS },
      { clock: 'BOOTTIME', ns: 42n },
    ] as const
    return [{ kind: 'clocks', readings }, at(5, 2 ** 53 - 1), at(10, -3), at(7, 0.25)] // back in time
  })
  expect(await drawn(counts)).toEqual([
    `REALTIME ${ORIGIN_NS} = BOOTTIME 42`,
    'cache misses | 5 = 9007199254740991',
    'cache misses | 7 = 0.25',
    'cache misses | 10 = -3',
  ])
  const trace = await openTrace(convert(counts))
  expect(trace.problems()).toEqual([])
  expect(trace.query(`select ts - ${ORIGIN_TS}, value from counter order by ts`).rows).toEqual([
    [5, 2 ** 53 - 1],
    [7, 0.25],
    [10, -3],
  ])
  const origins = `select substr(name, 17), int_value from metadata where name glob 'trace_attribute.origin_*_ns'`
  expect(new Map(trace.query(origins).rows as [string, number][])).toEqual(
    new Map<string, number | bigint>([
      ['origin_ns', ORIGIN_NS],
      ['origin_realtime_ns', ORIGIN_NS],
      ['origin_boottime_ns', 42],
    ]),
  )
  trace.close()
})

test('slices that overlap on a worker have a row of their own, and none is lost', async () => {
  const operators = run((names) => [
    tensor(0, { name: names.id('Qcur-3'), op: names.id('MUL_MAT'), layer: 3 }),
    operator(0, 100, { waitEndNs: 150 }),
    operator(120, 200),
    operator(150, 160),
    operator(40, 90),
  ])
  expect(await drawn(operators, {}, { rows: /worker/ })).toEqual([
    'worker 0 | 0–100 Qcur MUL_MAT',
    'worker 0 | 100–149 barrier', // the next operator begins at 150
    'worker 0 | 150–160 Qcur MUL_MAT',
    'worker 0 (2) | 120–200 Qcur MUL_MAT',
    'worker 0 (3) | 40–90 Qcur MUL_MAT',
  ])
})

test('pauses are idle, and calls of one phase are one slice', async () => {
  const token = (phase: 'prefill' | 'decode', call: number, startNs: number, endNs: number): TraceEvent => ({
    kind: 'token',
    phase,
    call,
    tokens: phase === 'prefill' ? 4 : 1,
    startNs,
    endNs,
    tid: 1,
    inferred: 0,
  })
  const calls = run(() => [
    token('prefill', 0, 0, 10e6),
    token('decode', 1, 11e6, 12e6),
    token('decode', 2, 13e6, 14e6),
    token('decode', 3, 614e6, 615e6),
  ])
  expect(await drawn(calls, {}, { rows: /Phase/ })).toEqual([
    'Phase | 0–10000000 prefill',
    'Phase | 11000000–14000000 decode',
    'Phase | 14000000–614000000 idle',
    'Phase | 614000000–615000000 decode',
  ])
})

test('two inputs have a root and arguments of their own', async () => {
  const one = run((names) => [tensor(0, { name: names.id('a-1'), op: names.id('ADD'), layer: 1 }), operator(0, 10)])
  const two = run((names) => [tensor(0, { name: names.id('b-2'), op: names.id('MUL'), layer: 2 }), operator(5, 15)])
  expect(await drawn([one, two], {}, { args: ['layer'] })).toEqual([
    'worker 0 | 0–10 a ADD {layer: 1}',
    'LLM run (2)/worker 0 | 5–15 b MUL {layer: 2}',
  ])
})

test('the first thousand issues are drawn, and the others counted', async () => {
  const issues = run(() =>
    Array.from({ length: 3000 }, (_, i) => ({ kind: 'issue', title: 'bad', detail: `${i}`, at: { byte: i }, atNs: i })),
  )
  const lines = await drawn(issues)
  expect(lines).toHaveLength(1001)
  expect(lines.filter((line) => / \d+ bad$/.test(line))).toHaveLength(1000)
  expect(lines.at(-1)).toMatch(/further issues are not shown$/)
})

test('memory is sampled once per node, not once per worker', async () => {
  const node = run((names) => [
    { kind: 'buffer', id: 0, usage: 'weights', label: 'file', offsetsFrom: 'its start' },
    tensor(0, { name: names.id('w'), buffer: 0, offset: 64, sizeBytes: 8 }),
    tensor(1, { name: names.id('a-0'), op: names.id('ADD'), sources: [0] }),
    operator(0, 5, { tensor: 1 }),
    operator(0, 5, { tensor: 1, worker: 1 }),
  ])
  expect(await drawn(node, {}, { rows: /offset read|touched/ })).toEqual([
    'weights: offset read | 0 = 64',
    'weights: offset read | 5 = 0',
    'bytes touched per operator | 0 = 8',
    'bytes touched per operator | 5 = 0',
  ])
})

test('nothing is read between graph runs: where they end, offsets read go to 0', async () => {
  const runs = run((names) => [
    { kind: 'buffer', id: 0, usage: 'weights', label: 'file', offsetsFrom: 'its start' },
    { kind: 'buffer', id: 1, usage: 'kv-cache', label: 'cache', offsetsFrom: 'its start' },
    tensor(0, { buffer: 0, offset: 64 }),
    tensor(1, { buffer: 1, offset: 32 }),
    tensor(2, { name: names.id('a-0'), op: names.id('ADD'), sources: [0] }),
    tensor(3, { name: names.id('b-0'), op: names.id('ADD'), sources: [1] }),
    operator(0, 5, { tensor: 2 }),
    operator(10, 15, { tensor: 3, waitEndNs: 20 }),
    operator(30, 35, { tensor: 2 }), // again: another graph run of the call
    operator(35, 40, { tensor: 2 }), // at once after it
    operator(50, 55, { tensor: 3, call: 1 }),
  ])
  expect(await drawn(runs, { detail: 'full' }, { rows: /offset read/ })).toEqual([
    'weights: offset read | 0 = 64',
    'weights: offset read | 20 = 0',
    'weights: offset read | 30 = 64',
    'weights: offset read | 40 = 0',
    'KV cache: offset read | 10 = 32',
    'KV cache: offset read | 20 = 0',
    'KV cache: offset read | 50 = 32',
    'KV cache: offset read | 55 = 0',
  ])
})

test('counters of operators have the peak and the last value of 50 µs; all changes in full', async () => {
  const sizes = [
    [0, 8],
    [9e3, 64],
    [10e3, 64],
    [30e3, 16],
    [49e3, 8],
    [120e3, 24],
  ] as const // prettier-ignore
  const runs = run((names) => [
    ...sizes.flatMap(([, sizeBytes], i) => [
      tensor(2 * i, { sizeBytes }),
      tensor(2 * i + 1, { name: names.id(`a-${i}`), op: names.id('ADD'), sources: [2 * i] }),
    ]),
    ...sizes.map(([atNs], i) => operator(atNs, sizes[i + 1]?.[0] ?? 130e3, { tensor: 2 * i + 1 })),
  ])
  const samples = async (detail: 'shapes' | 'full') =>
    (await drawn(runs, { detail }, { rows: /touched/ })).map((line) => line.replace(/.*\| /, ''))
  expect(await samples('shapes')).toEqual(['9000 = 64', '49000 = 8', '120000 = 24', '130000 = 0'])
  expect(await samples('full')).toEqual(['0 = 8', '9000 = 64', '30000 = 16', '49000 = 8', '120000 = 24', '130000 = 0'])
})

test('decodes have their numbers of the whole run, where only some calls are drawn', async () => {
  const lines = await drawn(inputOf('examples/moe.csv'), { tokens: [3, 4] }, { rows: /^Tokens/ })
  expect(lines.map((line) => line.replace(/.*(decode \d) · .*$/, '$1'))).toEqual(['decode 3', 'decode 4'])
})
