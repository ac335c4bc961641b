export { computingNs, type TimedOperators } from './analyze/operators/computing.ts'
export * from './browser.ts'
export { DAG_SCHEMA, type Dag, type DagEdge, type DagNode, type DagRange, dagOf, type Range } from './dag/dag.ts'
export {
  DAG_DIFF_SCHEMA,
  type DagDiff,
  type Difference,
  type DiffNode,
  type DiffPart,
  type DiffSide,
  diffDags,
  type NamedDag,
} from './dag/diff.ts'
export { callText, type DrawOptions, draw, type NodeValues, sizeOf } from './dag/draw.ts'
export { differencesOf, diffPartText, drawDiff } from './dag/draw-diff.ts'
export { type Drawing, toDot } from './dag/drawing.ts'
export { type FoldedNode, fold, type Pattern, partsText } from './dag/fold.ts'
export { type ColorScale, METRICS, type Metric, type MetricName, valueText } from './dag/metrics.ts'
export { closest } from './errors.ts'
export {
  type FleetBuild,
  type FleetFigures,
  type FleetHost,
  type FleetOutlier,
  type FleetRegression,
  type FleetRun,
  type FleetSpread,
  fleetFigures,
} from './fleet/figures.ts'
export { QUESTIONS, type Question, type QuestionName } from './fleet/questions.ts'
export { isCpuBackend } from './model/backends.ts'
export { BLAS_TITLES } from './model/blas-events.ts'
export { WITHOUT_TIMES } from './model/times.ts'
export { count, duration, percent, plural, size, threeDigits } from './model/units.ts'
export {
  type CheckResult,
  checkTrace,
  convertFile,
  findView,
  inputOf,
  type OpenTrace,
  openTrace,
  type PathOrBytes,
  summarizeFile,
} from './node/api.ts'
export { type DatasetOptions, type OpenDataset, openDataset } from './node/dataset.ts'
export type { DatasetCell, DatasetRows, DatasetStream } from './node/duckdb.ts'
export { type ExportedRun, type ExportOptions, exportRun, isDay, removeLeftOvers, traceIdOf } from './node/export.ts'
export { type ArrowOptions, exportArrow } from './node/export-arrow.ts'
export {
  fileRange,
  fileSize,
  fileSource,
  readFileChunks,
  removeUnfinished,
  sizeBeside,
  writeFileWhole,
} from './node/files.ts'
export { drawSvg } from './node/graphviz.ts'
export { measurePeaks, type Peak, type Peaks, type PeaksOptions } from './node/peaks.ts'
export { COUNTERS, FAULT_COUNTERS } from './node/record/counters.ts'
export type { MemRecording } from './node/record/memory.ts'
export type { PowerRecording } from './node/record/power.ts'
export {
  type NvtxEmitted,
  type RecordLevel,
  type RecordOptions,
  type RecordResult,
  type RecordVariablesOptions,
  record,
  recordVariables,
} from './node/record/record.ts'
export { nvtxListener } from './node/record/recorder-library.ts'
export { orderOf, type RecordedRuns, type RunsOptions, recordRuns } from './node/record/runs.ts'
export type { SchedRecording } from './node/record/sched.ts'
export { type SignalWitness, signalWitness } from './node/record/witness.ts'
export { type ServedTrace, TraceServer } from './node/serve.ts'
export { type Exporter, type RunTables, type TablesOptions, tablesOf } from './pipeline/tables/tables-of.ts'
export type { Problem, WalkProblem, WalkResult } from './query/check.ts'
export { SqlError, TraceProcessorError } from './query/errors.ts'
export type { Cell, QueryResult, SqlPackage } from './query/trace-processor.ts'
export type { MetricBundle } from './query/trace-summary.ts'
export { VIEWER, type View, type ViewerCommand, viewerUrl } from './query/view.ts'
export { CLICKHOUSE_SETTINGS, clickHouseTables } from './tables/clickhouse.ts'
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
export { type FilesOf, type NewRow, ROW_GROUP, TableFile, type TablesFormat } from './tables/table-file.ts'
export { type TablePiece, Tables } from './tables/tables.ts'
export { TablesPass } from './tables/tables-pass.ts'
export type { Compression } from './write/parquet/parquet.ts'
