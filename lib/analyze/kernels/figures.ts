/** What Nsight Compute measured of single kernels, which it runs one at a time. */
export interface KernelProfiles {
  /** Launches that were profiled. */
  readonly launches: number
  /** Kernels of the logs, and those of them that were profiled; null where the logs contain no kernels. */
  readonly joined: KernelJoin | null
  /** By name; most time in the logs first, else in the profile; at most 100. */
  readonly kernels: readonly KernelProfileRow[]
  /** Further names. */
  readonly other_kernels: number
}

/** How kernels of logs were found in the profile. */
export interface KernelJoin {
  /** Kernels in the logs. */
  readonly kernels: number
  /** The same launch: by name, place among those of its stream, grid and block. */
  readonly same_launch: number
  /** Not profiled, but another launch with the same name, grid and block was. */
  readonly same_shape: number
  /** Time of all kernels in the logs, and of those that were found. */
  readonly time_ns: number
  readonly joined_time_ns: number
}

/** Kernels of one name. Shares are means over the profiled launches, weighted by their durations; null: not measured. */
export interface KernelProfileRow {
  /** As the profiler has it: with arguments. */
  readonly name: string
  /** As the logs have it; null where they do not contain it. */
  readonly log_name: string | null
  /** Profiled launches. */
  readonly launches: number
  /** Sum of their durations in the profile. */
  readonly profile_time_ns: number | null
  /** Kernels of this name in the logs that were found in the profile, and their time there. */
  readonly joined: number
  readonly gpu_time_ns: number
  /** Busiest part of the multiprocessors, of the most that it can do. */
  readonly sm_share: number | null
  /** Busiest part of the memory system, of the most that it can do. */
  readonly memory_share: number | null
  /** Of the peak of the GPU's memory. */
  readonly dram_share: number | null
  readonly l2_hit_share: number | null
  readonly l1_hit_share: number | null
  /** Active warps, of the most that can be. */
  readonly occupancy_share: number | null
  /** Cycles in which the pipe of the tensor cores is active. */
  readonly tensor_share: number | null
  /** Read and written in the GPU's memory, over all profiled launches. */
  readonly dram_bytes: number | null
  /** Over all profiled launches. */
  readonly flop: number | null
}
