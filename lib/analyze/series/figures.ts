import type { ModelBlock } from '../../model/blocks.ts'
import type { BufferUsage, Phase } from '../../model/events.ts'
import type { CallSeries } from '../calls/figures.ts'
import type { LivePeak } from '../memory/figures.ts'
import type { RequestSeries } from '../requests/figures.ts'
import type { TimeOnKind } from '../threads/figures.ts'

/** Figures over time. */
export interface Series {
  readonly calls?: CallSeries | undefined
  readonly requests?: RequestSeries | undefined
  readonly offsets?: OffsetSeries | undefined
  /** Of one call: the one that was asked for, or the first decode call, else the first call. */
  readonly memory?: MemorySeries | undefined
  /** Of one call: the one that was asked for, or the second decode call, else the first one, else the first call. */
  readonly graph?: GraphSeries | undefined
  /** With `calls`, whose rows it completes. */
  readonly steps?: StepSeries | undefined
}

/** Names of {@link Series}. */
export type SeriesName = keyof Series

/** The time of calls by groups of their steps, from which `whatIf` predicts. */
export interface StepSeries {
  readonly groups: readonly StepGroup[]
  /** The rows of `calls` whose operators were recorded, in one piece. */
  readonly calls: readonly StepsOfCall[]
  /** Are states of threads known? Else nothing is known of preemption. */
  readonly has_states: boolean
}

/** Steps with the same op, role, and weight: nodes, or fused ones, of all layers. */
export interface StepGroup {
  readonly op: string
  readonly role: string
  readonly block: ModelBlock
  /** Type, and elements of one step, of the weights that a step reads as a matrix; empty and 0 without. Of experts, all of them. */
  readonly type: string
  readonly weight_elements: number
  /** Of the matrix, of experts of each: elements of a row, and rows. */
  readonly weight_columns: number
  readonly weight_rows: number
  /** Experts that a token uses; null: the weights are of no experts, or it is not known. */
  readonly experts_used: number | null
  /** Of flash attention; null: other steps. */
  readonly attention: AttentionShape | null
}

/** What flash attention computes, for each token: `heads` of Q on `kv_heads` of K and V. */
export interface AttentionShape {
  /** Elements of a head of Q and K, and of V. */
  readonly head_size: number
  readonly value_size: number
  readonly heads: number
  readonly kv_heads: number
  /** Types of the cache. */
  readonly k_type: string
  readonly v_type: string
}

/** The steps of a call. Lists are by group, and may be shorter: the rest is 0. */
export interface StepsOfCall {
  readonly call: number
  /** The most workers of a step. */
  readonly workers: number
  /** Places of the KV cache that attention reads, with those that are masked; null: not known. */
  readonly cache_tokens: number | null
  readonly steps: readonly number[]
  /** For so many tokens steps multiply weights, the sum of all; 0: others. The last layer computes most for tokens with outputs only. */
  readonly tokens: readonly number[]
  /** From the end of the step before to the end of its barrier. */
  readonly time_ns: readonly number[]
  /** The part of it from its first start to the end of computing of its last worker. */
  readonly compute_ns: readonly number[]
  /** `time_ns` as it is without preemption: of steps in which a thread lost its CPU, the longest worker without this time, and what the barrier of other steps takes. */
  readonly undisturbed_ns: readonly number[]
  /** Steps in which no thread lost its CPU, nor before them, and their time. */
  readonly quiet_steps: readonly number[]
  readonly quiet_ns: readonly number[]
  /** Time in which the call's thread lost its CPU outside of steps. */
  readonly preempted_outside_ns: number
  /** The same from the end of the thread's call before to the start of this one. */
  readonly preempted_before_ns: number
  /** Page faults that read, of all threads during the call; null: not counted. */
  readonly major_faults: number | null
}

/** The graph of one call as it ran: every node, and what each reads. */
export interface GraphSeries {
  /** -1: its operators are in no recorded call; then it is the first graph run of those. */
  readonly call: number
  readonly phase: Phase | 'none'
  /** Null: not known. */
  readonly tokens: number | null
  /** Nodes and leaves at most, each; `left_out`: further ones, which are missing. Sources that are left out are -1. */
  readonly nodes_max: number
  readonly left_out: number
  /** In the order in which they were computed; what was not computed, such as views, is before its first reader. */
  readonly nodes: readonly GraphNode[]
  /** Tensors that the graph reads and no node computes: weights, caches, inputs. */
  readonly leaves: readonly GraphLeaf[]
}

/** A node of a graph. What is measured is null where it was not computed by itself. */
export interface GraphNode {
  /** Its index in `nodes`. A tensor that is computed again, in a further graph run of the call, is another node. */
  readonly id: number
  /**
   * `operator`: it was computed. `fused`: together with the node `fused_into`, which has the figures of all of them. `view`: its op computes
   * nothing. `not recorded`: another node reads it, or its split has it, but no operator of it was recorded, as of other backends.
   */
  readonly kind: 'operator' | 'fused' | 'view' | 'not recorded'
  readonly name: string
  readonly op: string
  /** The name without the number of its layer; empty where it has none. */
  readonly role: string
  /** -1: in no layer. */
  readonly layer: number
  readonly block: ModelBlock
  /** Type and shape of the result. */
  readonly type: string
  readonly shape: string
  /** Of the result; null where it was not recorded. */
  readonly size_bytes: number | null
  /** What computes it: the backend of its split; null where splits are not known. */
  readonly backend: string | null
  /** Number of its split in the call, from 0, in the order of time; null as `backend`. */
  readonly split: number | null
  /** Number of the graph run in the call, from 0: a prompt in several micro-batches has several. */
  readonly run: number
  /** Number of the step in the call, from 0. */
  readonly order: number | null
  /** Id of the last of the fused nodes. */
  readonly fused_into: number | null
  /** The recorded source list, in its order: ids of nodes; below 0, leaves: -2 is the first one. -1: left out. */
  readonly sources: readonly number[]
  /**
   * Ids of the operators that wrote the data it reads, in ascending order. Views are followed; a tensor that is written in parts, as a
   * cache, has several. A tensor is identified by itself, not by its address, which an arena uses again.
   */
  readonly reads_from: readonly number[]
  /** Since the start of the call, or of its first step. */
  readonly start_ns: number | null
  /** From the first start to the end of the last barrier. */
  readonly wall_ns: number | null
  /** Time of computing, and of waiting at the barrier after it, over all workers. */
  readonly operator_time_ns: number | null
  readonly wait_ns: number | null
  readonly workers: number | null
  /** (Slowest worker − mean) / slowest worker; null for one worker. */
  readonly imbalance_share: number | null
  /** Its workers and their time by kind of core, the fastest kind first; null where all cores are of one kind. */
  readonly by_core_kind: readonly TimeOnKind[] | null
  /** As in {@link OperatorRow}; null where they are not known. */
  readonly flop: number | null
  readonly bytes_read: number | null
  readonly bytes_written: number | null
  readonly weight_bytes: number | null
  /** Different experts whose weights it reads; null where it has none, or where the choice was not recorded. */
  readonly experts: number | null
}

/** A tensor that a graph reads and does not compute. */
export interface GraphLeaf {
  /** -2 for the first one, -3 for the second one, and so on. */
  readonly id: number
  readonly kind: 'weight' | 'cache' | 'input'
  readonly name: string
  readonly role: string
  readonly layer: number
  readonly block: ModelBlock
  readonly type: string
  readonly shape: string
  readonly size_bytes: number | null
  /** Usage and name of its buffer; null where it is not known. */
  readonly buffer: BufferUsage | null
  readonly buffer_name: string | null
  /** In the buffer; of weights in the GGUF file. */
  readonly offset: number | null
}

/** Live bytes of the compute buffers over the time of one call. */
export interface MemorySeries {
  readonly call: number
  readonly phase: Phase | 'none'
  /** Samples of each buffer at most; `left_out`: further ones, which are missing. */
  readonly samples_max: number
  readonly buffers: readonly LiveSeries[]
}

/** Live bytes of one compute buffer; empty where places of results were not recorded. */
export interface LiveSeries {
  readonly name: string
  readonly label: string
  readonly size_bytes: number | null
  /** Where they change, in order of time; they hold until the next one. */
  readonly samples: readonly LiveSample[]
  readonly left_out: number
  /** The most in this call; its time is since the first event of the run. */
  readonly peak: LivePeak
}

/** Live bytes from the start of a step on. */
export interface LiveSample {
  /** Since the first event of the run. */
  readonly at_ns: number
  readonly live_bytes: number
  /** Number of the graph run in the call, and of the step in it; -1: before its first one, or after its last one. */
  readonly run: number
  readonly step: number
  /** Result of the step; empty where `step` is -1. */
  readonly tensor: string
}

/** Which bytes of the weights were read when, as maps: offset × time. */
export interface OffsetSeries {
  /** At most 8 buffers, those that were used first; `further_buffers`: others, which are missing. */
  readonly maps: readonly OffsetMap[]
  readonly further_buffers: number
}

/**
 * Reads of weights in one buffer. Each read counts at the start of its step, and evenly over the bytes of its tensor: of experts
 * over the chosen ones where they were recorded; rows of embedding tables over the whole table.
 */
export interface OffsetMap {
  readonly name: string
  readonly label: string
  /** Of the mapped model file: offsets are those of the GGUF. */
  readonly offsets_from: string
  /** Offsets and times at most. */
  readonly bins_max: number
  /** Start of the first bins; times since the first event of the run. */
  readonly first_offset: number
  readonly offset_bin_bytes: number
  readonly first_ns: number
  readonly time_bin_ns: number
  /** Of all cells. */
  readonly bytes: number
  /** Cells in which something was read: number of the time, number of the offset, bytes (rounded). By time, then offset. */
  readonly cells: readonly (readonly [time: number, offset: number, bytes: number])[]
}
