import { getOrMake } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import type { Taker } from './figures.ts'

/** Threads of one name whose times are kept apart. */
const THREADS_MAX = 64

/** Threads of one name. */
interface Named {
  readonly comm: number
  readonly isOwn: boolean
  ns: number
  readonly threads: Map<number, number>
}

/** Time in which other threads had the CPU of a thread that waited for it. */
export class CpuTakers {
  private readonly named = new Map<number, Named>()

  /** `tid` 0: no thread had it. */
  add(comm: number, tid: number, isOwn: boolean, ns: number): void {
    const key = tid === 0 ? -1 : 2 * comm + (isOwn ? 1 : 0)
    const named = getOrMake(this.named, key, () => ({ comm, isOwn, ns: 0, threads: new Map() }))
    named.ns += ns
    const before = named.threads.get(tid)
    if (before !== undefined || named.threads.size < THREADS_MAX) named.threads.set(tid, (before ?? 0) + ns)
  }

  /** The first `max` of them, most time first, and the time of the others. */
  list(max: number, wholeNs: number, names: Names): { takers: Taker[]; other_takers_ns: number } {
    const all = [...this.named.values()].map(({ comm, isOwn, ns, threads }) => {
      const [tid] = [...threads].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]!
      const name = tid === 0 ? 'idle' : names.text(comm)
      return {
        ...{ comm: name, tid, threads: threads.size, is_own: isOwn, time_ns: ns },
        share: wholeNs > 0 ? ns / wholeNs : 0,
      }
    })
    all.sort((a, b) => b.time_ns - a.time_ns || (a.comm < b.comm ? -1 : 1))
    return { takers: all.slice(0, max), other_takers_ns: all.slice(max).reduce((sum, { time_ns }) => sum + time_ns, 0) }
  }
}
