import type { AccessWhat, DataLevel } from '../../model/access-events.ts'
import type { BufferUsage, Phase } from '../../model/events.ts'

/** When an access was: in a call of this kind, before the first call, or between calls. */
export type AccessTime = Phase | 'load' | 'between calls'

/** Samples of data addresses of one kind, by what they hit. Tables are bounded; what is beyond them is summed up. */
export interface AccessFigures {
  /** Samples of the log's process. */
  readonly samples: number
  /** Events: each sample counts as many as the period of sampling. */
  readonly events: number
  /** Names of the sampled events, as perf has them. */
  readonly sampled_events: readonly string[]
  /** Events in tensors. */
  readonly in_tensors: number
  /** Samples of other processes, and samples beyond the 4 194 304 that are held: not in any figure. */
  readonly other_processes: number
  readonly not_held: number
  readonly by_time: readonly { readonly time: AccessTime; readonly events: number }[]
  /** By what the tensor's buffer contains, most events first; `none`: in no tensor. */
  readonly by_usage: readonly { readonly usage: BufferUsage | 'none'; readonly events: number }[]
  /** Most events first; at most 64. */
  readonly by_tensor: readonly TensorAccesses[]
  readonly further_tensors: number
  readonly further_events: number
  /** Of tensors, in order of layers; -1: in no layer. */
  readonly by_layer: readonly { readonly layer: number; readonly events: number }[]
  /** Of tensors by role in each layer; of the 32 roles with most events. -1: in no layer. */
  readonly by_role_layer: readonly RoleLayerAccesses[]
  /** By the worker whose operator the thread computed; -1: in no operator. */
  readonly by_worker: readonly { readonly worker: number; readonly events: number }[]
  /** By NUMA node of the CPU; empty where it was not recorded. */
  readonly by_node: readonly { readonly node: number; readonly events: number }[]
  /** What was hit outside of tensors, most events first; at most 16, further ones added as the last. */
  readonly elsewhere: readonly { readonly place: string; readonly events: number }[]
}

/** Accesses to the tensors of a role in one layer. */
export interface RoleLayerAccesses {
  readonly role: string
  readonly usage: BufferUsage | 'none'
  readonly layer: number
  readonly events: number
}

/** Accesses to one tensor. */
export interface TensorAccesses {
  readonly tensor: string
  /** Its name without the number of its layer. */
  readonly role: string
  /** -1: in no layer. */
  readonly layer: number
  readonly usage: BufferUsage | 'none'
  /** In its buffer; of weights, in the GGUF file. Null: not recorded. */
  readonly offset: number | null
  readonly bytes: number
  readonly samples: number
  readonly events: number
  /** Different pages of 4096 bytes that were hit. */
  readonly pages: number
  /** Of loads whose latency was recorded, in cycles; null without any. */
  readonly mean_latency_cycles: number | null
}

/** Page faults, sampled with their addresses. */
export interface PageFaultFigures extends AccessFigures {
  /** Events by kind of fault; `fault`: of both kinds. */
  readonly by_kind: readonly { readonly kind: AccessWhat; readonly events: number }[]
  /** In weights, during calls; by phase, most events first. */
  readonly weights_in_calls: readonly WeightFaults[]
}

/** Page faults in weights during the calls of one phase. */
export interface WeightFaults {
  readonly phase: Phase
  readonly events: number
  /** Of them, in pages that had faulted before: they were taken from memory, or from the process, in between. */
  readonly again: number
  /** Of them, those that were read from a disk; null: kinds of faults were not recorded (`page-faults` is both). */
  readonly major: number | null
  /** Most events first; at most 16. */
  readonly by_tensor: readonly { readonly tensor: string; readonly layer: number; readonly events: number }[]
}

/** Loads and stores, sampled by the processor with their addresses. */
export interface DataAccessFigures extends AccessFigures {
  readonly loads: number
  readonly stores: number
  /** Loads by where their data was found, nearest first. */
  readonly by_level: readonly LevelAccesses[]
  /** Part of the loads with a recorded translation that missed all levels of the TLB; null: not recorded. */
  readonly tlb_miss_share: number | null
  /** Loads of tensors by role, most events first; at most 32. */
  readonly by_role: readonly RoleAccesses[]
}

/** Loads whose data was found at one place. Empty: not recorded. */
export interface LevelAccesses {
  readonly level: DataLevel
  readonly samples: number
  readonly events: number
  /** Of the events of all loads. */
  readonly share: number
  /** Null: not recorded. */
  readonly mean_latency_cycles: number | null
}

/** Loads of the tensors of a role, in all layers. */
export interface RoleAccesses {
  readonly role: string
  readonly usage: BufferUsage | 'none'
  readonly samples: number
  readonly events: number
  readonly mean_latency_cycles: number | null
  /** Part of the events from memory, of any node. */
  readonly memory_share: number
}
