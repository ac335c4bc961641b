import { expect } from '@jest/globals'
import { type Analysis, type ConvertOptions, convert, type Input } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { Cell, OpenTrace } from '../../lib/sql.ts'

/** Comparison of an Analysis with the figures that the package `ggml` computes from the trace of the same log. */

type Row = Record<string, Cell>

/** Rows of a query as objects. */
export function rowsOf(trace: OpenTrace, sql: string): Row[] {
  const { columns, rows } = trace.query(sql)
  return rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]!])))
}

const MODULES = ['calls', 'operators', 'workers', 'waits', 'interference', 'experts', 'requests', 'sums']

/** The converted trace, opened, with modules of the package included: by default all. */
export async function traceOf(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
  modules: readonly string[] = MODULES,
): Promise<OpenTrace> {
  const trace = await openTrace(convert(inputs as Input, options))
  for (const module of modules) trace.query(`INCLUDE PERFETTO MODULE ggml.${module}`)
  return trace
}

/** Sums of rows with the same key, in order of the keys. */
function summed<T>(rows: readonly T[], keyOf: (row: T) => string, valuesOf: (row: T) => readonly Cell[]) {
  const sums = new Map<string, number[]>()
  for (const row of rows) {
    const before = sums.get(keyOf(row))
    sums.set(
      keyOf(row),
      valuesOf(row).map((value, i) => Number(value) + (before?.[i] ?? 0)),
    )
  }
  return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)))
}

const close = (found: number | null, expected: Cell) => {
  expect(found === null).toBe(expected === null)
  if (found !== null) expect(Math.abs(found - Number(expected))).toBeLessThanOrEqual(1e-9 * Math.abs(found))
}

/** Quantiles of an Analysis have an error of at most 1 %, and are rounded to ns. */
const near = (found: number, exact: Cell) =>
  expect(Math.abs(found - Number(exact))).toBeLessThanOrEqual(0.01 * Number(exact) + 1)

/** Counts and tokens of calls, TTFT, TPOT. */
export function sameCalls({ calls }: Analysis, trace: OpenTrace): void {
  const byPhase = rowsOf(trace, 'SELECT phase, calls, tokens, failed FROM ggml_calls_by_phase')
  expect(
    summed(
      byPhase.filter((row) => row['calls'] !== 0),
      (row) => String(row['phase']),
      (row) => [row['calls']!, row['tokens']!],
    ),
  ).toEqual(
    summed(
      Object.entries(calls.by_phase),
      ([phase]) => phase,
      ([, { calls, tokens }]) => [calls, tokens],
    ),
  )
  expect(byPhase.reduce((sum, row) => sum + Number(row['failed']), 0)).toBe(calls.failed)
  const [of] = rowsOf(trace, 'SELECT * FROM ggml_decoding')
  if (!of) return expect(calls.count).toBe(0)
  expect(of['ttft']).toBe(calls.ttft_ns)
  close(calls.prefill_tokens_per_s, of['prefill_tokens_per_s']!)
  close(calls.decode_tokens_per_s, of['tokens_per_s']!)
  close(calls.sequences, of['sequences']!)
  close(calls.tpot_ns, of['tpot']!)
  const { tpot } = calls
  expect(of['tokens']).toBe(tpot?.count ?? 0)
  if (!tpot) return
  close(tpot.mean_ns, of['tpot']!)
  close(tpot.min_ns, of['tpot_min']!)
  close(tpot.max_ns, of['tpot_max']!)
  near(tpot.p50_ns, of['tpot_p50']!)
  near(tpot.p90_ns, of['tpot_p90']!)
  near(tpot.p99_ns, of['tpot_p99']!)
}

/** Executions, computing and waiting by op, role, layer, phase and worker. */
export function sameOperators({ operators }: Analysis, trace: OpenTrace, areAllDrawn: boolean): void {
  const key = (...of: unknown[]) => JSON.stringify(of)
  const rows = rowsOf(
    trace,
    `SELECT op, role, ifnull(layer, -1) AS layer, phase, worker, count() AS n, sum(dur) AS dur, sum(wait_dur) AS wait,
      sum(inner_wait_dur) AS inner_wait FROM ggml_operators GROUP BY 1, 2, 3, 4, 5`,
  )
  expect(
    summed(
      rows,
      ({ op, role, layer, phase, worker }) => key(op, role, layer, phase, worker),
      ({ n, dur, wait }) => [n!, dur!, wait!],
    ),
  ).toEqual(
    summed(
      operators.rows.flatMap((row) => row.workers.map((of) => ({ ...row, of }))),
      ({ op, role, layer, phase, of }) => key(op, role, layer, phase, of.worker),
      ({ of }) => [of.executions, of.operator_time_ns, of.wait_ns],
    ),
  )
  const total = (of: string) => rows.reduce((sum, row) => sum + Number(row[of]), 0)
  expect([total('n'), total('dur'), total('wait'), total('inner_wait')]).toEqual([
    operators.executions,
    operators.operator_time_ns,
    operators.wait_ns,
    operators.rows.reduce((sum, row) => sum + row.inner_wait_ns, 0),
  ])
  const [parts] = rowsOf(
    trace,
    "SELECT sum(iif(part = 'open', dur, 0)) AS open, max(part IS NULL) AS unknown FROM ggml_waits",
  )
  const isExact = areAllDrawn && parts!['unknown'] === 0
  if (isExact) expect(parts!['open']).toBe(operators.wait_open_ns)
  else expect(Number(parts!['open'] ?? 0)).toBeLessThanOrEqual(operators.wait_open_ns!)
  const waits = rowsOf(trace, 'SELECT op, role, phase, worker, dur FROM ggml_waits')
  expect(
    summed(
      waits,
      ({ op, role, phase, worker }) => key(op, role, phase, worker),
      ({ dur }) => [dur!],
    ),
  ).toEqual(
    summed(
      operators.rows.flatMap((row) => row.workers.filter((of) => of.wait_ns > 0).map((of) => ({ ...row, of }))),
      ({ op, role, phase, of }) => key(op, role, phase, of.worker),
      ({ of }) => [of.wait_ns],
    ),
  )
}

/** Times and shares of workers, by phase. */
export function sameWorkers({ workers }: Analysis, trace: OpenTrace): void {
  const same = (found: (typeof workers)[number]['by_phase'][keyof (typeof workers)[number]['by_phase']], row: Row) => {
    expect([found!.calls, found!.call_time_ns, found!.operator_time_ns, found!.wait_ns, found!.idle_ns]).toEqual(
      ['calls', 'call_dur', 'operator_dur', 'wait_dur', 'idle_dur'].map((key) => row[key]),
    )
    close(found!.operator_share, row['operator_share']!)
    close(found!.wait_share, row['wait_share']!)
    close(found!.idle_share, row['idle_share']!)
  }
  const rows = rowsOf(trace, 'SELECT * FROM ggml_workers ORDER BY worker')
  expect(rows.map(({ worker, operators }) => [worker, operators])).toEqual(
    workers.map(({ worker, executions }) => [worker, executions]),
  )
  for (const [i, row] of rows.entries()) same(workers[i]!, row)
  const byPhase = rowsOf(trace, 'SELECT * FROM ggml_workers_by_phase ORDER BY worker')
  expect(byPhase.length).toBe(workers.reduce((sum, { by_phase }) => sum + Object.keys(by_phase).length, 0))
  for (const row of byPhase) {
    const { by_phase } = workers.find(({ worker }) => worker === row['worker'])!
    same(by_phase[row['phase'] as keyof typeof by_phase]!, row)
  }
}

/** States of the threads of workers, by worker and phase. */
export function sameInterference({ scheduling }: Analysis, trace: OpenTrace): void {
  const rows = rowsOf(trace, 'SELECT * FROM ggml_interference')
  const key = ({ worker, phase }: { worker?: Cell; phase?: Cell }) => `${worker} ${phase}`
  const figures = (scheduling?.workers ?? []).map((of) => [
    key(of),
    [of.call_time_ns, of.running_ns, of.preempted_ns, of.preemptions, of.woken_ns ?? 0, of.blocked_ns, of.unknown_ns],
    of.migrations,
  ])
  const KEYS = ['call_dur', 'running_dur', 'preempted_dur', 'preemptions', 'woken_dur', 'blocked_dur', 'unknown_dur']
  expect(Object.fromEntries(rows.map((row) => [key(row), [KEYS.map((of) => row[of]), row['migrations']]]))).toEqual(
    Object.fromEntries(figures.map(([key, ...values]) => [key, values])),
  )
}

/** Activations of the trace's choices; metrics of the summary against the views. */
export function sameSummary(trace: OpenTrace): void {
  const views: Readonly<Record<string, readonly [view: string, metrics: string, dimensions: string]>> = {
    ggml_calls: ['ggml_calls_by_phase', 'calls, tokens, dur, failed', 'phase'],
    ggml_decoding: [
      'ggml_decoding',
      'ttft, prefill_tokens_per_s, tokens, tpot, tpot_p50, tpot_p90, tpot_p99, tokens_per_s, sequences',
      'run_id',
    ],
    ggml_operators: [
      '(SELECT phase, role, op, count() AS count, sum(dur) AS dur, sum(wait_dur) AS wait_dur FROM ggml_operators GROUP BY 1, 2, 3)',
      'count, dur, wait_dur',
      'phase, role, op',
    ],
    ggml_workers: [
      'ggml_workers_by_phase',
      'calls, call_dur, operators, operator_dur, wait_dur, idle_dur',
      'worker, phase',
    ],
    ggml_interference: [
      'ggml_interference',
      'running_dur, preempted_dur, preemptions, woken_dur, blocked_dur, unknown_dur, migrations',
      'worker, phase',
    ],
    ggml_requests: [
      '(SELECT part, sum(count) AS count, sum(dur) AS dur FROM ggml_request_time GROUP BY part)',
      'count, dur',
      'part',
    ],
    ggml_experts: ['ggml_expert_activations', 'activations', 'phase, layer, expert'],
  }
  const bundles = trace.summarize()
  expect(bundles.length).toBe(Object.keys(views).length)
  const text = (row: readonly unknown[]) => JSON.stringify(row)
  for (const [prefix, [view, metrics, dimensions]] of Object.entries(views)) {
    const ids = metrics.split(', ').map((name) => `${prefix}_${name}`)
    const { rows, dimensions: names } = bundles.find((bundle) => bundle.metrics[0] === ids[0])!
    expect(names).toEqual(dimensions.split(', '))
    const expected = trace.query(`SELECT ${dimensions}, ${metrics} FROM ${view}`).rows
    const isNull = (row: readonly Cell[]) => row.slice(names.length).every((value) => value === null)
    expect(rows.map((row) => text([...row.dimensions, ...row.values])).sort()).toEqual(
      expected
        .filter((row) => !isNull(row))
        .map(text)
        .sort(),
    )
  }
}

/** Requests with their tokens and times, and the sums of their parts. */
export function sameRequests({ requests, series }: Analysis, trace: OpenTrace): void {
  const rows = rowsOf(trace, 'SELECT * FROM ggml_requests ORDER BY request')
  const known = series?.requests?.rows ?? []
  expect(rows.map(({ request, task, slot, outcome, dur, ttft }) => [request, task, slot, outcome, dur, ttft])).toEqual(
    known.map((of) => [of.id, of.task, of.slot, of.outcome, of.latency_ns, of.ttft_ns]),
  )
  expect(rows.map((of) => [of['prompt_tokens'], of['reused_tokens'], of['generated_tokens']])).toEqual(
    known.map((of) => [of.prompt_tokens, of.reused_tokens, of.generated_tokens]),
  )
  const sums = rowsOf(trace, 'SELECT part, sum(dur) AS dur FROM ggml_request_time GROUP BY part')
  const total = sums.reduce((sum, { dur }) => sum + Number(dur), 0)
  expect(total).toBe(requests?.latency_ns ?? 0)
  const of = (part: string) => Number(sums.find((row) => row['part'] === part)?.['dur'] ?? 0)
  for (const part of ['queued', 'prepare', 'sample', 'text', 'send', 'other'] as const)
    expect([part, of(part)]).toEqual([part, requests?.parts[`${part}_ns`] ?? 0])
}

/** How often each expert was chosen, by phase and layer. */
export function sameExperts({ experts }: Analysis, trace: OpenTrace): void {
  const found = rowsOf(trace, "SELECT * FROM ggml_expert_activations WHERE phase NOT IN ('none', 'warm-up')").map(
    ({ phase, layer, expert, activations }) => `${phase} ${layer ?? -1} ${expert}: ${activations}`,
  )
  const expected = (experts?.layers ?? []).flatMap(({ layer, by_phase }) =>
    Object.entries(by_phase).flatMap(([phase, { by_expert }]) =>
      by_expert.flatMap((n, expert) => (n > 0 ? [`${phase} ${layer} ${expert}: ${n}`] : [])),
    ),
  )
  expect(found.sort()).toEqual(expected.sort())
}

/** Sums of operators and waits by name, of calls in full and of sums. */
export function sameTimes({ operators }: Analysis, trace: OpenTrace): void {
  const [row] = rowsOf(
    trace,
    `SELECT sum(iif(what = 'operator', dur, 0)) AS ns, sum(iif(what = 'operator', count, 0)) AS n,
      sum(iif(what = 'barrier', dur, 0)) AS wait FROM ggml_time_by_name`,
  )
  expect([row!['ns'] ?? 0, row!['n'] ?? 0, row!['wait'] ?? 0]).toEqual([
    operators.operator_time_ns,
    operators.executions,
    operators.wait_ns,
  ])
}
