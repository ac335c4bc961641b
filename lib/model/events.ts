import type { AccessEvent, MappingEvent } from './access-events.ts'
import type { BenchmarkEvent } from './benchmark-events.ts'
import type { BlasEvent } from './blas-events.ts'
import type { TokenEvent } from './call-events.ts'
import type { Capabilities, ClockSource } from './capabilities.ts'
import type { GpuActivityEvent } from './gpu-events.ts'
import type { IssueEvent } from './issues.ts'
import type { StateEvent, SwitchEvent, ThreadEvent, WakingEvent } from './kernel-events.ts'
import type { LeftOutEvent } from './left-out.ts'
import type { NvtxEvent, NvtxNameEvent } from './nvtx-events.ts'
import type { OwnEvent } from './own-events.ts'
import type { PowerEvent } from './power-events.ts'
import type { FunctionEvent, RequestEvent, SequenceEvent, TaskEvent } from './request-events.ts'
import type { SumsEvent } from './sums.ts'
import type { Times } from './times.ts'

export type * from './access-events.ts'
export type * from './benchmark-events.ts'
export type * from './blas-events.ts'
export type * from './call-events.ts'
export type * from './capabilities.ts'
export { Inferred } from './inferred.ts'
export type { IssueEvent } from './issues.ts'
export type * from './kernel-events.ts'
export { TaskState } from './kernel-events.ts'
export type * from './kernel-profiles.ts'
export type * from './power-events.ts'
export type * from './request-events.ts'
export { QUEUE_PARTS } from './request-events.ts'
export type { SumsEvent } from './sums.ts'
export type { Times } from './times.ts'

/**
 * The events that readers yield and passes consume. Times are nanoseconds since the input's origin
 * ({@link InputEvent.originNs}), as numbers: exact for 104 days before and after it. Texts are ids of the shared `Names`.
 * `-1` (numbers) and `0` (names) mean "not known"; inferred values have an {@link Inferred} bit.
 */
export type TraceEvent =
  | InputEvent
  | FactsEvent
  | ClocksEvent
  | BufferEvent
  | TensorEvent
  | OperatorEvent
  | GraphEvent
  | TokenEvent
  | ExpertsEvent
  | CopyEvent
  | PartEvent
  | AllocationEvent
  | FunctionEvent
  | SequenceEvent
  | TaskEvent
  | RequestEvent
  | BenchmarkEvent
  | CounterEvent
  | CountedEvent
  | RangeEvent
  | NvtxEvent
  | NvtxNameEvent
  | StateEvent
  | SwitchEvent
  | WakingEvent
  | ThreadEvent
  | AccessEvent
  | MappingEvent
  | IssueEvent
  | LeftOutEvent
  | SumsEvent
  | GpuActivityEvent
  | BlasEvent
  | PowerEvent
  | OwnEvent

/** Clocks that Perfetto has names for: Linux's, and perf's, which only traces have (for inputs see {@link ClockSource}). */
export type Clock = 'MONOTONIC' | 'MONOTONIC_RAW' | 'BOOTTIME' | 'REALTIME' | 'PERF'

/** First event of every input: its format and its clock. */
export interface InputEvent {
  readonly kind: 'input'
  /** The format's name, as `--from` takes it. */
  readonly format: string
  /** `none`: no event has a time; `unknown`: the input does not record it, and it must not be guessed. */
  readonly clock: Clock | 'none' | 'unknown'
  /** The origin of all times of this input, in nanoseconds of `clock`. */
  readonly originNs: bigint
  /** What its times are; undefined: `recorded`. Use `timesOf` (lib/model/times.ts), which knows inputs without a clock. */
  readonly times?: Times | undefined
  /** Facts about the run and how it was read, for the trace's attributes. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** A short description of the contents, for inputs that are not summarized by calls and operators. */
  readonly contents?: string | undefined
  /** What the input can contribute; known to the reader from the start of the input. */
  readonly capabilities?: Capabilities | undefined
  /** Where `clock` is `unknown`: the input's clock in the numbers of its format. */
  readonly clockSource?: ClockSource | undefined
  /** Name of the input's group of tracks; by default `LLM` and the attribute `command`. */
  readonly title?: string | undefined
}

/** Facts about the run that the reader finds later, for the trace's attributes. */
export interface FactsEvent {
  readonly kind: 'facts'
  /** See {@link InputEvent.contents}. */
  readonly contents?: string | undefined
  readonly attributes: Readonly<Record<string, string | number>>
}

/** The same instant on several clocks, which joins inputs. Absolute nanoseconds. */
export interface ClocksEvent {
  readonly kind: 'clocks'
  readonly readings: readonly { readonly clock: Clock; readonly ns: bigint }[]
}

/** Contents of a ggml backend buffer. `weights` is the model file itself: offsets in it are GGUF file offsets. */
export type BufferUsage = 'weights' | 'kv-cache' | 'compute' | 'other'

/** A backend buffer, or the model file: defined once, before its first tensor. */
export interface BufferEvent {
  readonly kind: 'buffer'
  /** Small integer, unique in the input. */
  readonly id: number
  readonly usage: BufferUsage
  /** The logger's id of the buffer, such as the address of the ggml_backend_buffer. */
  readonly label: string
  /** The origin of offsets in this buffer, in words, for the track's description. */
  readonly offsetsFrom: string
  /** Name of the buffer, if recorded. */
  readonly name?: number | undefined
  /** Of weights: path of the file that it maps, or from which they were copied; if recorded. */
  readonly file?: number | undefined
  /** Address of its first byte, if recorded. */
  readonly address?: number | undefined
  /** Size of the buffer, if recorded. */
  readonly sizeBytes?: number | undefined
}

/** A tensor as ggml knows it, defined once before its first use: a node of the graph, a weight or an input. */
export interface TensorEvent {
  readonly kind: 'tensor'
  /** Small integer, unique in the input. A tensor with another shape, address or op has another id. */
  readonly id: number
  readonly name: number
  /** -1: in no layer, or not recorded. */
  readonly layer: number
  /** Name of the op that computes it, without `GGML_OP_`; 0 for leaves. */
  readonly op: number
  /** Name of the element type; 0 = not recorded. */
  readonly type: number
  /** Number of elements per dimension, innermost first, as in ggml. */
  readonly ne: readonly number[] | undefined
  /** Ids of the sources, in order; defined earlier. */
  readonly sources: readonly number[]
  /** Id of the tensor that this one is a view of (ggml's `view_src`), if recorded. */
  readonly viewOf?: number | undefined
  /** -1 = not recorded. */
  readonly sizeBytes: number
  /** Buffer id, or -1. */
  readonly buffer: number
  /** Byte offset in the buffer (weights: in the GGUF file), where known; below 0 where the buffer's base is inferred. */
  readonly offset: number | undefined
  /** Address of the data, or 0. */
  readonly address: number
  /** Address of the `ggml_tensor` struct, or 0: it identifies the tensor, and is not the address of its data. */
  readonly structAddress: number
  /** {@link Inferred} bits. */
  readonly inferred: number
}

/** One worker's execution of one node. */
export interface OperatorEvent {
  readonly kind: 'operator'
  /** Id of the node's {@link TensorEvent}. */
  readonly tensor: number
  /** ggml's `ith`. */
  readonly worker: number
  /** Linux thread id, or -1. */
  readonly tid: number
  /** CPU on which it started, or -1. */
  readonly cpu: number
  /** Index of its call, or -1. */
  readonly call: number
  readonly startNs: number
  /** End of computing. */
  readonly endNs: number
  /** End of the barrier wait that follows; equals `endNs` if none was recorded. */
  readonly waitEndNs: number
  /** Time spent in barriers inside the op; a part of the compute time. */
  readonly innerWaitNs?: number | undefined
  /** Counts of its thread while it computed, by {@link CountedEvent.index}; undefined without any. */
  readonly counts?: readonly number[] | undefined
  /** Id of the last of several fused nodes, of which `tensor` is the first. */
  readonly fusedTo?: number | undefined
  /** Expert ids that the router chose, if recorded. */
  readonly experts: readonly number[] | undefined
  readonly inferred: number
}

/** The compute of one split of a graph, on one backend; of the whole graph where no scheduler splits it. */
export interface GraphEvent {
  readonly kind: 'graph'
  readonly startNs: number
  readonly endNs: number
  /** Name of the backend, or 0. */
  readonly backend: number
  /** Number of its nodes, or of its operators that were recorded. */
  readonly nodes: number
  readonly call: number
  /** ggml_status: 0 is success. */
  readonly status?: number | undefined
  /** Number of the split in its graph run; -1 without a scheduler. */
  readonly split?: number | undefined
  /** Correlation ids of the {@link ApiEvent}s that submitted its work to a GPU. */
  readonly submissions?: readonly number[] | undefined
  readonly inferred: number
}

/** A counter that has a value for each operator. Comes before the operators. */
export interface CountedEvent {
  readonly kind: 'counted'
  /** Index of its values in {@link OperatorEvent.counts}. */
  readonly index: number
  /** The name that perf(1) uses: `cycles`, `page-faults`. */
  readonly name: number
  readonly unit: 'bytes' | 'count' | 'ns'
}

/** The choice of a router: `k` experts for each of `tokens` tokens. Further tokens of the batch may follow at the same time. */
export interface ExpertsEvent {
  readonly kind: 'experts'
  /** Id of the tensor that contains the choice, a source of the operators that use it. */
  readonly tensor: number
  readonly call: number
  readonly atNs: number
  readonly tokens: number
  readonly k: number
  /** Token by token. */
  readonly ids: Int32Array
}

/** A transfer of a tensor's data: read from a buffer (get), written into one (set), or copied between two. */
export interface CopyEvent {
  readonly kind: 'copy'
  readonly what: 'get' | 'set' | 'copy'
  readonly startNs: number
  readonly endNs: number
  readonly bytes: number
  /** Names of the buffers; 0 is memory outside of backend buffers. */
  readonly from: number
  readonly to: number
  /** Tensor id, or -1. */
  readonly tensor: number
  readonly tid: number
}

/** A part of a call in which no graph is computed. */
export interface PartEvent {
  readonly kind: 'part'
  /** The scheduler allocates a graph, or reserves memory for one; or the recorder describes one, which is its own cost. */
  readonly what: 'allocate' | 'reserve' | 'recorder'
  readonly startNs: number
  readonly endNs: number
  readonly call: number
}

/** A backend buffer was allocated or freed. */
export interface AllocationEvent {
  readonly kind: 'allocation'
  /** Name of the buffer type, shared by all its buffers. */
  readonly buffer: number
  readonly atNs: number
  /** Below 0 if it was freed. */
  readonly bytes: number
  /** It was allocated at an unknown time before `atNs`, at which the log begins: in the middle of the run. */
  readonly isEarlier?: boolean
}

/** A sample of a numeric series. */
export interface CounterEvent {
  readonly kind: 'counter'
  readonly name: number
  readonly unit: 'bytes' | 'count' | 'ns'
  readonly atNs: number
  readonly value: number
  /** Index of its call, if it has one. */
  readonly call?: number | undefined
}

/** The begin or end of a named range of a thread; ranges nest by call order on their thread. */
export interface RangeEvent {
  readonly kind: 'range'
  readonly edge: 'begin' | 'end'
  readonly tid: number
  /** 0 at the end. */
  readonly name: number
  readonly atNs: number
  /** Ids of arrows: each range with an id is joined with the next one (in time) that has it. */
  readonly flows?: readonly number[]
}

/** Start or time of an event, in ns since the input's origin; undefined for definitions. */
export function firstTimeOf(event: TraceEvent): number | undefined {
  if ('startNs' in event) return event.startNs
  return 'atNs' in event ? event.atNs : undefined
}

/** End or time of an event, in ns since the input's origin; undefined for definitions. */
export function lastTimeOf(event: TraceEvent): number | undefined {
  if ('endNs' in event) return event.endNs
  return 'atNs' in event ? event.atNs : undefined
}
