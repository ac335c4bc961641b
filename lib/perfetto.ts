/** Writes Perfetto traces of anything that a program does: processes, threads, tracks, slices, counters. In Node, browsers and workers. */
export { type ResultStream, toWebStream, type WebStream } from './bytes/web-stream.ts'
export { isOwnError, UsageError } from './errors.ts'
export type { Clock } from './model/events.ts'
export { gzip } from './write/gzip.ts'
export type { Details, TraceArgs } from './write/tracing/labels.ts'
export type { Time, TimeUnit } from './write/tracing/times.ts'
export {
  type ProcessOptions,
  type ProcessTracks,
  type ThreadOptions,
  type TraceOptions,
  TraceWriter,
} from './write/tracing/trace-writer.ts'
export type {
  CounterOptions,
  CounterTrack,
  SliceTrack,
  Span,
  SpanTrack,
  TrackOptions,
  TrackParent,
} from './write/tracing/tracks.ts'
