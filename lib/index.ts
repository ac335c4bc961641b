export * from './browser.ts'
export { closest } from './errors.ts'

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
export {
  fileRange,
  fileSize,
  fileSource,
  readFileChunks,
  removeUnfinished,
  sizeBeside,
  writeFileWhole,
} from './node/files.ts'
export { measurePeaks, type Peak, type Peaks, type PeaksOptions } from './node/peaks.ts'
export { COUNTERS, FAULT_COUNTERS } from './node/record/counters.ts'
export {
  type NvtxEmitted,
  type RecordLevel,
  type RecordOptions,
  type RecordResult,
  record,
} from './node/record/record.ts'
export { nvtxListener } from './node/record/recorder-library.ts'
export { orderOf, type RecordedRuns, type RunsOptions, recordRuns } from './node/record/runs.ts'
export type { SchedRecording } from './node/record/sched.ts'
export { type SignalWitness, signalWitness } from './node/record/witness.ts'
export { type ServedTrace, TraceServer } from './node/serve.ts'
export type { Problem, WalkProblem, WalkResult } from './query/check.ts'
export { SqlError, TraceProcessorError } from './query/errors.ts'
export type { Cell, QueryResult, SqlPackage } from './query/trace-processor.ts'
export type { MetricBundle } from './query/trace-summary.ts'
export { VIEWER, type View, type ViewerCommand, viewerUrl } from './query/view.ts'
