import { DDSketch } from '@datadog/sketches-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { GROUP_KEYS, groupOperators, readAnalysis } from '../../lib/analysis.ts'
import { bucketsOf, distributionOf, RELATIVE_ERROR } from '../../lib/analyze/common/sketches.ts'
import { type Analysis, analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { inParts, isLong } from '../long.ts'
import { opOf } from '../operators-sql.ts'
import { counted } from '../read/ggtrace-logs.ts'
import { scenario } from './scenario.ts'

/** Sums of rows, against SQL over the trace of the same log, exact quantiles, and properties. */

const LOG = inputOf('examples/moe.ggtrace.gz')
let analysis: Analysis
let trace: OpenTrace

beforeAll(async () => {
  analysis = await analyze(LOG)
  trace = await openTrace(convert(LOG, { detail: 'full' }))
})

afterAll(() => trace.close())

const keys = fc.subarray([...GROUP_KEYS])
const total = <T>(rows: readonly T[], of: (row: T) => number) => rows.reduce((sum, row) => sum + of(row), 0)

describe('any grouping', () => {
  inParts(test)('sums to the whole; the shares of a phase sum to 1', () => {
    const { operators } = analysis
    const phases = [...new Set(operators.rows.map(({ phase }) => phase))]
    fc.assert(
      fc.property(keys, (by) => {
        const groups = groupOperators(analysis, by)
        expect(total(groups, ({ executions }) => executions)).toBe(operators.executions)
        expect(total(groups, ({ operator_time_ns }) => operator_time_ns)).toBe(operators.operator_time_ns)
        expect(total(groups, ({ wait_ns }) => wait_ns)).toBe(operators.wait_ns)
        for (const phase of phases) {
          expect(total(groups, ({ shares }) => shares[phase]?.operator_time_share ?? 0)).toBeCloseTo(1, 9)
          const wall = total(groups, ({ shares }) => shares[phase]?.wall_share ?? 0)
          expect(wall).toBeCloseTo(by.includes('worker') ? 0 : 1, 9)
        }
        for (const group of groups) for (const key of by) expect(group[key]).not.toBeNull()
        expect(new Set(groups.map((group) => JSON.stringify(by.map((key) => group[key])))).size).toBe(groups.length)
      }),
      { numRuns: isLong ? 60 : 20 },
    )
  })

  test('of a stored Analysis it is the same', async () => {
    const stored = await readAnalysis(JSON.stringify(analysis))
    expect(stored).toEqual(analysis)
    fc.assert(
      fc.property(keys, (by) => {
        expect(groupOperators(stored, by)).toEqual(groupOperators(analysis, by))
      }),
      { numRuns: 20 },
    )
  })
})

test('by op and phase: count, time and quantiles of the slices of the trace', () => {
  const sql = `select ${opOf('s')}, extract_arg(c.arg_set_id, 'debug.phase'), s.dur from slice s
    join slice c on c.category = 'token' and extract_arg(c.arg_set_id, 'debug.call') = extract_arg(s.arg_set_id, 'debug.call')
    where s.category = 'operator' and s.name not glob '*+*' order by s.dur`
  const durations = new Map<string, number[]>()
  for (const [op, phase, dur] of trace.query(sql).rows) {
    const key = `${op} ${phase}`
    durations.set(key, [...(durations.get(key) ?? []), Number(dur)])
  }
  const groups = groupOperators(analysis, ['op', 'phase']).filter(({ op }) => !op!.includes('+'))
  expect(groups.map(({ op, phase }) => `${op} ${phase}`).sort()).toEqual([...durations.keys()].sort())
  for (const { op, phase, executions, operator_time_ns, mean_ns, duration } of groups) {
    const all = durations.get(`${op} ${phase}`)!
    const sum = total(all, (ns) => ns)
    expect([executions, operator_time_ns, mean_ns]).toEqual([all.length, sum, sum / all.length])
    expectQuantiles(duration!, all)
  }
})

test('by worker: computing and waiting of the slices of its track, and no figures of whole steps', () => {
  const sql = `select t.name, sum(s.category = 'operator'), sum(iif(s.category = 'operator', s.dur, 0)), sum(iif(s.category = 'barrier', s.dur, 0))
    from slice s join track t on s.track_id = t.id where s.category in ('operator', 'barrier') group by 1 order by 1`
  const groups = groupOperators(analysis, ['worker'])
  expect(
    groups.map((group) => [`worker ${group.worker}`, group.executions, group.operator_time_ns, group.wait_ns]),
  ).toEqual(trace.query(sql).rows.map(([name, ...sums]) => [name, ...sums.map(Number)]))
  expect(total(groups, ({ last }) => last!)).toBe(total(analysis.operators.rows, ({ steps }) => steps))
  for (const { wall_ns, flop, gb_per_s, duration, steps, counters } of groups)
    expect([wall_ns, flop, gb_per_s, duration, steps, counters]).toEqual([null, null, null, null, null, {}])
})

test('rates of a run that was computed by hand', async () => {
  const [ffn, q] = groupOperators(await analyze(scenario()), ['block'])
  // 350 and 230 ns of wall time; FLOP and bytes: see operators.test.ts
  expect(ffn).toMatchObject({ block: 'FFN', role: 'ffn_up', shape: '8×4×32', steps: 1, wall_ns: 350, bytes_read: 656 })
  expect(ffn!.gflop_per_s).toBeCloseTo((2 * 8 * 4 * 32) / 350, 12)
  expect(ffn!.gb_per_s).toBeCloseTo((656 + 128) / 350, 12)
  expect(ffn!.flop_per_byte).toBeCloseTo(2048 / 784, 12)
  expect(ffn!.shares).toEqual({ prefill: { wall_share: 350 / 580, operator_time_share: 650 / 1050 } })
  expect(q!.shares).toEqual({ prefill: { wall_share: 230 / 580, operator_time_share: 400 / 1050 } })
})

test('a key that was not asked for is there where all operators have the same value', () => {
  const [attention] = groupOperators(analysis, ['op']).filter(({ op }) => op === 'FLASH_ATTN_EXT')
  expect(attention).toMatchObject({
    role: '',
    block: 'attention',
    type: 'f32',
    backend: 'CPU',
    phase: null,
    shape: null,
  })
})

test('what is not known of a row is not known of the group', () => {
  const [row, ...rows] = analysis.operators.rows
  const without = (changed: object) => ({
    operators: { ...analysis.operators, rows: [{ ...row!, ...changed }, ...rows] },
  })
  const all = (changed: object) => groupOperators(without(changed), [])[0]!
  expect(all({})).toMatchObject({ flop: expect.any(Number), gb_per_s: expect.any(Number), duration: expect.anything() })
  expect(all({ flop: -1 })).toMatchObject({
    flop: null,
    gflop_per_s: null,
    flop_per_byte: null,
    gb_per_s: expect.any(Number),
  })
  expect(all({ bytes_read: -1 })).toMatchObject({ bytes_read: null, gb_per_s: null, flop_per_byte: null })
  expect(all({ duration: null, buckets: null })).toMatchObject({ duration: null, mean_ns: expect.any(Number) })
})

test('counters: totals, per operator and per byte', async () => {
  const { operators } = await analyze({ name: 'counted', source: counted() })
  const [all] = groupOperators({ operators }, [])
  const entries = Object.entries(all!.counters)
  expect(entries.length).toBeGreaterThan(0)
  const bytes = total(operators.rows, (row) => row.bytes_read + row.bytes_written)
  for (const [key, { total: sum, per_operator, per_byte }] of entries) {
    expect(sum).toBe(total(operators.rows, ({ counters }) => counters[key] ?? 0))
    expect(per_operator).toBe(sum / operators.executions)
    if (per_byte !== null) expect(per_byte).toBe(sum / bytes)
  }
})

test('quantiles of merged rows are within 1 % of the exact ones', () => {
  const durations = fc.array(fc.oneof(fc.nat(50), fc.nat(1e10)), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(fc.array(durations, { minLength: 1, maxLength: 8 }), (parts) => {
      const rows = parts.map((values) => {
        const sketch = new DDSketch({ relativeAccuracy: RELATIVE_ERROR })
        for (const value of values) sketch.accept(value)
        const sum = total(values, (value) => value)
        const duration = distributionOf(sketch, values.length, sum)
        return { ...analysis.operators.rows[0]!, duration, buckets: bucketsOf(sketch) }
      })
      const [group] = groupOperators({ operators: { ...analysis.operators, rows } }, [])
      expectQuantiles(
        group!.duration!,
        parts.flat().sort((a, b) => a - b),
      )
    }),
  )
})

/** `sorted`: the exact values. */
function expectQuantiles(found: NonNullable<Analysis['operators']['rows'][0]['duration']>, sorted: readonly number[]) {
  const { count, min_ns, max_ns, mean_ns } = found
  expect([count, min_ns, max_ns]).toEqual([sorted.length, sorted[0], sorted.at(-1)])
  expect(Math.abs(mean_ns / (total(sorted, (ns) => ns) / count || 1) - (mean_ns > 0 ? 1 : 0))).toBeLessThan(1e-9)
  for (const [quantile, value] of [
    [0.5, found.p50_ns],
    [0.9, found.p90_ns],
    [0.99, found.p99_ns],
  ] as const) {
    const exact = sorted[Math.ceil(quantile * count) - 1]!
    expect(Math.abs(value - exact)).toBeLessThanOrEqual(RELATIVE_ERROR * exact + 0.5) // rounded to ns
  }
}
