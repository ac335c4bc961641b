import { firstIndex } from '../../bytes/search.ts'

/** Steps whose figures are made. */
export const STEPS_MAX = 100

interface Step {
  readonly name: string
  readonly startNs: number
  readonly endNs: number
}

/** Steps of a program: the first ones by their starts. */
export class StepList {
  list: Step[] = []
  count = 0

  add(step: Step): void {
    this.count++
    this.list.push(step)
    if (this.list.length >= 2 * STEPS_MAX) this.settle()
  }

  /** Sorts the steps, and keeps the first ones. */
  settle(): void {
    this.list = this.list.sort((a, b) => a.startNs - b.startNs).slice(0, STEPS_MAX)
  }

  /** The index of the latest step that contains a time, after {@link settle}; -1: none. */
  at(ns: number): number {
    const { list } = this
    if (list.length === 0) return -1
    const last = firstIndex(0, list.length, (i) => list[i]!.startNs > ns) - 1
    return last >= 0 && list[last]!.endNs >= ns ? last : -1
  }
}
