/** A thread had a CPU for some time. */
export interface CpuShare {
  /** Name and id of the thread, such as `hog 42`. */
  readonly label: number
  readonly ns: number
}

/** Time for which each thread had a CPU, longest first, and time for which the thread is not known. */
export interface CpuShares {
  readonly known: readonly CpuShare[]
  readonly unknownNs: number
}

/** A worker waited for its CPU, which other threads had. Times are the trace's, in ns. */
export interface CpuWait {
  readonly worker: number
  readonly fromNs: number
  readonly toNs: number
  readonly shares: CpuShares
}
