import type { TokenEvent } from './call-events.ts'
import type { GpuActivityEvent } from './gpu-events.ts'
import type { IssueEvent } from './issues.ts'
import type { LeftOutEvent } from './left-out.ts'
import type { NvtxEvent, NvtxNameEvent } from './nvtx-events.ts'
import type { OwnEvent } from './own-events.ts'

export type * from './call-events.ts'
export type { IssueEvent } from './issues.ts'

/**
 * What a reader yields and everything else consumes. Times are nanoseconds since the input's origin
 * ({@link InputEvent.originNs}), as numbers: exact for 104 days to either side. Texts are ids of the shared `Names`.
 * `-1` (numbers) and `0` (names) mean "not known"; nothing is ever guessed without an {@link Inferred} bit.
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
  | AllocationEvent
  | CounterEvent
  | CountedEvent
  | RangeEvent
  | NvtxEvent
  | NvtxNameEvent
  | StateEvent
  | SwitchEvent
  | WakingEvent
  | ThreadEvent
  | IssueEvent
  | LeftOutEvent
  | GpuActivityEvent
  | OwnEvent

/** Clocks that Perfetto has names for: Linux's, and perf's own, which is that of traces only: an input on it does not tell its clock. */
export type Clock = 'MONOTONIC' | 'MONOTONIC_RAW' | 'BOOTTIME' | 'REALTIME' | 'PERF'

/** Which facts of an event were not recorded but worked out. A bit set; shown in the trace as `inferred`. */
export enum Inferred {
  /** The end is the start of the next record: it includes whatever lies between. */
  End = 1,
  /** No end was recorded and none can be told: the slice is drawn with zero length. */
  NoEnd = 2,
  /** The wait is the gap to the thread's next operator; operators that the log does not show may hide in it. */
  Wait = 4,
  /** The worker index: from who runs the graph and which threads are active beside it. */
  Worker = 8,
  /** The call's borders: from repeating graphs and phases. */
  Call = 16,
  /** The phase: from the number of tokens. */
  Phase = 32,
  /** The number of tokens: from the size of the embedding lookup. */
  TokenCount = 64,
  /** The op's name: from a table chosen by what tensors it is used on. */
  OpName = 128,
  /** What was counted: the processor counted for a part of the time only. */
  Counts = 256,
}

/** First event of every input: what it is and on which clock it runs. */
export interface InputEvent {
  readonly kind: 'input'
  /** The format's name, as `--from` takes it. */
  readonly format: string
  /** `none`: nothing in it has a time; `unknown`: the input does not tell, and it must not be guessed. */
  readonly clock: Clock | 'none' | 'unknown'
  /** The absolute time that all other times of this input count from, in nanoseconds of `clock`. */
  readonly originNs: bigint
  /** Facts on the run and on how it was read, for the trace's attributes. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** Of an input that is described by its contents, and not by calls and operators: these, in a few words. */
  readonly contents?: string | undefined
  /** What the input can contribute, as far as the reader knows it from the start of the input. */
  readonly capabilities?: Capabilities | undefined
  /** Where `clock` is `unknown`: which clock the input names, as its format identifies clocks. */
  readonly clockSource?: ClockSource | undefined
  /** What the input's group of tracks is called; by default `LLM` and the attribute `command`. */
  readonly title?: string | undefined
}

/** What an input can contribute to a trace. */
export interface Capabilities {
  /** `false`: its switches do not record in which state the thread waits that leaves the CPU. */
  readonly waitStates?: boolean
}

/** perf's own clock (which Perfetto knows), or a number of clock_gettime(2) that has no name here. */
export type ClockSource = 'perf' | number

/** Facts on the run that the reader found later on, for the trace's attributes. */
export interface FactsEvent {
  readonly kind: 'facts'
  /** See {@link InputEvent.contents}. */
  readonly contents?: string | undefined
  readonly attributes: Readonly<Record<string, string | number>>
}

/** The same instant on several clocks: what joins inputs. Absolute nanoseconds. */
export interface ClocksEvent {
  readonly kind: 'clocks'
  readonly readings: readonly { readonly clock: Clock; readonly ns: bigint }[]
}

/** What a ggml backend buffer holds. `weights` is the model file itself: offsets in it are GGUF file offsets. */
export type BufferUsage = 'weights' | 'kv-cache' | 'compute' | 'other'

/** A backend buffer, or the model file: defined once, before the first tensor that lies in it. */
export interface BufferEvent {
  readonly kind: 'buffer'
  /** Small integer, unique in the input. */
  readonly id: number
  readonly usage: BufferUsage
  /** The logger's own identification, such as the address of the ggml_backend_buffer. */
  readonly label: string
  /** What offsets in this buffer count from, in words, for the track's description. */
  readonly offsetsFrom: string
  /** Name of the buffer, where one was recorded. */
  readonly name?: number | undefined
  /** Address of its first byte, where one was recorded. */
  readonly address?: number | undefined
  /** Size of the buffer, where it was recorded. */
  readonly sizeBytes?: number | undefined
}

/** A tensor as ggml knows it, defined once before its first use: a node of the graph, a weight or an input. */
export interface TensorEvent {
  readonly kind: 'tensor'
  /** Small integer, unique in the input. Another shape, address or op makes another id. */
  readonly id: number
  readonly name: number
  /** -1: in no layer, or not told. */
  readonly layer: number
  /** Name of the op that computes it, without `GGML_OP_`; 0 for leaves. */
  readonly op: number
  /** Name of the element type; 0 = not recorded. */
  readonly type: number
  /** Number of elements per dimension, innermost first, as ggml has it. */
  readonly ne: readonly number[] | undefined
  /** Ids of the sources, in order; defined earlier. */
  readonly sources: readonly number[]
  /** Id of the tensor whose memory this one is a view of (ggml's `view_src`), where that was recorded and it is one. */
  readonly viewOf?: number | undefined
  /** -1 = not recorded. */
  readonly sizeBytes: number
  /** Buffer id, or -1. */
  readonly buffer: number
  /** Byte offset in the buffer (weights: in the GGUF file), where known; below 0 where the buffer's base is inferred. */
  readonly offset: number | undefined
  /** Address of the data, or 0. */
  readonly address: number
  /** Address of the `ggml_tensor` struct, or 0: tells tensors apart, says nothing of where their data lie. */
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
  /** CPU it started on, or -1. */
  readonly cpu: number
  /** Index of the call it belongs to, or -1. */
  readonly call: number
  readonly startNs: number
  /** End of computing. */
  readonly endNs: number
  /** End of the barrier wait that follows; equals `endNs` where none was seen. */
  readonly waitEndNs: number
  /** Part of the compute time that was spent in barriers inside the op. */
  readonly innerWaitNs?: number | undefined
  /** What was counted on its thread while it computed, by {@link CountedEvent.index}; undefined where nothing was. */
  readonly counts?: readonly number[] | undefined
  /** Id of the last of the nodes that were computed in one go, where `tensor` is only the first of them. */
  readonly fusedTo?: number | undefined
  /** Expert ids that the router chose, as far as recorded. */
  readonly experts: readonly number[] | undefined
  readonly inferred: number
}

/** One graph compute on one backend (a scheduler split). */
export interface GraphEvent {
  readonly kind: 'graph'
  readonly startNs: number
  readonly endNs: number
  /** Name of the backend, or 0. */
  readonly backend: number
  /** Operators in it: as many as were seen, or as the graph is known to have. */
  readonly nodes: number
  readonly call: number
  /** ggml_status: 0 is success. */
  readonly status?: number | undefined
  /** Counts the graph computes of one run of the scheduler; -1 where there is none. */
  readonly split?: number | undefined
  readonly inferred: number
}

/** Something that is counted operator by operator. Comes before the operators. */
export interface CountedEvent {
  readonly kind: 'counted'
  /** Place of its values in {@link OperatorEvent.counts}. */
  readonly index: number
  /** As perf(1) calls it: `cycles`, `page-faults`. */
  readonly name: number
  readonly unit: 'bytes' | 'count' | 'ns'
}

/** A choice of a router: `k` experts for each of `tokens` tokens. More of the same batch may follow at the same time. */
export interface ExpertsEvent {
  readonly kind: 'experts'
  /** Id of the tensor that holds the choice; operators that use it have it as a source. */
  readonly tensor: number
  readonly call: number
  readonly atNs: number
  readonly tokens: number
  readonly k: number
  /** Token by token. */
  readonly ids: Int32Array
}

/** A transfer of a tensor's data: read out of a buffer (get), written into one (set), or from one to another. */
export interface CopyEvent {
  readonly kind: 'copy'
  readonly what: 'get' | 'set' | 'copy'
  readonly startNs: number
  readonly endNs: number
  readonly bytes: number
  /** Names of the buffers; 0 is memory of the program's own. */
  readonly from: number
  readonly to: number
  /** Tensor id, or -1. */
  readonly tensor: number
  readonly tid: number
}

/** A backend buffer was made, or freed. */
export interface AllocationEvent {
  readonly kind: 'allocation'
  /** The buffer's name: that of its type, shared by all buffers of it. */
  readonly buffer: number
  readonly atNs: number
  /** Below 0 where it was freed. */
  readonly bytes: number
}

/** A sample of a numeric series. */
export interface CounterEvent {
  readonly kind: 'counter'
  readonly name: number
  readonly unit: 'bytes' | 'count' | 'ns'
  readonly atNs: number
  readonly value: number
  /** Index of the call it belongs to, where it belongs to one. */
  readonly call?: number | undefined
}

/** A named stretch of a thread's time, nested by call order on that thread. */
export interface RangeEvent {
  readonly kind: 'range'
  readonly edge: 'begin' | 'end'
  readonly tid: number
  /** 0 at the end. */
  readonly name: number
  readonly atNs: number
  /** Arrows: every range that carries an id is joined with the next one (in time) that carries it. */
  readonly flows?: readonly number[]
}

/**
 * What a thread does: has a CPU, was taken off it, may have one again after a wait, waits for something, has none for a
 * reason that is not told, is no more.
 */
export type ThreadState = 'running' | 'runnable' | 'woken' | 'blocked' | 'off' | 'ended'

/** A thread of the traced process changes its state. In order for each thread. */
export interface StateEvent {
  readonly kind: 'state'
  readonly tid: number
  /** Where it runs, or ran last; -1 = not known. */
  readonly cpu: number
  readonly state: ThreadState
  readonly atNs: number
  /** Name of the thread, in a log of states without operators: it gets a row of its own. */
  readonly thread?: number
  /** Name of the thread that took its CPU, where that is told. */
  readonly takenBy?: number
}

/** A `sched_switch`: `nextTid` takes `cpu` from `prevTid`. */
export interface SwitchEvent {
  readonly kind: 'switch'
  readonly cpu: number
  readonly atNs: number
  readonly prevTid: number
  /** Command name of the thread that leaves; 0 = not told. */
  readonly prevComm: number
  /** Kernel priority, 0 to 139 (120 is nice 0), or -1. */
  readonly prevPrio: number
  /** The kernel's bits, as {@link TaskState} names them: 0 = still runnable (preempted). */
  readonly prevState: number
  /** 0 is the idle task. */
  readonly nextTid: number
  readonly nextComm: number
  readonly nextPrio: number
}

/** Bits of a thread's state in `sched_switch`, as Linux from 4.14 on has them (fs/proc/array.c); 0 is R. */
export const TaskState = { S: 1, D: 2, T: 4, t: 8, X: 0x10, Z: 0x20, P: 0x40, I: 0x80, '+': 0x100 } as const

/** A `sched_waking`: a thread may run again from now on. */
export interface WakingEvent {
  readonly kind: 'waking'
  /** Where the waker ran. */
  readonly cpu: number
  readonly atNs: number
  /** Whose doing it was; -1 = not told. */
  readonly wakerTid: number
  readonly tid: number
  readonly comm: number
  readonly prio: number
  readonly targetCpu: number
  /** An interrupt did it, on the waker's time. */
  readonly isIrq: boolean
}

/** What the kernel's log tells of a thread: that it is there, begins, has another name from now on, ends. */
export interface ThreadEvent {
  readonly kind: 'thread'
  readonly what: 'known' | 'fork' | 'rename' | 'exit'
  readonly atNs: number
  readonly tid: number
  /** The process; -1 = not told. */
  readonly tgid: number
  readonly comm: number
  /** Who forked it; -1 = not told. */
  readonly parentTid: number
}

/** When an event ended, or happened, in ns since the input's origin; undefined for events that define something. */
export function lastTimeOf(event: TraceEvent): number | undefined {
  if ('endNs' in event) return event.endNs
  return 'atNs' in event ? event.atNs : undefined
}
