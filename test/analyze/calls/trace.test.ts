import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Analysis, analyze, convert, summarize } from '../../../lib/index.ts'
import { inputOf, openTrace } from '../../../lib/node.ts'
import type { OpenTrace } from '../../../lib/sql.ts'

/** The figures of calls, computed again in SQL from the converted trace. */

const LOG = 'examples/moe.ggtrace.gz'
let trace: OpenTrace
let analysis: Analysis

beforeAll(async () => {
  trace = await openTrace(convert(inputOf(LOG), { detail: 'full' }))
  analysis = await analyze(inputOf(LOG), { series: ['calls'] })
})
afterAll(() => trace.close())

/** Calls in order: their time, the end of the one before, and their position. */
const CALLS = `with call as (select ts, dur, ts + dur as end, lag(ts + dur) over (order by ts) as before,
  extract_arg(arg_set_id, 'debug.phase') as phase, extract_arg(arg_set_id, 'debug.call') as call,
  extract_arg(arg_set_id, 'debug.n_tokens') as tokens, extract_arg(arg_set_id, 'debug.position') as position
  from slice where category = 'token')`
/** Operators of worker 0, and the barrier after each, in the calls that are points of the slope. */
const POINTS = `${CALLS}, point as (select * from call where phase = 'decode' and call > 1),
  own as (select slice.name, slice.category, slice.ts, slice.dur, 
    iif(lag(category) over row = 'barrier', lag(slice.name, 2) over row, lag(slice.name) over row) as before from slice
    join track on track.id = slice.track_id
    where track.name = 'worker 0' and slice.category in ('operator', 'barrier') window row as (order by slice.ts, slice.id)),
  part as (select iif(category = 'barrier', own.before, own.name) as name, position, sum(own.dur) as dur from own
    join point on own.ts >= point.ts and own.ts < point.end group by 1, point.ts)`
/** Slope of y against x, in ns per token: the sum over all points, also those without the part. */
const SLOPE = (y: string) => `(sum(x * ${y}) - sum(x) * sum(${y}) / count()) / (sum(x * x) - sum(x) * sum(x) / count())`

const rows = (sql: string) => trace.query(sql).rows
const row = (sql: string) => rows(sql)[0]!

test('TTFT, prefill tok/s, and TPOT: sum, count and quantiles', async () => {
  const { calls } = analysis
  const times = rows(`${CALLS} select end - before from call where phase = 'decode' order by 1`).map(([ns]) =>
    Number(ns),
  )
  const sum = times.reduce((all, ns) => all + ns, 0)
  const tpot = calls.tpot!
  expect([tpot.count, tpot.mean_ns, tpot.min_ns, tpot.max_ns]).toEqual([8, sum / 8, times[0], times[7]])
  for (const [q, ns] of [
    [0.5, tpot.p50_ns],
    [0.9, tpot.p90_ns],
    [0.99, tpot.p99_ns],
  ] as const) {
    const exact = times[Math.ceil(q * 8) - 1]!
    expect(Math.abs(ns - exact) / exact).toBeLessThanOrEqual(0.01)
  }
  const [prefillNs, tokens] = row(`${CALLS} select sum(dur), sum(tokens) from call where phase = 'prefill'`)
  expect(calls.ttft_ns).toBe(prefillNs)
  expect(calls.prefill_tokens_per_s).toBeCloseTo((Number(tokens) * 1e9) / Number(prefillNs), 9)
  const summary = await summarize(inputOf(LOG))
  expect(calls).toMatchObject(summary.calls)
  expect(calls.tpot_ns).toBe(tpot.mean_ns)
  const inOrder = rows(`${CALLS} select end - before from call where phase = 'decode' order by ts`).map(([ns]) =>
    Number(ns),
  )
  const differences = inOrder.slice(1).map((ns, i) => Math.abs(ns - inOrder[i]!))
  const { jitter } = calls.contexts[0]!
  expect(jitter!.mean_difference_ns).toBeCloseTo(differences.reduce((all, ns) => all + ns, 0) / 7, 6)
  expect(jitter!.standard_deviation_ns).toBeCloseTo(
    Math.sqrt(times.reduce((all, ns) => all + (ns - sum / 8) ** 2, 0) / 8),
    6,
  )
})

test('the growth with the context, and its parts by role', () => {
  const { tpot, between_calls, call, operators, points } = analysis.calls.slope!
  const [count, ofTpot, ofBetween, ofCall] =
    row(`${POINTS} select count(), ${SLOPE('y')}, ${SLOPE('b')}, ${SLOPE('d')} from
    (select 1.0 * position as x, end - before as y, ts - before as b, dur as d from point)`).map(Number)
  expect(points).toBe(count)
  expect(tpot.ms_per_1000_tokens).toBeCloseTo(ofTpot! / 1000, 6)
  expect(between_calls.ms_per_1000_tokens).toBeCloseTo(ofBetween! / 1000, 6)
  expect(call.ms_per_1000_tokens).toBeCloseTo(ofCall! / 1000, 6)
  const parts =
    rows(`${POINTS} select name, ${SLOPE('d')}, avg(d) from (select part.name, 1.0 * point.position as x, part.dur as d
    from part join point using (position)) group by 1`)
  const found = operators!.parts.filter(({ what }) => what === 'role')
  expect(found.length).toBe(parts.length)
  for (const [name, slope, mean] of parts) {
    const part = found.find(({ role, op }) => `${role} ${op}`.trim() === name)!
    expect([name, part.ms_per_1000_tokens.toFixed(6)]).toEqual([name, (Number(slope) / 1000).toFixed(6)])
    expect(part.mean_ns).toBeCloseTo(Number(mean), 3)
  }
  const [rest] = row(`${POINTS} select avg(dur) - (select sum(dur) from part) / 7.0 from point`)
  expect(operators!.parts.find(({ what }) => what === 'rest')!.mean_ns).toBeCloseTo(Number(rest), 3)
})

test('the table of calls: times, and time of operators of all workers', () => {
  const expected = rows(`${CALLS} select call, call.ts - (select min(ts) from call), call.dur, position,
    (select sum(dur) from slice where category = 'operator' and ts >= call.ts and ts < end),
    (select sum(dur) from slice where category = 'barrier' and ts >= call.ts and ts < end) from call order by 1`)
  const { rows: found, count, every } = analysis.series!.calls!
  expect([count, every]).toEqual([9, 1])
  const sum = (of: object | null) => Object.values(of ?? {}).reduce((all: number, ns: number) => all + ns, 0)
  expect(
    found.map((row) => [
      row.call,
      row.start_ns,
      row.time_ns,
      row.context_tokens,
      sum(row.operator_time_ns),
      row.wait_ns,
    ]),
  ).toEqual(expected)
})
