import type { ModelBlock } from '../../model/blocks.ts'
import type { BufferUsage, Phase } from '../../model/events.ts'

/** What the memory of a run contains, what of it is read, and what was allocated. Tables are bounded; what is beyond them is summed up. */
export interface MemoryFigures {
  /** Backend buffers, and model files, that contain tensors of graphs, the largest first; at most 64. */
  readonly buffers: readonly BufferFigures[]
  readonly further_buffers: number
  /** Weights that operators read, by phase. */
  readonly weights_read: readonly WeightsRead[]
  /** By phase; null where page faults were not counted. */
  readonly page_faults: readonly PageFaults[] | null
  /** Of each llama_context, at most 16. Empty where no positions were recorded. */
  readonly kv_caches: readonly KvCacheFigures[]
  /** Backend buffers by the name of their type; null where allocations were not recorded. */
  readonly allocations: AllocationFigures | null
}

/** A backend buffer, or the model file that weights are mapped from. */
export interface BufferFigures {
  readonly usage: BufferUsage
  /** Such as `CPU`; empty where it was not recorded. */
  readonly name: string
  /** Identification in the log: a path, or an address. */
  readonly label: string
  readonly size_bytes: number | null
  /** Tensors placed in it, without views; in an arena those of the graph run with most of them. */
  readonly tensors: number
  /** Their bytes; null where sizes were not recorded. */
  readonly tensor_bytes: number | null
  /** How results of operators share its memory; null where it is no compute buffer, or where places of results were not recorded. */
  readonly arena: ArenaFigures | null
}

/**
 * The use of a compute buffer. A tensor is live from its first write (an input: from when it was set) to the end of the last operator that
 * reads it or a view of it; results that no operator reads, until they are fetched, or to the end of the call. Bytes between tensors, that
 * the allocator leaves free for their alignment, are not live.
 */
export interface ArenaFigures {
  /** Graph runs that use it. */
  readonly runs: number
  readonly peak_live_bytes: number
  /** Part of the buffer that is live at the peak. */
  readonly peak_share: number | null
  /** Over the time of all graph runs, from the first start to the last end of operators. */
  readonly mean_live_bytes: number
  /** At the end of the last graph run. */
  readonly last_live_bytes: number
  /** Bytes of all tensors placed in it ÷ live bytes at the peak, over all graph runs. */
  readonly reuse: number
  /** Tensors placed in it ÷ different offsets: how often an offset is written, in one graph run on average. */
  readonly writes_per_offset: number
  readonly peak: LivePeak
  readonly by_phase: readonly ArenaPhase[]
}

/** The use of an arena in the graph runs of one phase. */
export interface ArenaPhase {
  readonly phase: Phase | 'none'
  readonly runs: number
  readonly peak_live_bytes: number
  readonly mean_live_bytes: number
  /** Tensors placed in it, and their bytes, in one graph run on average. */
  readonly placed_tensors: number
  readonly placed_bytes: number
  readonly reuse: number
  readonly writes_per_offset: number
}

/** When an arena has most live bytes, first. */
export interface LivePeak {
  /** -1: in no call. */
  readonly call: number
  readonly phase: Phase | 'none'
  /** Start of the operator, since the first event of the run: the first call, graph or operator. */
  readonly at_ns: number
  /** The operator whose start makes the peak: its number in the graph run, from 0; its result and op. -1, and empty: before the first one. */
  readonly step: number
  readonly tensor: string
  readonly op: string
  /** Most bytes first; at most 16. */
  readonly live: readonly LiveTensor[]
  readonly further_tensors: number
  readonly further_bytes: number
}

/** A tensor that is live at the peak. */
export interface LiveTensor {
  readonly tensor: string
  /** Empty: an input. */
  readonly op: string
  readonly offset: number
  readonly bytes: number
  /** The operator that reads it last: its result; empty where no operator reads it. */
  readonly last_reader: string
}

/** Weights that the operators of a phase read: each once for each operator, of experts the chosen ones, of embedding tables the rows. */
export interface WeightsRead {
  readonly phase: Phase
  /** Calls whose operators were recorded, and their tokens; null: not known. */
  readonly calls: number
  readonly tokens: number | null
  /** Null where sizes were not recorded, or not which tensors are weights. */
  readonly bytes: number | null
  readonly bytes_per_call: number | null
  readonly bytes_per_token: number | null
  /** The choice of experts was not recorded: all are upper bounds. */
  readonly bytes_are_max: boolean
  /** Most bytes first. */
  readonly by_type: readonly { readonly type: string; readonly bytes: number }[]
  readonly by_block: readonly { readonly block: ModelBlock; readonly bytes: number }[]
}

/** Page faults of operators, by the counters that were recorded; null: not counted. */
export interface FaultCounts {
  /** Answered from memory: the page was in the page cache, or new. */
  readonly minor_faults: number | null
  /** The page had to be read from a disk. */
  readonly major_faults: number | null
  /** Both, where only their sum was counted. */
  readonly page_faults: number | null
  /** Read from disks. */
  readonly read_bytes: number | null
}

/** Page faults of the operators of a phase. */
export interface PageFaults extends FaultCounts {
  readonly phase: Phase | 'none'
  /** Most faults first, major ones before minor ones; at most 8. */
  readonly by_role: readonly RoleFaults[]
  /** Of all other roles. */
  readonly further: FaultCounts
}

/** Page faults of operators of a role, in all layers. */
export interface RoleFaults extends FaultCounts {
  readonly role: string
  readonly op: string
}

/**
 * Use of the KV cache of one llama_context: a cell for each position of each sequence. Inferred from the positions in batches: logs do not
 * record tokens that were removed since, nor cells that sequences share. Null: the cache's tensors were not recorded.
 */
export interface KvCacheFigures {
  /** Address of the llama_context; 0: not recorded. */
  readonly context: number
  readonly is_inferred: true
  /** Cells, and their bytes in all layers. */
  readonly capacity_cells: number | null
  readonly capacity_bytes: number | null
  /** Bytes of a cell, in all layers; of layers with a sliding window, as long as it is not full. */
  readonly bytes_per_token: number | null
  /** After the last call, and the most. */
  readonly used_cells: number
  readonly used_bytes: number | null
  readonly peak_cells: number
  readonly peak_bytes: number | null
  /** Bytes used ÷ bytes of the cache, at the most. */
  readonly peak_share: number | null
  readonly by_phase: readonly KvPhase[]
}

/** Use of a KV cache by the calls of one phase. */
export interface KvPhase {
  readonly phase: Phase
  readonly calls: number
  /** In use after its last call. */
  readonly used_cells: number
  readonly used_bytes: number | null
  /** Change by a call, on average. */
  readonly growth_cells: number
  readonly growth_bytes: number | null
}

/** Backend buffers that were allocated, from their allocation until they were freed. */
export interface AllocationFigures {
  /** The most at once, of all types. */
  readonly peak_bytes: number
  /** Since the first event of the run; below 0: before it, while the model is loaded. */
  readonly peak_at_ns: number
  readonly last_bytes: number
  /** Most bytes first; at most 64. */
  readonly by_type: readonly AllocatedType[]
}

/** Backend buffers of one type. */
export interface AllocatedType {
  /** Such as `CPU_Mapped`. */
  readonly name: string
  readonly peak_bytes: number
  readonly last_bytes: number
  readonly allocations: number
  /** The part of `peak_bytes` that was allocated before the log begins, at unknown times. */
  readonly earlier_bytes: number
}
