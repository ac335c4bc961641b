import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { convert, inputOf, openTrace, type TableName } from '../../lib/index.ts'
import { byHyparquet, LOGS, ROOT, tablesIn, texts } from './of-logs.ts'

/** Figures by SQL over tables are those over the trace of the same log, for each fixture and example. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-tables-'))
let instance: DuckDBInstance
let db: DuckDBConnection

beforeAll(async () => {
  instance = await DuckDBInstance.create(':memory:')
  db = await instance.connect()
})

afterAll(() => {
  db.closeSync()
  instance.closeSync()
  rmSync(folder, { recursive: true })
})

/** The rows of operator_sum, and what they are to be. */
const SUMS = [
  `select phase, role, op, type, backend, operators, dur_ns, wait_ns, inner_wait_ns, longest_ns, flop, bytes_read, bytes_written,
     bytes_are_max from operator_sum order by all`,
  `select phase, role, op, type, backend, count(*), sum(operator.dur_ns), sum(wait_ns), sum(inner_wait_ns), max(operator.dur_ns), sum(flop),
     sum(bytes_read), sum(bytes_written), bool_or(bytes_are_max)
   from operator left join call on call.call = operator.call group by all order by all`,
] as const

/** What is compared: SQL over the table, and over the trace. */
const FIGURES: readonly (readonly [table: TableName, ofTable: string, ofTrace: string])[] = [
  [
    'operator',
    `select split_part(op, '+', 1) op, count(*), sum(dur_ns), sum(inner_wait_ns),
       sum(ts_ns - (select min(ts_ns) from operator)) from operator group by 1 order by 1`,
    `select coalesce(extract_arg(arg_set_id, 'debug.op'), '') op, count(*), sum(dur),
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
    `select name, count(*), sum(dur), sum(extract_arg(arg_set_id, 'debug.taken_by_ns')) from slice where category = 'state' group by 1 order by 1`,
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
       where t.name not in ('GFLOP/s', 'tok/s') group by 1 order by 1`,
  ],
  [
    'operator',
    "select count(*) filter (wait_ns > 0), coalesce(sum(wait_ns), 0), coalesce(sum(flop) filter (not contains(op, '+')), 0) from operator",
    `select count(*) filter (where category = 'barrier'), coalesce(sum(dur) filter (where category = 'barrier'), 0),
       coalesce(sum(extract_arg(arg_set_id, 'debug.flop')), 0) from slice where category in ('operator', 'barrier')`,
  ],
]

test.each(LOGS)('%s', async (path) => {
  const made = await tablesIn(path).catch((error) => error as Error)
  if (made instanceof Error) return expect(made.name).toMatch(/^(FormatError|UsageError)$/)
  const { files, rows } = made
  const number = LOGS.indexOf(path) // DuckDB keeps what it has read of a file
  await db.run('create or replace view call as select null::bigint as call, null::varchar as phase where false')
  for (const [table, pieces] of files) {
    const bytes = Buffer.concat(pieces)
    const file = join(folder, `${table}-${number}.parquet`)
    writeFileSync(file, bytes)
    await db.run(`create or replace view ${table} as select * from '${file}'`)
    const all = texts((await db.runAndReadAll(`select * from ${table}`)).getRows())
    expect(all).toHaveLength(rows[table]!)
    expect(texts(await byHyparquet(bytes))).toEqual(all)
  }
  expect(files.has('operator_sum')).toBe(files.has('operator'))
  if (files.has('operator')) {
    const [found, wanted] = await Promise.all(SUMS.map(async (sql) => texts((await db.runAndReadAll(sql)).getRows())))
    expect(found).toEqual(wanted)
  }
  const figures = FIGURES.filter(([table]) => files.has(table))
  if (figures.length === 0) return
  const trace = await openTrace(convert(inputOf(join(ROOT, path)), { detail: 'full', all: true }))
  try {
    for (const [, ofTable, ofTrace] of figures)
      expect(texts((await db.runAndReadAll(ofTable)).getRows())).toEqual(texts(trace.query(ofTrace).rows))
  } finally {
    trace.close()
  }
})
