import type { ThreadOfCpu } from './kernel-events.ts'
import type { Names } from './names.ts'

/** A thread had a CPU for some time. */
export interface CpuShare extends ThreadOfCpu {
  readonly ns: number
}

/** Name and id of a thread in one text, such as `hog 42`. */
export function threadText({ tid, comm }: ThreadOfCpu, names: Names): string {
  return tid === 0 ? 'idle' : `${names.text(comm)} ${tid}`.trim()
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
