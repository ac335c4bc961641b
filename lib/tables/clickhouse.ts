import { UsageError } from '../errors.ts'
import type { Column, ColumnType } from './column.ts'
import { TABLE_NAMES, TABLES, TABLES_VERSION, type TableName } from './schema.ts'
import { operatorSumsSql } from './sums-sql.ts'

const TYPE: Readonly<Record<ColumnType, string>> = {
  string: 'String',
  int64: 'Int64',
  double: 'Float64',
  boolean: 'Bool',
}

/** Columns of a table as ClickHouse declares them. Columns that a file lacks are NULL, so that all may be. */
const columnsOf = (table: TableName): string =>
  Object.entries<Column>(TABLES[table].columns)
    .map(([name, { type }]) => `${name} Nullable(${TYPE[type]})`)
    .join(', ')

/**
 * ClickHouse's statements that load the tables of a dataset into its memory. `source`: a table function, in which `{files}` means
 * the paths of files: `file('dataset/{files}', 'Parquet')`, `s3Cluster('default', 'https://…/dataset/{files}', 'Parquet')`.
 * @throws UsageError if it is not one
 */
export function clickHouseTables(source: string): string[] {
  if (!source.includes('{files}') || !source.endsWith(')'))
    throw new UsageError(
      `"${source}": expected a table function of ClickHouse with {files} in it, such as file('dataset/{files}', 'Parquet')`,
    )
  const tables = TABLE_NAMES.map((table) => {
    const files = source.replace('{files}', `${table}/v=${TABLES_VERSION}/*/*.parquet`)
    return `create table ${table} engine = Memory as select * from ${files.slice(0, -1)}, '${columnsOf(table)}')`
  })
  return [...tables, OLDER_SUMS]
}

/** Adds the sums of runs whose files are of a version that did not write them. */
const OLDER_SUMS = `insert into operator_sum (${Object.keys(TABLES.operator_sum.columns).join(', ')})
select ${Object.keys(TABLES.operator_sum.columns).join(', ')} from (
${operatorSumsSql([], 'o.trace_id not in (select trace_id from operator_sum)')}
) as sums
settings join_use_nulls = 1, cast_keep_nullable = 1`

/** To be appended to the SQL of questions: ClickHouse reads it as other engines do. */
export const CLICKHOUSE_SETTINGS = 'settings join_use_nulls = 1, prefer_column_name_to_alias = 1'
