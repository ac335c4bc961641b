/** Conversions in a worker, in Node and browsers: the thread that asks for them stays free. */
export type { Summary } from './analyze/summary/figures.ts'
export { FormatError, isOwnError, restoreError, UsageError } from './errors.ts'
export type { LogInput } from './pipeline/inputs.ts'
export { convertInWorker, type WorkerOptions } from './worker/in-worker.ts'
export type { AnyWorker } from './worker/messages.ts'
export { serveConversions } from './worker/serve.ts'
