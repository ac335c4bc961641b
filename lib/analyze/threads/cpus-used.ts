import { DefaultMap } from '../../model/default-map.ts'
import type { StateEvent } from '../../model/events.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'

/** Highest number of a CPU, plus one; those above it are not counted. */
const CPUS_MAX = 4096

/** CPUs on which threads ran. */
export interface CpusOfThreads {
  readonly cpus_used: number | null
  /** Those of workers. */
  readonly cpusOfWorkers: readonly number[]
}

/** The CPUs on which threads of a program ran. */
export class CpusUsed implements Statistic<CpusOfThreads, 'state'> {
  readonly kinds = ['state'] as const
  private count = 0
  private readonly cpus = new Uint8Array(CPUS_MAX)
  private readonly byThread = new DefaultMap<number, Set<number>>(() => new Set())
  private readonly ofWorkers = new Set<number>()
  private readonly workers = new Set<number>()

  event({ state, cpu, tid }: StateEvent): void {
    if (state !== 'running') return
    this.add(cpu)
    if (cpu >= 0) this.byThread.of(tid).add(cpu)
  }

  call({ operators: { count, cpu, tid } }: CallParts): void {
    for (let i = 0, before = -1, thread = -1; i < count; i++) {
      if (cpu[i] !== before) {
        this.add(cpu[i]!)
        if (cpu[i]! >= 0) this.ofWorkers.add(cpu[i]!)
      }
      if (tid[i] !== thread) this.workers.add(tid[i]!)
      before = cpu[i]!
      thread = tid[i]!
    }
  }

  private add(cpu: number): void {
    if (this.cpus[cpu] !== 0) return
    this.cpus[cpu] = 1
    this.count++
  }

  finish() {
    const ofStates = [...this.byThread].flatMap(([tid, cpus]) => (this.workers.has(tid) ? [...cpus] : []))
    return { cpus_used: this.count || null, cpusOfWorkers: [...new Set([...this.ofWorkers, ...ofStates])] }
  }
}
