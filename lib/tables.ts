/** Tables of runs, in Node and in browsers: an entry of its own, as most pages that convert logs do not need it. */
export { isOwnError } from './errors.ts'
export type { BlobSource, ByteRange, ByteSource, RangedSource } from './input/byte-source.ts'
export type { EventInput, Input, LogInput } from './pipeline/inputs.ts'
export { type Exporter, type RunTables, type TablesOptions, tablesOf } from './pipeline/tables/tables-of.ts'
export { traceIdOfInputs } from './pipeline/tables/trace-id.ts'
export type { Column, ColumnType, Encoding, RowOf, TableSchema, ValueOf } from './tables/column.ts'
export {
  TABLE_NAMES,
  TABLES,
  TABLES_VERSION,
  type TableName,
  type TableRow,
  tablePath,
  UNKNOWN_DAY,
} from './tables/schema.ts'
export type { FilesOf, NewRow, TablesFormat } from './tables/table-file.ts'
export { type TablePiece, Tables } from './tables/tables.ts'
export type { Compression } from './write/parquet/parquet.ts'
