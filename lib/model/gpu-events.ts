import type { Arg } from './args.ts'

/**
 * What a GPU did and who asked for it, as profilers (CUPTI and its like) record it. Times are whole nanoseconds since the
 * input's origin. `-1` and the name 0 mean "not known".
 */
export type GpuActivityEvent = GpuEvent | GpuSyncEvent | ApiEvent | NvtxGpuEvent

/** Further facts, drawn as arguments; or the arguments themselves. Integers that a number does not hold are bigints. */
export type Facts = Readonly<Record<string, number | bigint | string>> | readonly Arg[]

/** Where on a GPU something ran. */
export interface GpuPlace {
  /** As the process counts its devices. */
  readonly device: number
  readonly context: number
  /** What the program calls the context; 0 = nothing. */
  readonly contextName: number
  readonly stream: number
  /** What the program or the driver calls the stream; 0 = nothing. */
  readonly streamName: number
  /** Of the process that it was done for. */
  readonly pid: number
}

/** A piece of work of a GPU. In any order. */
export interface GpuEvent extends GpuPlace {
  readonly kind: 'gpu'
  /** `graph`: a whole CUDA graph, whose kernels were not recorded one by one. */
  readonly what: 'kernel' | 'memcpy' | 'memset' | 'graph'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  /** Id that it shares with the {@link ApiEvent} of the same process that launched it. */
  readonly correlation: number
  /** A kernel's function with its template arguments; 0 = not told. */
  readonly signature: number
  readonly facts: Facts
}

/** A wait for a stream, an event or a context; or an event that was recorded on a stream (no length). In any order. */
export interface GpuSyncEvent extends GpuPlace {
  readonly kind: 'gpu-sync'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly correlation: number
  readonly facts: Facts
}

/** A call into a library, on a thread. Those of one thread are in order of their starts, outer before inner. */
export interface ApiEvent {
  readonly kind: 'api'
  readonly library: 'cuda' | 'hip' | 'os'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly pid: number
  readonly tid: number
  readonly correlation: number
  /** Name of the thread; 0 = none. */
  readonly thread: number
  /** Pieces of GPU work in the input that carry its correlation id. */
  readonly launched: number
  /** What the call returned; 0 is success in CUDA. */
  readonly result: number
  readonly facts?: Facts | undefined
  /** Arrows: see {@link OwnSliceEvent}. */
  readonly flows?: readonly number[] | undefined
  readonly flowEnds?: readonly number[] | undefined
}

/** An NVTX range as the GPU saw it: from the first to the last piece of work that was launched within it, on its thread. */
export interface NvtxGpuEvent {
  readonly kind: 'nvtx-gpu'
  readonly name: number
  readonly domain: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
  /** Pieces of work, and their durations added up. */
  readonly launched: number
  readonly busyNs: number
  /** Name of the thread; 0 = none. */
  readonly thread: number
}
