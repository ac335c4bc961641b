/** Limits of a process: those of its control groups (containers), and the CPUs that it may use. */
export interface RunLimits {
  /** CPUs on which it was permitted to run when its log was opened. */
  readonly cpus: number | null
  /** CPU time that it may use, in CPUs; null: not limited. */
  readonly cpu_time: number | null
  /** Of the periods of that limit during the run, those in which it was reached; null: not known. */
  readonly throttled_share: number | null
  /** Time in which threads could not run for that reason, over all CPUs; null: not known. */
  readonly throttled_ns: number | null
  /** Null: not limited. */
  readonly memory_bytes: number | null
}

/** What the kernel counted during calls, for all threads of the process. */
export interface CallResources {
  /** Calls of which it was recorded. */
  readonly calls: number
  /** Page faults without a read. */
  readonly minor_faults: number
  /** Page faults that read from a disk. */
  readonly major_faults: number
  readonly disk_bytes: number
  /** CPU time. */
  readonly cpu_ns: number
}
