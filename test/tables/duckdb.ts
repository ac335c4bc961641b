import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll } from '@jest/globals'
import { texts } from './of-logs.ts'

/** A database in memory for the tests of a file: `view` makes a view of a Parquet file, `rows` queries. */
export function duckDb() {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-tables-'))
  let instance: DuckDBInstance
  let db: DuckDBConnection
  let files = 0

  beforeAll(async () => {
    instance = await DuckDBInstance.create(':memory:')
    db = await instance.connect()
  })

  afterAll(() => {
    db.closeSync()
    instance.closeSync()
    rmSync(folder, { recursive: true })
  })

  return {
    /** Each file has a new name: DuckDB keeps what it has read of a file. */
    view: async (table: string, bytes: Uint8Array) => {
      const path = join(folder, `${table}-${files++}.parquet`)
      writeFileSync(path, bytes)
      await db.run(`create or replace view ${table} as select * from '${path}'`)
    },
    /** For a log without calls. */
    viewNoCalls: () =>
      db.run('create or replace view call as select null::bigint as call, null::varchar as phase where false'),
    rows: async (sql: string) => texts((await db.runAndReadAll(sql)).getRows()),
  }
}

/** The rows of operator_sum, and what they are to be: sums of the rows of operator. */
export const SUMS = {
  rows: `select phase, role, op, type, backend, operators, dur_ns, wait_ns, inner_wait_ns, longest_ns, flop, bytes_read, bytes_written,
      bytes_are_max from operator_sum order by all`,
  expected: `select phase, role, op, type, backend, count(*), sum(operator.dur_ns), sum(wait_ns), sum(inner_wait_ns), max(operator.dur_ns),
      sum(flop), sum(bytes_read), sum(bytes_written), bool_or(bytes_are_max)
    from operator left join call on call.call = operator.call group by all order by all`,
}
