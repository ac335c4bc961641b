import { growColumns } from '../../bytes/resized.ts'
import { putAt } from '../../model/by-id.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { RoleOf, RoleTable } from '../calls/roles.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { RoleImbalance } from './figures.ts'

/** Sums of the steps of one kind in one phase. */
interface Sums {
  readonly kind: RoleOf
  readonly phase: Phase | 'none'
  steps: number
  workers: number
  slowestNs: number
  meanNs: number
  /** By worker: steps in which it ended last. */
  readonly last: number[]
}

/** Compares the workers of each step: how much longer the slowest one computes than all do on average. */
export class Imbalance implements Statistic {
  private readonly sums = new Map<string, Sums>()
  /** By phase, then tensor. */
  private readonly byTensor = new DefaultMap<Phase | 'none', (Sums | undefined)[]>(() => [])
  /** By step of the call. */
  sumNs = new Float64Array(1024)
  maxNs = new Float64Array(1024)

  constructor(private readonly roles: RoleTable) {}

  call({ operators, steps }: CallParts): void {
    if (steps.count > this.sumNs.length) growColumns(this, ['sumNs', 'maxNs'], 2 * steps.count)
    const { sumNs, maxNs } = this
    sumNs.fill(0, 0, steps.count)
    maxNs.fill(0, 0, steps.count)
    const { count, startNs, endNs } = operators
    for (let i = 0; i < count; i++) {
      const step = steps.of[i]!
      if (step < 0) continue
      const ns = endNs[i]! - startNs[i]!
      sumNs[step]! += ns
      if (ns > maxNs[step]!) maxNs[step] = ns
    }
    const phase = operators.event?.phase ?? 'none'
    const byTensor = this.byTensor.of(phase)
    for (let step = 0; step < steps.count; step++) {
      const workers = steps.workers[step]!
      if (workers < 2) continue
      const sums = byTensor[steps.tensor[step]!] ?? this.make(steps.tensor[step]!, steps.last[step]!, phase, byTensor)
      const slowest = steps.slowest[step]!
      while (sums.last.length <= slowest) sums.last.push(0)
      sums.last[slowest]!++
      sums.steps++
      if (workers > sums.workers) sums.workers = workers
      sums.slowestNs += maxNs[step]!
      sums.meanNs += sumNs[step]! / workers
    }
  }

  private make(tensor: number, last: number, phase: Phase | 'none', byTensor: (Sums | undefined)[]): Sums {
    const kind = this.roles.role(this.roles.of(tensor, last))
    const key = `${phase} ${kind.op} ${kind.role}`
    let sums = this.sums.get(key)
    if (!sums) {
      sums = { kind, phase, steps: 0, workers: 0, slowestNs: 0, meanNs: 0, last: [] }
      this.sums.set(key, sums)
    }
    putAt(byTensor, tensor, sums, undefined)
    return sums
  }

  /** Most time lost first. */
  finish(): { readonly imbalance: RoleImbalance[] } {
    const imbalance = [...this.sums.values()]
      .sort((a, b) => b.slowestNs - b.meanNs - (a.slowestNs - a.meanNs))
      .map(({ kind, phase, steps, workers, slowestNs, meanNs, last }) => {
        const most = Math.max(...last)
        return {
          role: kind.role,
          op: kind.op,
          phase,
          workers,
          steps,
          slowest_ns: slowestNs,
          mean_ns: meanNs,
          imbalance_share: slowestNs > 0 ? (slowestNs - meanNs) / slowestNs : 0,
          last_worker: last.indexOf(most),
          last_share: most / steps,
        }
      })
    return { imbalance }
  }
}
