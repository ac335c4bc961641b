export type { IssueCount, Summary } from './analyze/summary.ts'
export {
  type ByteSource,
  type ConvertOptions,
  convert,
  eventsOf,
  type Input,
  type InputOptions,
  summarize,
} from './convert.ts'
export { describePosition, FormatError, isOwnError, type Position, UsageError } from './errors.ts'
export type * from './log/ggtrace-thread.ts'
export * from './log/ggtrace-writer.ts'
export type * from './model/events.ts'
export { Inferred } from './model/events.ts'
export { Names } from './model/names.ts'
export { OP_TABLES, type OpTable } from './model/op-tables.ts'
export { formatShape, parseTensorName, type TensorName } from './model/tensors.ts'
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
export { fileSize, readFileChunks, removeUnfinished, writeFileWhole } from './node/files.ts'
export { measurePeaks, type Peak, type Peaks, type PeaksOptions } from './node/peaks.ts'
export { type RecordLevel, type RecordOptions, type RecordResult, record } from './node/record.ts'
export { type ServedTrace, TraceServer } from './node/serve.ts'
export type { Problem, WalkProblem, WalkResult } from './query/check.ts'
export { SqlError, TraceProcessorError } from './query/errors.ts'
export type { Cell, QueryResult } from './query/trace-processor.ts'
export { VIEWER, type View, type ViewerCommand, viewerUrl } from './query/view.ts'
export type { Format, ReadContext } from './read/format.ts'
export { FORMATS, sniffFormat } from './read/index.ts'
export type { Detail } from './timeline/labels.ts'
export type { OpNaming } from './timeline/operators.ts'
export { TRACE_KINDS, type TraceKind, traceKindOf } from './write/index.ts'
