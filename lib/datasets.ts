/** Datasets of runs on disk or in object stores: written as Parquet or Arrow, asked by DuckDB, which must be installed. */
export * from './fleet/figures.ts'
export { QUESTIONS, type Question, type QuestionName } from './fleet/questions.ts'
export { type DatasetOptions, type OpenDataset, openDataset } from './node/dataset.ts'
export type { DatasetCell, DatasetRows, DatasetStream, DuckDbOptions } from './node/duckdb.ts'
export { type ExportedRun, type ExportOptions, exportRun, traceIdOf } from './node/export.ts'
export { type ArrowOptions, exportArrow } from './node/export-arrow.ts'
export { CLICKHOUSE_SETTINGS, clickHouseTables } from './tables/clickhouse.ts'
