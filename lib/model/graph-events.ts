import { type Bounds, orUnknown, wrongAmount, wrongNumber, wrongSpan, wrongTime } from './bounds.ts'
import { COUNTED_MAX, CPU_MAX, ID_MAX, TIME_NS_MAX, WORKER_MAX } from './limits.ts'

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
  /** Id of its {@link GraphNodesEvent}, where its nodes are known. */
  readonly graph?: number | undefined
  readonly call: number
  /** ggml_status: 0 is success. */
  readonly status?: number | undefined
  /** Number of the split in its graph run; -1 without a scheduler. */
  readonly split?: number | undefined
  /** Correlation ids of the {@link ApiEvent}s that submitted its work to a GPU. */
  readonly submissions?: readonly number[] | undefined
  readonly inferred: number
}

/** The nodes of a graph: of a split, or of a whole graph where no scheduler splits it. Comes before its first {@link GraphEvent}. */
export interface GraphNodesEvent {
  readonly kind: 'graph-nodes'
  /** Small integer, unique in the input. A further event with the same id adds nodes. */
  readonly id: number
  /** Name of the backend, or 0. */
  readonly backend: number
  /** Ids of the tensors that are computed, in order; defined earlier. */
  readonly nodes: Int32Array
}

/** A tensor of a question, by its shape: it has no memory yet. All is 0 in the place of a source that an op does not have. */
export interface AskedTensor {
  readonly name: number
  /** Name of the element type. */
  readonly type: number
  readonly ne: readonly number[]
  /** Strides in bytes. */
  readonly nb: readonly number[]
}

/**
 * A device refused what a scheduler, or llama.cpp when it placed weights, asked it for. Of each op with sources of these types, the first
 * shapes only.
 */
export interface RefusalEvent {
  readonly kind: 'refusal'
  /** Can it compute the node; should it, although a weight is in memory of the host; can it use memory of this type. */
  readonly question: 'supports-op' | 'offload-op' | 'supports-memory'
  /** Name of the device, which is that of its backend. */
  readonly device: number
  /** Name of the op; of memory, of its type. */
  readonly op: number
  /** The node, then its sources at their places, up to the last one; empty for memory. */
  readonly tensors: readonly AskedTensor[]
  /** Number of the op, and its parameters, 16 numbers; undefined: not recorded. */
  readonly opNumber?: number | undefined
  readonly parameters?: readonly number[] | undefined
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

/** A part of a call in which no graph is computed. */
export interface PartEvent {
  readonly kind: 'part'
  /** The scheduler allocates a graph, or reserves memory for one; or the recorder describes one, which is its own cost. */
  readonly what: 'allocate' | 'reserve' | 'recorder'
  readonly startNs: number
  readonly endNs: number
  readonly call: number
}

/** Their ranges. */
export const GRAPH_BOUNDS: Bounds<
  OperatorEvent | GraphEvent | GraphNodesEvent | RefusalEvent | CountedEvent | ExpertsEvent | PartEvent
> = {
  operator: ({ startNs, endNs, waitEndNs, tensor, worker, tid, cpu, call, fusedTo }) =>
    wrongSpan(startNs, endNs) ??
    wrongSpan(endNs, waitEndNs) ??
    wrongNumber('tensor', tensor, ID_MAX) ??
    wrongNumber('worker', worker, WORKER_MAX) ??
    wrongNumber('fusedTo', fusedTo ?? 0, ID_MAX) ??
    orUnknown('tid', tid) ??
    orUnknown('cpu', cpu, CPU_MAX) ??
    orUnknown('call', call),
  graph: (event) => wrongSpan(event.startNs, event.endNs) ?? orUnknown('call', event.call) ?? wrongAmount(event),
  'graph-nodes': (event) => wrongNumber('id', event.id, ID_MAX) ?? wrongAmount(event),
  refusal: wrongAmount,
  counted: (event) => wrongNumber('index', event.index, COUNTED_MAX) ?? wrongAmount(event),
  experts: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('tensor', event.tensor, ID_MAX) ??
    orUnknown('call', event.call) ??
    wrongAmount(event),
  part: (event) => wrongSpan(event.startNs, event.endNs) ?? orUnknown('call', event.call) ?? wrongAmount(event),
}

/** Are all fields valid? The same checks as in {@link GRAPH_BOUNDS}, in a few nanoseconds: most events are operators. */
export function isSound({
  startNs,
  endNs,
  waitEndNs,
  tensor,
  worker,
  tid,
  cpu,
  call,
  fusedTo,
}: OperatorEvent): boolean {
  return (
    startNs >= -TIME_NS_MAX &&
    endNs >= startNs &&
    waitEndNs >= endNs &&
    waitEndNs <= TIME_NS_MAX &&
    waitEndNs - startNs <= TIME_NS_MAX &&
    Number.isInteger(startNs) &&
    Number.isInteger(endNs) &&
    Number.isInteger(waitEndNs) &&
    tensor >>> 0 === tensor &&
    tensor <= ID_MAX &&
    worker >>> 0 === worker &&
    worker <= WORKER_MAX &&
    tid >> 0 === tid &&
    tid >= -1 &&
    cpu >> 0 === cpu &&
    cpu >= -1 &&
    cpu <= CPU_MAX &&
    call >> 0 === call &&
    call >= -1 &&
    (fusedTo === undefined || (fusedTo >>> 0 === fusedTo && fusedTo <= ID_MAX))
  )
}
