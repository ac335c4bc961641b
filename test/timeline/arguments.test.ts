import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { convert, inputOf, type OpenTrace, openTrace } from '../../lib/index.ts'

/** Arguments that SQL groups by, in the trace of a recorded mixture of experts at the default level of detail. */

let trace: OpenTrace
beforeAll(async () => {
  trace = await openTrace(convert(inputOf('examples/moe.ggtrace.gz')))
})
afterAll(() => trace.close())

const arg = (key: string, of = 'slice') => `extract_arg(${of}.arg_set_id, 'debug.${key}')`

test('every operator has the index of its call, and lies within that call', () => {
  const calls = trace.query(`select ${arg('call', 'c')}, count(*), min(o.ts >= c.ts and o.ts + o.dur <= c.ts + c.dur)
    from slice o join slice c on ${arg('call', 'o')} = ${arg('call', 'c')} and c.category = 'token'
    where o.category = 'operator' group by 1 order by 1`).rows
  expect(calls).toEqual(Array.from({ length: 9 }, (_, call) => [call, 322, 1]))
  expect(trace.query("select count(*) from slice where category = 'operator'").rows).toEqual([[9 * 322]])
})

test('nothing calls the index of a call a token', () => {
  expect(trace.query("select count(*) from args where key = 'debug.token'").rows).toEqual([[0]])
})

test('time by the type of the weights', () => {
  const types = trace.query(`select distinct ${arg('op')}, ${arg('src0_type')}, ${arg('type')} from slice
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
    expect(row).toBe(`layer ${layer}`)
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
