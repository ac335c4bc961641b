import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { UNKNOWN } from '../../lib/core.ts'
import { convert, type EventInput, eventsOf, Names } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { inLong } from '../long.ts'
import { OPERATORS, opOf } from '../operators-sql.ts'
import { drawn } from '../printing-sink.ts'

/** Arguments that SQL groups by, in the trace of a recorded mixture of experts at the default level of detail. */

let trace: OpenTrace
beforeAll(async () => {
  trace = await openTrace(convert(inputOf('examples/moe.ggtrace.gz')))
})
afterAll(() => trace.close())

const arg = (key: string, of = 'slice') => `extract_arg(${of}.arg_set_id, 'debug.${key}')`

test('every operator has the index of its call, and lies within that call', () => {
  const calls = trace.query(`select ${arg('call', 'c')}, count(*), min(o.ts >= c.ts and o.ts + o.dur <= c.ts + c.dur)
    from ${OPERATORS} o join slice c on o.call = ${arg('call', 'c')} and c.category = 'token' group by 1 order by 1`).rows
  expect(calls).toEqual(Array.from({ length: 9 }, (_, call) => [call, 322, 1]))
  expect(trace.query("select count(*) from slice where category = 'operator'").rows).toEqual([[9 * 322]])
  // Each worker's first operator of a call has it.
  const own = trace.query(`select count(${arg('call')}) from slice where category = 'operator'`).rows
  expect(own).toEqual([[2 * 9]])
})

test('nothing calls the index of a call a token', () => {
  expect(trace.query("select count(*) from args where key = 'debug.token'").rows).toEqual([[0]])
})

test('time by the type of the weights', () => {
  const types =
    trace.query(`select distinct ${opOf('slice')}, ${arg('src0_type')}, substr(${arg('shape')}, -3) from slice
    where category = 'operator' and name like '% MUL_MAT%' order by 1, 2`).rows
  expect(types).toEqual([
    ['MUL_MAT', 'f32', 'f32'], // of the router
    ['MUL_MAT', 'q4_0', 'f32'],
    ['MUL_MAT_ID', 'q4_0', 'f32'],
  ])
})

test('attention is in a layer, by its sources; the embedding and the output are in none', () => {
  const layers = trace.query(`select ${arg('layer')}, ${arg('inferred')}, count(*) from slice
    where category = 'operator' and name = 'FLASH_ATTN_EXT' group by 1, 2 order by 1`).rows
  expect(layers).toEqual([0, 1, 2, 3, 4, 5].map((layer) => [layer, 'layer: that of the sources', 18]))
  const without = trace.query(`select distinct name from slice where category = 'operator' and ${arg('layer')} is null
    order by name`).rows
  expect(without.flat()).toEqual(['GET_ROWS', 'embd GET_ROWS', 'result_norm RMS_NORM+MUL', 'result_output MUL_MAT'])
})

test('experts of a token are a set, too, with their layer', () => {
  const choices =
    trace.query(`select ${arg('experts')}, ${arg('expert_set')}, ${arg('layer')}, track.name, ${arg('n_tokens')}
    from slice join track on track_id = track.id where category = 'expert'`).rows as [
      string,
      string,
      number,
      string,
      number,
    ][]
  expect(choices).toHaveLength(6 * 9)
  for (const [experts, set, layer, row, tokens] of choices) {
    expect(row).toBe(`layer ${layer}: experts`)
    if (tokens > 1) expect(set).toBe(null)
    else expect(set.split(',')).toEqual(experts.split(',').sort((a, b) => Number(a) - Number(b)))
  }
  const isReversed = ([experts, set]: [string, string, ...unknown[]]) => set !== null && experts !== set
  expect(choices.filter(isReversed).length).toBeGreaterThan(0)
})

test('offsets read go to 0 at the end of each graph run', () => {
  const samples = trace.query(`select value, exists (select 1 from slice where category = 'graph'
      and counter.ts > slice.ts and counter.ts <= slice.ts + slice.dur) as isWithin
    from counter join track on track_id = track.id where track.name = 'weights: offset read' order by ts`).rows
  const zeros = samples.filter(([value]) => value === 0)
  expect(zeros).toEqual(Array(9).fill([0, 1]))
  expect(samples.at(-1)![0]).toBe(0)
})

test('each wait names the worker that computed the node last, and an arrow leads from its operator', async () => {
  const full = await openTrace(convert(inputOf('examples/moe.ggtrace.gz'), { detail: 'full' }))
  expect(full.problems()).toEqual([])
  // Both workers compute every node, in the same order.
  const [first, second] = ['worker 0', 'worker 1'].map(
    (worker) =>
      full.query(
        `select s.id, s.ts + s.dur, s.track_id from slice s join track t on s.track_id = t.id
        where s.category = 'operator' and t.name = ? order by s.ts`,
        [worker],
      ).rows as [id: number, endNs: number, track: number][],
  ) as [[number, number, number][], [number, number, number][]]
  const barriers = new Map(
    full
      .query("select track_id, ts, id from slice where category = 'barrier'")
      .rows.map(([track, ts, id]) => [`${track} ${ts}`, id as number]),
  )
  const expected = first
    .flatMap(([a, aEndNs, aTrack], nth): [number, string, number][] => {
      const [b, bEndNs, bTrack] = second[nth]!
      const barrier = aEndNs < bEndNs ? barriers.get(`${aTrack} ${aEndNs}`) : barriers.get(`${bTrack} ${bEndNs}`)
      if (barrier === undefined || aEndNs === bEndNs) return []
      return [aEndNs < bEndNs ? [barrier, 'worker 1', b] : [barrier, 'worker 0', a]]
    })
    .sort(([a], [b]) => a - b)
  expect(expected.length).toBeGreaterThan(1000)
  const waits = full.query(
    `select id, ${arg('waited_for')} from slice where ${arg('waited_for')} is not null order by id`,
  ).rows
  expect(waits).toEqual(expected.map(([id, worker]) => [id, worker]))
  // An arrow leads to the later slice: there is none to barriers that begin before the operator does.
  const starts = new Map(full.query('select id, ts from slice').rows as [number, number][])
  const arrows = full.query('select slice_in, slice_out from flow order by 1').rows
  const isLater = ([barrier, , operator]: readonly [number, string, number]) =>
    starts.get(barrier)! > starts.get(operator)!
  expect(arrows).toEqual(expected.filter(isLater).map(([barrier, , operator]) => [barrier, operator]))
  expect(arrows.length).toBeGreaterThan(0.8 * waits.length)
  // By default those to waits of 5 µs or more; such a wait may end 1 ns before the next operator.
  const LONG = `select a.ts, t.name, b.ts, r.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in
    join track t on t.id = a.track_id join track r on r.id = b.track_id where b.dur >= 5000 order by b.ts, r.name`
  const long = full.query(LONG).rows
  expect(trace.query(LONG).rows).toEqual(long)
  expect(trace.query('select count(*) from flow').rows).toEqual([[long.length]])
  expect(long.length).toBeGreaterThan(200)
  full.close()
})

test('each operator has its thread, of which only the first one in a row has the argument', async () => {
  const names = new Names()
  const counts = new Map<string, number>()
  for await (const batch of eventsOf(inputOf('examples/moe.ggtrace.gz'), names))
    for (const event of batch) {
      if (event.kind !== 'operator') continue
      const key = `${event.worker} ${event.tid}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  trace.query('include perfetto module ggml.operators')
  const threads = trace.query('select worker, tid, count(*) from ggml_operators group by 1, 2').rows
  expect(new Map(threads.map(([worker, tid, count]) => [`${worker} ${tid}`, count]))).toEqual(counts)
  expect(
    trace.query(`select count(*) from slice where category = 'operator' and ${arg('tid')} is not null`).rows,
  ).toEqual([[2]])
  const [[tid, description]] =
    trace.query(`select ${arg('tid')}, extract_arg(source_arg_set_id, 'description') from slice
    join track on track.id = track_id where track.name = 'worker 1' and ${arg('tid')} is not null`).rows as [
      [number, string],
    ]
  expect(description).toContain(`Thread ${tid} computed the first one`)
})

test('a time of a millisecond or more is an argument with its unit, too', async () => {
  const shown = { rows: /^(worker|Tokens)/, args: ['inner_wait_ns', 'inner_wait', 'return_ns', 'return'] }
  const input = (innerWaitNs: number, returnNs: number): EventInput => ({
    name: 'times',
    events: (names) => [
      [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} },
        { ...UNKNOWN.tensor, id: 0, name: names.id('a-0') },
        { ...UNKNOWN.operator, tensor: 0, worker: 0, call: 0, startNs: 0, endNs: 4e9, waitEndNs: 4e9, innerWaitNs },
        { ...UNKNOWN.token, phase: 'decode', call: 0, startNs: 0, endNs: 5e9, tokens: 1, tid: 1, returnNs },
      ],
    ],
  })
  expect(await drawn(input(1_888_888_888, 999_999), {}, shown)).toEqual([
    'worker 0 | 0–4000000000 a {inner_wait_ns: 1888888888, inner_wait: 1.89 s}',
    'Tokens | 0–5000000000 decode 1 · 5 s {return_ns: 999999}',
  ])
  expect(await drawn(input(144, 1e6), {}, shown)).toEqual([
    'worker 0 | 0–4000000000 a {inner_wait_ns: 144}',
    'Tokens | 0–5000000000 decode 1 · 5 s {return_ns: 1000000, return: 1 ms}',
  ])
})

test('where operators of a worker are missing, no wait has a cause', async () => {
  const operators: EventInput = {
    name: 'a worker that is missing for a while',
    events: (names) => {
      const tensors = ['a-0', 'b-0', 'c-0'].map((name, id) => ({ ...UNKNOWN.tensor, id, name: names.id(name) }))
      const operator = (tensor: number, worker: number, startNs: number, endNs: number) =>
        ({ ...UNKNOWN.operator, tensor, worker, call: 0, startNs, endNs, waitEndNs: 100 * tensor + 95 }) as const
      const first = [operator(0, 0, 0, 50), operator(1, 0, 100, 160), operator(2, 0, 280, 285)]
      return [
        [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} }, ...tensors],
        first,
        [operator(0, 2, 2, 60), operator(1, 2, 102, 140), operator(2, 2, 202, 250)],
        [operator(0, 1, 1, 40), operator(2, 1, 201, 240)],
      ]
    },
  }
  const lines = await drawn(operators, { detail: 'full' }, { rows: /^worker/, args: ['waited_for'] })
  const id = 2 ** 50
  expect(lines).toEqual([
    `worker 0 | 0–50 a`,
    `worker 0 | 50–60 wait for worker 2 {waited_for: worker 2} →${id}|`,
    'worker 0 | 60–95 barrier open, not running',
    'worker 0 | 100–160 b',
    'worker 0 | 160–195 barrier',
    'worker 0 | 280–285 c', // last, but after the barriers of the others began
    'worker 0 | 285–295 barrier open, not running',
    `worker 2 | 2–60 a →${id} →${id + 2}`,
    'worker 2 | 60–95 barrier open, not running',
    'worker 2 | 102–140 b',
    'worker 2 | 140–195 barrier',
    'worker 2 | 202–250 c',
    'worker 2 | 250–285 wait for worker 0 {waited_for: worker 0}',
    'worker 2 | 285–295 barrier open, not running',
    'worker 1 | 1–40 a',
    `worker 1 | 40–60 wait for worker 2 {waited_for: worker 2} →${id + 2}|`,
    'worker 1 | 60–95 barrier open, not running',
    'worker 1 | 201–240 c',
    'worker 1 | 240–285 wait for worker 0 {waited_for: worker 0}',
    'worker 1 | 285–295 barrier open, not running',
  ])
})

inLong(test)('blocks of 13 000 operators of one worker, one after the other: each wait has its cause', async () => {
  const [nodes, runs] = [100, 390]
  const operators: EventInput = {
    name: 'long blocks',
    *events(names) {
      const tensors = Array.from({ length: nodes }, (_, id) => ({ ...UNKNOWN.tensor, id, name: names.id(`n-${id}`) }))
      yield [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} }, ...tensors]
      for (let first = 0; first < runs; first += 130) {
        for (const worker of [0, 1, 2]) {
          yield Array.from({ length: 130 * nodes }, (_, i) => {
            const startNs = (first * nodes + i) * 100
            const endNs = startNs + 30 + 20 * ((i + worker) % 3)
            return {
              ...UNKNOWN.operator,
              tensor: i % nodes,
              worker,
              call: first + Math.floor(i / nodes),
              startNs,
              endNs,
              waitEndNs: startNs + 90,
            }
          })
        }
      }
    },
  }
  const lines = await drawn(operators, { detail: 'full' }, { rows: /^worker/, args: ['waited_for'] })
  const waits = lines.filter((line) => line.includes('waited_for'))
  expect(waits.length).toBe(2 * nodes * runs)
})
