import type { Phase } from '../../model/events.ts'

/** Where the model is, and where it is computed: from the graphs that a scheduler divides into splits, each for one backend. */
export interface PlacementFigures {
  /** Devices that the program found; null where the log does not contain them. */
  readonly devices: readonly PlacementDevice[] | null
  /** Options of the command line that place something, each with its value: `-ngl 30`, `--cpu-moe`; empty where it is not known. */
  readonly options: readonly string[]
  /** Ops that devices refused when they were asked, also while memory was reserved for graphs that were not computed; by device and op. */
  readonly refusals: readonly RefusedOp[]
  /** Names of the backends that compute graphs. */
  readonly backends: readonly string[]
  /** Layers by where their weights are, in order; successive equal ones are one row. */
  readonly layers: readonly LayerPlacement[]
  /** Operators outside layers that read weights: the embedding, the LM head. */
  readonly outside_layers: readonly OutsideLayers[]
  readonly phases: readonly PhasePlacement[]
  /** Operators that another backend than that of their layer computes, by reason; most time first. */
  readonly moved: readonly MovedOperators[]
}

/** A device that the program found. */
export interface PlacementDevice {
  readonly name: string
  /** `CPU`, `GPU`, `integrated GPU` or `accelerator` (a library on the CPU), and its description. */
  readonly description: string
  /** Bytes of its memory that were free when the program first asked, before it loaded the model; null: not known. */
  readonly free_bytes: number | null
}

/** An op that a device refused. */
export interface RefusedOp {
  readonly device: string
  readonly op: string
  /** `supports-op`: it cannot compute it. `offload-op`: it need not, where a weight is in memory of the host: too few tokens. */
  readonly question: 'supports-op' | 'offload-op'
  /** Do the graphs of calls contain this op? Where they do not, llama.cpp may have built others for that reason. */
  readonly is_computed: boolean
  /** The most columns (tokens of a product) among the shapes. */
  readonly columns_max: number
  /** Shapes that are in the log. */
  readonly shapes: number
  /** Types and shapes of the first one. */
  readonly example: string
  /** What the device refused in it, as it answered when it was asked again: `heads of 48 (it takes 64)`; null: not known. */
  readonly decided: string | null
}

/** Successive layers with their weights in the same places. */
export interface LayerPlacement {
  readonly first_layer: number
  readonly last_layer: number
  /** The backend that most of their weights belong to; of the host's memory `CPU`; null where the log does not contain it. */
  readonly backend: string | null
  /** Buffers that contain their weights; most bytes first. */
  readonly weights: readonly WeightsIn[]
  /** Buffers that contain their KV caches. */
  readonly kv_cache: readonly string[]
}

/** Weights in one buffer. */
export interface WeightsIn {
  /** Name of the buffer type, such as `CPU_REPACK`. */
  readonly buffer: string
  readonly tensors: number
  readonly bytes: number
  /** Roles of the weights, such as `ffn_up_exps.weight`. */
  readonly roles: readonly string[]
}

/** An operator outside layers that reads a weight. */
export interface OutsideLayers {
  readonly role: string
  readonly op: string
  readonly backend: string
  /** Buffer of the weight. */
  readonly buffer: string
}

/** Splits of the calls of a phase. */
export interface PhasePlacement {
  readonly phase: Phase
  /** Calls with graphs. */
  readonly calls: number
  /** Graph runs: the parts into which the scheduler divided the graphs of these calls, each on one backend. */
  readonly splits: number
  readonly by_backend: readonly BackendPart[]
  /** Tensors that the scheduler copies to the backend of a split, over all splits: once what several of them read. Of experts, it copies those that are used only. */
  readonly inputs: number
  readonly input_bytes: number
  /** Copies between buffers that were measured, their bytes, and the time of the thread in them. */
  readonly copies: number
  readonly copied_bytes: number
  readonly copying_ns: number
  /** Time in which the thread of the calls waits for backends; null where the parts of their time are not known. */
  readonly waiting_ns: number | null
}

/** What a backend computes of the calls of a phase. */
export interface BackendPart {
  readonly backend: string
  readonly splits: number
  /** Nodes that are computed. */
  readonly nodes: number
  /** Their ops, most nodes first; empty where the log does not contain them. */
  readonly ops: readonly string[]
  /** Time of its graph runs on the thread of the calls: of the CPU, its computing; of a device that computes asynchronously, submitting. */
  readonly time_ns: number
}

/** Why a backend computes an operator of a layer that belongs to another one. */
export type MovedReason =
  /** The backend of its layer refused it when the scheduler asked (`ggml_backend_supports_op`). */
  | 'refused'
  /** It reads a weight in memory of this backend: `detail` is the buffer. */
  | 'weights'
  /** It reads or writes a KV cache in memory of this backend: `detail` is the buffer. */
  | 'kv-cache'
  /** The log does not contain it. */
  | 'unknown'

/** Operators of layers that another backend computes than that of their layers. */
export interface MovedOperators {
  readonly phase: Phase
  /** What computes them. */
  readonly backend: string
  /** The backend of their layers. */
  readonly layer_backend: string
  readonly reason: MovedReason
  /** What the reason is about; empty of an unknown one. */
  readonly detail: string
  /** Types and shapes that the backend of the layer refused: of the node, or of an operator that reads the weight; null: none is known. */
  readonly refused: string | null
  /** What decided about that, as the device answered when it was asked again: `heads of 48 (it takes 64)`; null: not known. */
  readonly decided: string | null
  /** Ops of those with the reason, most nodes first. */
  readonly ops: readonly string[]
  /** Other ops in the same splits: they read the results of these, or make what they read. */
  readonly further_ops: readonly string[]
  /** Their layers, in order. */
  readonly layers: readonly number[]
  /** Calls of the phase with graphs. */
  readonly calls: number
  /** Nodes in these calls. */
  readonly nodes: number
  /** Splits that consist of such operators. */
  readonly splits: number
  /** Time of these splits, on the thread of the calls. */
  readonly time_ns: number
  /** Bytes that the scheduler copies to these splits. */
  readonly input_bytes: number
  /** Types and shapes of one of them, and of what it reads. */
  readonly example: string
}
