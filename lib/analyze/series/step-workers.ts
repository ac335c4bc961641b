import { DefaultMap } from '../../model/default-map.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import { timesOf } from '../threads/core-kinds.ts'
import type { TimeOnKind } from '../threads/figures.ts'

/** The kind of core that computed an operator; undefined: the machine has one kind. */
export type KindOf = (operators: CallOperators, i: number) => string | undefined

/** What is measured of the workers of a step. */
class OfWorkers {
  timeNs = 0
  waitNs = 0
  slowestNs = 0
  readonly kinds = new DefaultMap<string, { executions: number; timeNs: number }>(() => ({ executions: 0, timeNs: 0 }))

  /** Null where the machine has one kind of cores. */
  get byKind(): readonly TimeOnKind[] | null {
    return this.kinds.size > 0 ? timesOf(this.kinds) : null
  }
}

/** By step, what its workers take. */
export function workersOf(operators: CallOperators, steps: Steps, kindOf: KindOf): DefaultMap<number, OfWorkers> {
  const { count, startNs, endNs, waitEndNs } = operators
  const byStep = new DefaultMap<number, OfWorkers>(() => new OfWorkers())
  for (let i = 0; i < count; i++) {
    const workers = byStep.of(steps.of[i]!)
    const timeNs = endNs[i]! - startNs[i]!
    workers.timeNs += timeNs
    workers.waitNs += waitEndNs[i]! - endNs[i]!
    workers.slowestNs = Math.max(workers.slowestNs, timeNs)
    const kind = kindOf(operators, i)
    if (kind === undefined) continue
    const ofKind = workers.kinds.of(kind)
    ofKind.executions++
    ofKind.timeNs += timeNs
  }
  return byStep
}
