import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { TableName } from '../../lib/tables.ts'
import { inParts, someOf } from '../long.ts'
import { opOf } from '../operators-sql.ts'
import { duckDb, SUMS } from './duckdb.ts'
import { byHyparquet, LOGS, ROOT, tablesIn, texts } from './of-logs.ts'

/** Figures by SQL over tables are those over the trace of the same log, for each fixture and example. */
const db = duckDb()

/** What is compared: SQL over the table, and over the trace. */
const FIGURES: readonly (readonly [table: TableName, ofTable: string, ofTrace: string])[] = [
  [
    'operator',
    `select op, count(*), sum(dur_ns), sum(inner_wait_ns),
       sum(ts_ns - (select min(ts_ns) from operator)) from operator group by 1 order by 1`,
    `select ${opOf('slice')} op, count(*), sum(dur),
       sum(coalesce(extract_arg(arg_set_id, 'debug.inner_wait_ns'), 0)),
       sum(ts - (select min(ts) from slice where category = 'operator')) from slice where category = 'operator' group by 1 order by 1`,
  ],
  [
    'call',
    `select phase, count(*), sum(dur_ns), sum(n_tokens), sum(ts_ns - (select min(ts_ns) from call)) from call group by 1 order by 1`,
    `select extract_arg(arg_set_id, 'debug.phase') phase, count(*), sum(dur), sum(extract_arg(arg_set_id, 'debug.n_tokens')),
       sum(ts - (select min(ts) from slice where category = 'token')) from slice where category = 'token' group by 1 order by 1`,
  ],
  [
    'operator_sum',
    `select phase, sum(operators), sum(dur_ns), max(longest_ns) from operator_sum where phase is not null group by 1 order by 1`,
    `select extract_arg(c.arg_set_id, 'debug.phase') phase, count(*), sum(o.dur), max(o.dur) from slice o
       join slice c on c.category = 'token' and extract_arg(c.arg_set_id, 'debug.call') = extract_arg(o.arg_set_id, 'debug.call')
       where o.category = 'operator' group by 1 order by 1`,
  ],
  [
    'state',
    `select case state when 'running' then 'running on CPU ' || cpu when 'runnable' then 'runnable (preempted)'
         when 'woken' then 'runnable (woken)' else state || coalesce(' (' || "wait" || ')', '') end as name,
       count(*), sum(dur_ns), sum(taken_by_ns) from state group by 1 order by 1`,
    `select name, count(*), sum(dur), sum(extract_arg(arg_set_id, 'debug.taken_by_ns')) from slice where category = 'state'
       and name not in ('starting', 'not running', 'ended') group by 1 order by 1`,
  ],
  [
    'request',
    `select outcome, count(*), sum(dur_ns), sum(ttft_ns), sum(n_prompt), sum(n_gen) from request group by 1 order by 1`,
    `select extract_arg(arg_set_id, 'debug.outcome') outcome, count(*), sum(extract_arg(arg_set_id, 'debug.latency_ns')),
       sum(extract_arg(arg_set_id, 'debug.ttft_ns')), sum(extract_arg(arg_set_id, 'debug.prompt_tokens')), sum(extract_arg(arg_set_id, 'debug.generated_tokens')) from slice
       where category = 'request' and extract_arg(arg_set_id, 'debug.outcome') is not null group by 1 order by 1`,
  ],
  [
    'gpu',
    `select what, count(*), sum(dur_ns), sum(correlation) from gpu where what <> 'sync' group by 1 order by 1`,
    `select extract_arg(arg_set_id, 'kind') what, count(*), sum(dur), sum(extract_arg(arg_set_id, 'correlation')) from gpu_slice group by 1 order by 1`,
  ],
  [
    'expert',
    `select count(*) from expert`,
    `select sum(1 + length(ids) - length(replace(replace(ids, ',', ''), ';', ''))) from
       (select extract_arg(arg_set_id, 'debug.experts') ids from slice where category = 'expert')`,
  ],
  [
    'counter',
    `select name, count(*), round(sum(value), 3) from counter group by 1 order by 1`,
    `select t.name, count(*), round(sum(value), 3) from counter c join track t on c.track_id = t.id
       where t.name not in ('GFLOP/s', 'tok/s', 'at the top') group by 1 order by 1`,
  ],
  [
    'operator',
    "select coalesce(sum(wait_ns), 0), coalesce(sum(flop) filter (not contains(op, '+')), 0) from operator",
    `select coalesce(sum(dur) filter (where category = 'barrier'), 0),
       coalesce(sum(extract_arg(arg_set_id, 'debug.flop')), 0) from slice where category in ('operator', 'barrier')`,
  ],
]

inParts(test).each(someOf(LOGS, 12))('%s', async (path) => {
  const made = await tablesIn(path).catch((error) => error as Error)
  if (made instanceof Error) return expect(made.name).toMatch(/^(FormatError|UsageError)$/)
  const { files, rows } = made
  await db.viewNoCalls()
  for (const [table, pieces] of files) {
    const bytes = Buffer.concat(pieces)
    await db.view(table, bytes)
    const all = await db.rows(`select * from ${table}`)
    expect(all).toHaveLength(rows[table]!)
    expect(texts(await byHyparquet(bytes))).toEqual(all)
  }
  expect(files.has('operator_sum')).toBe(files.has('operator'))
  if (files.has('operator')) {
    expect(await db.rows(SUMS.rows)).toEqual(await db.rows(SUMS.expected))
  }
  const figures = FIGURES.filter(([table]) => files.has(table))
  if (figures.length === 0) return
  const trace = await openTrace(convert(inputOf(join(ROOT, path)), { detail: 'full', all: true }))
  try {
    for (const [, ofTable, ofTrace] of figures) expect(await db.rows(ofTable)).toEqual(texts(trace.query(ofTrace).rows))
  } finally {
    trace.close()
  }
})
