/** Traces in Google's trace_processor: SQL, metrics, checks. In Node, browsers and workers. */
export type { ByteSource } from './input/byte-source.ts'
export type { Cell } from './query/cells.ts'
export type { Problem, WalkProblem, WalkResult } from './query/check.ts'
export { toChromeJson } from './query/chrome-json.ts'
export { SqlError, TraceProcessorError } from './query/errors.ts'
export { GGML_PACKAGE, GGML_SQL, GGML_SUMMARY } from './query/ggml-package.ts'
export {
  type CheckResult,
  checkTrace,
  findView,
  type OpenOptions,
  type OpenTrace,
  openTrace,
} from './query/open-trace.ts'
export type { Parameters } from './query/parameters.ts'
export type { QueryResult, SqlPackage } from './query/trace-processor.ts'
export type { MetricBundle } from './query/trace-summary.ts'
export { VIEWER, type View, type ViewerCommand, viewerUrl } from './query/view.ts'
export type { TraceProcessorWasm } from './query/wasm.ts'
