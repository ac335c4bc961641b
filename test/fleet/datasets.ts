import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { Column } from '../../lib/tables/column.ts'
import { TABLE_NAMES, TABLES, type TableName, tablePath } from '../../lib/tables/schema.ts'

type Row = Readonly<Record<string, unknown>>
/** Rows of several runs. */
export type Rows = Partial<Record<TableName, readonly Row[]>>

const TYPES = { string: 'VARCHAR', int32: 'INTEGER', int64: 'BIGINT', double: 'DOUBLE', boolean: 'BOOLEAN' } as const

/** Writes a file of each table that has rows, all of one day and under one name: engines do not mind how many runs are in a file. */
export async function writeDataset(root: string, tables: Rows, day = '2026-01-05', name = 'runs'): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  mkdirSync(root, { recursive: true })
  for (const table of TABLE_NAMES) {
    const rows = tables[table] ?? []
    if (rows.length === 0) continue
    const path = join(root, tablePath(table, day, name))
    mkdirSync(dirname(path), { recursive: true })
    const columns = Object.entries<Column>(TABLES[table].columns).map(
      ([column, { type }]) => `'${column}': '${TYPES[type]}'`,
    )
    const json = join(root, 'rows.ndjson')
    writeFileSync(json, rows.map((row) => JSON.stringify(row)).join('\n'))
    const from = `read_json('${json}', format = 'newline_delimited', columns = {${columns.join(', ')}})`
    await connection.run(`copy (select * from ${from}) to '${path}' (format parquet)`)
  }
  connection.closeSync()
  instance.closeSync()
}

/** The same as files of two versions: the older one did not write sums of operators. */
export async function writeMixedDataset(root: string, tables: Rows): Promise<void> {
  const isOlder = ({ trace_id }: Row) => (trace_id as string) < '8'
  const rowsOf = (isMeant: (row: Row) => boolean): Rows =>
    Object.fromEntries(Object.entries(tables).map(([table, rows]) => [table, rows.filter(isMeant)]))
  await writeDataset(root, { ...rowsOf(isOlder), operator_sum: [] }, '2026-01-05', 'older')
  await writeDataset(
    root,
    rowsOf((row) => !isOlder(row)),
    '2026-01-06',
    'newer',
  )
}
