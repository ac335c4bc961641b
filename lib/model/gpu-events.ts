import type { Arg } from './args.ts'
import { type Bounds, orUnknown, type Wrong, wrongAmount, wrongNumber, wrongSpan, wrongValue } from './bounds.ts'
import type { JoinedProfile, KernelProfileEvent } from './kernel-profiles.ts'
import { CORRELATION_MAX, INT32_MAX } from './limits.ts'

/**
 * Work of a GPU and the calls that launched it, as profilers (CUPTI and similar) record them. Times are whole nanoseconds since
 * the input's origin. `-1` and the name 0 mean "not known".
 */
export type GpuActivityEvent = GpuEvent | GpuSyncEvent | ApiEvent | NvtxGpuEvent | KernelProfileEvent

/** Further facts, drawn as arguments; or the arguments themselves. Integers above 2^53 are bigints. */
export type Facts = Readonly<Record<string, number | bigint | string>> | readonly Arg[]

/** Where on a GPU work ran. */
export interface GpuPlace {
  /** Number of the device in its process. */
  readonly device: number
  readonly context: number
  /** Name that the program gave the context; 0 = none. */
  readonly contextName: number
  readonly stream: number
  /** Name that the program or the driver gave the stream; 0 = none. */
  readonly streamName: number
  /** The whole name of a queue of an API without contexts and streams; then `stream` only distinguishes the queues. */
  readonly queue?: number | undefined
  /** The process that launched the work. */
  readonly pid: number
}

/** A place of which nothing is known but the device. */
export const UNKNOWN_PLACE: GpuPlace = { device: 0, context: -1, contextName: 0, stream: -1, streamName: 0, pid: -1 }

/** A node of ggml, or several fused ones, that a GPU computed. */
export interface GpuNode {
  /** Id of the tensor. */
  readonly tensor: number
  /** The last of the nodes that were computed in one step. */
  readonly fusedTo: number | undefined
  /** Name of ggml's backend that computes the graph; 0 = not known. */
  readonly backend: number
  /** From 1 on: it continues the node after so many other parts, in another command buffer. */
  readonly part: number
}

/** Of what is not drawn in detail: no reader yields it, see {@link SumsEvent}. */
export interface SummedWork {
  /** Pieces of work, or calls, of this name: their durations are summed up. */
  readonly count: number
  /** The last call; `call` is the first one. */
  readonly toCall: number
}

/** A kernel, a copy, a fill, a migration or a graph that a GPU ran. In any order. */
export interface GpuEvent extends GpuPlace {
  readonly kind: 'gpu'
  /**
   * `graph`: a whole CUDA graph, or a submission, whose kernels were not recorded separately; `migration`: the driver moves pages of unified
   * memory, because they are used elsewhere.
   */
  readonly what: 'kernel' | 'memcpy' | 'memset' | 'graph' | 'migration'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  /** Correlation id: that of the {@link ApiEvent} of the same process that launched it. */
  readonly correlation: number
  /** A kernel's function with its template arguments; 0 = not known. */
  readonly signature: number
  readonly facts: Facts
  /** Pieces of work of this name that it sums up; 1 by default. */
  readonly count?: number | undefined
  /** What a kernel computed, with the further kernels that it needed. */
  readonly node?: GpuNode | undefined
  /** Of a kernel: what a profiler of single kernels measured of it, or of one that is alike. */
  readonly profile?: JoinedProfile | undefined
  /** The call of `llama_decode`; undefined: in none, or not known. */
  readonly call?: number | undefined
  readonly summed?: SummedWork | undefined
  /** Bits of `Inferred`: `Laid` where only the duration is recorded. */
  readonly inferred?: number | undefined
}

/** A wait for a stream, an event or a context; or an event recorded on a stream (duration 0). In any order. */
export interface GpuSyncEvent extends GpuPlace {
  readonly kind: 'gpu-sync'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly correlation: number
  readonly facts: Facts
}

/** A kernel, a copy or a fill that a call launched, of which no times were recorded. */
export interface UntimedWork {
  readonly what: GpuEvent['what']
  /** 0 = not known. */
  readonly name: number
  /** See {@link GpuEvent.signature}. */
  readonly signature: number
  readonly facts: Facts
  /** See {@link GpuEvent.node}. */
  readonly node: GpuNode | undefined
}

/** A call of a library function. Calls of one thread come in order of their starts, outer before inner. */
export interface ApiEvent {
  readonly kind: 'api'
  readonly library: 'cuda' | 'hip' | 'vulkan' | 'os'
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly pid: number
  readonly tid: number
  readonly correlation: number
  /** Name of the thread; 0 = none. */
  readonly thread: number
  /** Number of {@link GpuEvent}s in the input with its correlation id. */
  readonly launched: number
  /** Return value; 0 is success in CUDA. */
  readonly result: number
  readonly facts?: Facts | undefined
  /** See {@link GpuEvent.call}. */
  readonly call?: number | undefined
  /** What it launched, in that order, if the log has it without its times. */
  readonly untimed?: readonly UntimedWork[] | undefined
  /** It submits work of a graph: its correlation id is in {@link GraphEvent.submissions}. */
  readonly isOfGraph?: boolean | undefined
  readonly summed?: SummedWork | undefined
  /** Arrows: see {@link OwnSliceEvent}. */
  readonly flows?: readonly number[] | undefined
  readonly flowEnds?: readonly number[] | undefined
}

/** An NVTX range projected onto the GPU: from the first to the last work that its thread launched within it. */
export interface NvtxGpuEvent {
  readonly kind: 'nvtx-gpu'
  readonly name: number
  readonly domain: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
  /** Number of kernels, copies and fills, and the sum of their durations. */
  readonly launched: number
  readonly busyNs: number
  /** Name of the thread; 0 = none. */
  readonly thread: number
}

/** Their ranges. */
export const GPU_BOUNDS: Bounds<GpuActivityEvent> = {
  gpu: wrongWork,
  'gpu-sync': wrongWork,
  api: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    orUnknown('correlation', event.correlation, CORRELATION_MAX) ??
    orUnknown('tid', event.tid) ??
    orUnknown('pid', event.pid) ??
    wrongNumber('launched', event.launched, Number.MAX_SAFE_INTEGER),
  'nvtx-gpu': (event) => wrongSpan(event.startNs, event.endNs) ?? orUnknown('tid', event.tid),
  'kernel-profile': wrongAmount,
}

function wrongWork(event: GpuEvent | GpuSyncEvent): Wrong | undefined {
  const bytes = 'bytes' in event.facts ? event.facts['bytes'] : undefined
  return (
    wrongSpan(event.startNs, event.endNs) ??
    orUnknown('correlation', event.correlation, CORRELATION_MAX) ??
    orUnknown('device', event.device, INT32_MAX) ??
    orUnknown('context', event.context) ??
    orUnknown('stream', event.stream) ??
    orUnknown('pid', event.pid) ??
    (typeof bytes === 'number' ? wrongValue('bytes', bytes) : undefined)
  )
}
