/** What needs Node: files, the recorder, a server of traces, Graphviz. */
export { checkTrace, convertFile, inputOf, openTrace, type PathOrBytes, summarizeFile } from './node/api.ts'
export { fileSource } from './node/files.ts'
export { drawSvg } from './node/graphviz.ts'
export type { NativeOptions } from './node/native.ts'
export { keptPeaks, measurePeaks, type Peak, type PeakOfThreads, type Peaks, type PeaksOptions } from './node/peaks.ts'
export type { MemRecording } from './node/record/memory.ts'
export type { PowerRecording } from './node/record/power.ts'
export type { Environment } from './node/record/program.ts'
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
export { type RecordedRuns, type RunsOptions, recordRuns } from './node/record/runs.ts'
export type { SchedRecording } from './node/record/sched.ts'
export { type ServedTrace, TraceServer } from './node/serve.ts'
