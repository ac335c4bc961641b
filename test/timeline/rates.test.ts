import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'

/** Rates and the KV cache of a recorded run, beside what SQL works out from the slices. */

let trace: OpenTrace
beforeAll(async () => {
  trace = await openTrace(convert(inputOf('test/recorded/outside-graphs.ggtrace.gz'), { detail: 'full' }))
})
afterAll(() => trace.close())

const samples = (name: string) =>
  trace.query(`select ts, value from counter c join track t on c.track_id = t.id where t.name = '${name}' order by ts`)
    .rows

test('tok/s is the tokens of each call by its time, and 0 between calls', async () => {
  const calls =
    trace.query(`select ts, dur, extract_arg(arg_set_id, 'debug.n_tokens') from slice where category = 'token'
    order by ts`).rows as [number, number, number][]
  expect(samples('tok/s')).toEqual(
    calls.flatMap(([ts, dur, tokens]) => [
      [ts, (tokens * 1e9) / dur],
      [ts + dur, 0],
    ]),
  )
})

test('units are what is counted, or such that the viewer writes no exponents where values are large', () => {
  const units =
    trace.query(`select t.name, t.unit, max(c.value) > 1000 from counter_track t join counter c on c.track_id = t.id
    where t.name in ('tok/s', 'GB/s', 'GFLOP/s', 'weights: offset read', 'KV cache: cells used (inferred)') group by 1, 2 order by 1`).rows
  expect(units).toEqual([
    ['GB/s', 'GB/s', 0],
    ['GFLOP/s', 'GFLOP/s', 0],
    ['KV cache: cells used (inferred)', 'cells', 0],
    ['tok/s', 'tok/s', 1],
    ['weights: offset read', 'bytes', 1],
  ])
})

test('GFLOP/s and GB/s are the work of a graph by its time', async () => {
  const graphs = trace.query(`with op as (select s.ts, s.dur, s.arg_set_id, t.name as track,
      extract_arg(s.arg_set_id, 'debug.call') as token from slice s join track t on s.track_id = t.id where category = 'operator')
    select token, min(ts), max(ts + dur), sum(iif(track = 'worker 0', extract_arg(arg_set_id, 'debug.flop'), 0)) from op
    group by token order by token`).rows as [number, number, number, number][]
  const flops = samples('GFLOP/s').filter(([, value]) => Number(value) > 0) as [number, number][]
  expect(flops.map(([ts]) => ts)).toEqual(graphs.map(([, start]) => start))
  for (const [i, [, start, end, flop]] of graphs.entries()) expect(flops[i]![1]).toBeCloseTo(flop / (end - start), 6)
  // Prefill: 16 tokens but for the last layer's, decode: 1. By hand, of a layer of a decode: Q and output 512 × 512,
  // K and V 512 × 256, attention over 256 cells of 8 heads of 64, router 512 × 8, two experts of 3 × 512 × 768.
  const layer = 2 * (2 * 512 * 512 + 2 * 512 * 256 + 2 * 64 * 256 * 8 + 512 * 8 + 2 * 3 * 512 * 768)
  expect(graphs.slice(1).map(([, , , flop]) => flop)).toEqual(Array(8).fill(6 * layer + 2 * 512 * 2048))
  const bytes = samples('GB/s').filter(([, value]) => Number(value) > 0) as [number, number][]
  const known = trace.query(`select sum(extract_arg(s.arg_set_id, 'debug.bytes_moved')) from slice s
    join track t on s.track_id = t.id where category = 'operator' and t.name = 'worker 0'
    and extract_arg(s.arg_set_id, 'debug.call') = 4`).rows[0]![0] as number
  const moved = bytes[4]![1] * (graphs[4]![2] - graphs[4]![1])
  // Fused operators have no argument of their own: 13 of RMS_NORM and MUL on 512 numbers, and their weights.
  expect(Math.round(moved - known)).toBe(13 * 3 * 2048)
})

test('the KV cache grows by a cell for each position, of all layers', async () => {
  const ends = trace.query("select ts + dur from slice where category = 'token' order by ts").rows
  const cells = [16, 17, 18, 19, 20, 21, 22, 23, 24]
  expect(samples('KV cache: cells used (inferred)')).toEqual(ends.map(([end], i) => [end, cells[i]]))
  // Keys and values of 6 layers, 256 numbers of 2 bytes each.
  const bytes = samples('KV cache: bytes used (inferred)').map(([, value]) => value)
  expect(bytes).toEqual(cells.map((used) => used * 6 * 2 * 256 * 2))
})
