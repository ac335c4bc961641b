import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { AffinityEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'

/** Combinations of CPUs that are distinguished: on a busy machine with many CPUs there are more. */
const COMBINATIONS_MAX = 4096
/** Affinities of a thread that are kept, for calls that are read later: a log contains the calls of each thread in blocks. */
const KEPT_MAX = 1 << 14

/** The CPUs on which workers began calls, and might run; times are those of the calls. */
export interface WorkerCpus {
  /** By the CPU of each worker, separated by blanks; -1: not known. */
  readonly together: ReadonlyMap<string, number>
  /** Of each worker, by list of the kernel, '' where it is not known. */
  readonly allowed: readonly ReadonlyMap<string, number>[]
  /** Changes of the CPU of a worker's thread from a graph to its next one. */
  readonly moves: readonly number[]
}

/** Where each worker began the graphs of each call. */
export class WorkerCpusStatistic implements Statistic<{ readonly workerCpus: WorkerCpus | undefined }, 'affinity'> {
  readonly kinds = ['affinity'] as const
  private readonly threads = new DefaultMap<number, AffinityEvent[]>(() => [])
  private readonly together = new Map<string, number>()
  private readonly allowed: Map<string, number>[] = []
  private readonly moves: number[] = []
  /** Of the workers of the call that was read last; -1: not known. */
  latest: readonly number[] = []

  constructor(private readonly names: Names) {}

  event(event: AffinityEvent): void {
    if (event.tid < 0 || event.worker < 0) return
    const events = this.threads.of(event.tid)
    const before = events.at(-1)
    if (before && before.worker === event.worker && before.cpu !== event.cpu)
      this.moves[event.worker] = (this.moves[event.worker] ?? 0) + 1
    events.push(event)
    if (events.length > KEPT_MAX) events.splice(0, KEPT_MAX / 2)
  }

  call({ operators, weight }: CallParts): void {
    const { event, isFurther, count, worker, tid } = operators
    if (!event || isFurther || this.threads.size === 0) return
    const tids: number[] = []
    for (let i = 0; i < count; i++) tids[worker[i]!] = tid[i]!
    const timeNs = (event.endNs - event.startNs) * weight
    const cpus = Array.from(tids, (tid, by) => {
      const found = tid === undefined ? undefined : this.at(tid, event.endNs)
      if (found) add(this.allowedOf(by), this.names.text(found.allowed), timeNs)
      return found?.cpu ?? -1
    })
    this.latest = cpus
    const key = cpus.join(' ')
    if (this.together.has(key) || this.together.size < COMBINATIONS_MAX) add(this.together, key, timeNs)
  }

  /** The latest of a thread until then. */
  private at(tid: number, untilNs: number): AffinityEvent | undefined {
    const all = this.threads.get(tid)
    if (!all) return undefined
    const next = firstIndex(0, all.length, (i) => all[i]!.atNs > untilNs)
    return next > 0 ? all[next - 1] : undefined
  }

  private allowedOf(worker: number): Map<string, number> {
    while (this.allowed.length <= worker) this.allowed.push(new Map())
    return this.allowed[worker]!
  }

  finish() {
    if (this.together.size === 0) return { workerCpus: undefined }
    const moves = Array.from(this.allowed, (_, by) => this.moves[by] ?? 0)
    return { workerCpus: { together: this.together, allowed: this.allowed, moves } }
  }
}

function add<K>(sums: Map<K, number>, key: K, ns: number): void {
  sums.set(key, (sums.get(key) ?? 0) + ns)
}
