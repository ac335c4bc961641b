import type { StateEvent } from '../../model/events.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'

/** Highest number of a CPU, plus one; those above it are not counted. */
const CPUS_MAX = 4096

/** The CPUs on which threads of a program ran. */
export class CpusUsed implements Statistic<object, 'state'> {
  readonly kinds = ['state'] as const
  private count = 0
  private readonly cpus = new Uint8Array(CPUS_MAX)

  event({ state, cpu }: StateEvent): void {
    if (state === 'running') this.add(cpu)
  }

  call({ operators: { count, cpu } }: CallParts): void {
    for (let i = 0, before = -1; i < count; i++) {
      if (cpu[i] !== before) this.add(cpu[i]!)
      before = cpu[i]!
    }
  }

  private add(cpu: number): void {
    if (this.cpus[cpu] !== 0) return
    this.cpus[cpu] = 1
    this.count++
  }

  finish() {
    return { cpus_used: this.count || null }
  }
}
