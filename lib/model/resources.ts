/** What the kernel counted from the start of a call, or of a stage of loading, to its end. */
export interface Resources {
  /** Page faults of all threads of the process: without a read, and with one. */
  readonly minorFaults: number
  readonly majorFaults: number
  /** Bytes that the process read from disks. */
  readonly bytesRead: number
  /** CPU time of all of its threads, in ns. */
  readonly processCpuNs: number
  /** Of the thread, in ns: on a CPU; able to run, but without one. -1: not known. */
  readonly cpuNs: number
  readonly waitingNs: number
}
