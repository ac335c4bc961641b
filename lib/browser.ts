/** The part of the library that does not need Node: for browsers, workers, edge runtimes. */
export type * from './analyze/analysis.ts'
export { compareRuns, type RunsOfSide } from './analyze/compare/compare.ts'
export * from './analyze/compare/figures.ts'
export { type Gate, gateOf } from './analyze/compare/gate.ts'
export type { ExpertCacheSize } from './analyze/experts/caches.ts'
export { findings, lookedAt, RULES } from './analyze/findings/findings.ts'
export { type Advice, adviceOf, type Program } from './analyze/findings/program.ts'
export type { Limit, Looked, Rule } from './analyze/findings/rule.ts'
export { scalingSentence, threadScaling } from './analyze/findings/thread-scaling.ts'
export {
  type RequestReason,
  requestsWith,
  type WhichRequest,
  type WhyRequest,
  whyRequest,
} from './analyze/findings/why-request.ts'
export { parsePeakFile, peaksOfMachine } from './analyze/model/peaks.ts'
export { costAt, costUpTo, decodeBytes, prefillFlop, type StaticOptions } from './analyze/model/static.ts'
export {
  GROUP_KEYS,
  type GroupCounter,
  type GroupKey,
  type GroupShare,
  groupOperators,
  type OperatorGroup,
} from './analyze/operators/groups.ts'
export {
  type PhaseScaling,
  type RoleScalingFigures,
  SCALING_SCHEMA,
  type ScalingFigures,
  type ScalingFit,
  type SpeedByWorkers,
  scaling,
  type WorkerCount,
} from './analyze/scaling/scaling.ts'
export type { ClockRelation, IssueCount, LlamaSeen, Summary } from './analyze/summary/figures.ts'
export { toWebStream, type WebStream } from './bytes/web-stream.ts'
export { describePosition, FormatError, isOwnError, type Position, UsageError } from './errors.ts'
export { ByteCursor } from './input/byte-cursor.ts'
export type { BlobSource, BodySource, ByteRange, ByteSource, RangedSource } from './input/byte-source.ts'
export { LineCursor } from './input/line-cursor.ts'
export type * from './log/ggtrace-thread.ts'
export * from './log/ggtrace-writer.ts'
export { PHASES } from './model/call-events.ts'
export type { Counter } from './model/counters.ts'
export type * from './model/events.ts'
export { Inferred, TaskState } from './model/events.ts'
export type { LeftOutEvent } from './model/left-out.ts'
export { Names } from './model/names.ts'
export type * from './model/nvtx-events.ts'
export { OP_TABLES, type OpTable } from './model/op-tables.ts'
export type * from './model/own-events.ts'
export { formatShape, parseTensorName, type TensorName } from './model/tensors.ts'
export { UNKNOWN } from './model/unknown.ts'
export { type Work, workOf } from './model/work.ts'
export { type AnalyzeOptions, analyze } from './pipeline/analyze.ts'
export { convert, summarize } from './pipeline/convert.ts'
export {
  type EventInput,
  eventsOf,
  type Input,
  type InputOptions,
  type LogInput,
  type ReadingOptions,
} from './pipeline/inputs.ts'
export { isModel, type ModelAnalysis, modelOf } from './pipeline/models.ts'
export type { ConvertOptions } from './pipeline/options.ts'
export { readAnalysis } from './pipeline/read-analysis.ts'
export { GGML_PACKAGE, GGML_SQL, GGML_SUMMARY } from './query/ggml-package.ts'
export { type Format, HEAD_BYTES, type PerfettoReading, type ReadContext } from './read/format.ts'
export { FORMATS, sniffFormat } from './read/index.ts'
export { type Inspected, inspect } from './read/inspect.ts'
export type { Detail, MemoryRows, OpNaming } from './timeline/options.ts'
export { gzip } from './write/gzip.ts'
export { TRACE_KINDS, type TraceKind, traceKindOf } from './write/index.ts'
