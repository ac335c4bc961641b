import type { RowOf, TableSchema } from './column.ts'
import { call, request, trace } from './run-tables.ts'
import { counter, expert, finding, gpu, operator, operator_sum, state } from './work-tables.ts'

/**
 * Version of the tables, which is a part of each path (`v=1`). Columns are added under the same version; where a column changes its
 * meaning, its type or its name, or is removed, the version becomes another one.
 */
export const TABLES_VERSION = 1

/** The value of `day` in the paths of runs whose date is not known: what Hive, Spark, DuckDB and ClickHouse read as null. */
export const UNKNOWN_DAY = '__HIVE_DEFAULT_PARTITION__'

/** All tables of a dataset. */
export const TABLES = {
  trace,
  call,
  request,
  operator,
  operator_sum,
  state,
  gpu,
  counter,
  expert,
  finding,
} as const satisfies Readonly<Record<string, TableSchema>>

/** Name of a table. */
export type TableName = keyof typeof TABLES

/** A row of a table. */
export type TableRow<T extends TableName> = RowOf<(typeof TABLES)[T]>

/** Names of all tables, in the order in which the files of a run are written but for `trace`, which is written last. */
export const TABLE_NAMES = Object.keys(TABLES) as readonly TableName[]

/** Path of the file of a run's table in a dataset. `day`: `YYYY-MM-DD`, or undefined where it is not known. */
export function tablePath(table: TableName, day: string | undefined, traceId: string): string {
  return `${table}/v=${TABLES_VERSION}/day=${day ?? UNKNOWN_DAY}/${traceId}.parquet`
}
