import { growColumns } from '../../../bytes/resized.ts'
import type { RunColumns } from '../runs.ts'
import type { CallOperators } from './call-operators.ts'
import { STEP_COLUMNS, STEPS_FIRST, StepColumns } from './step-columns.ts'

const COLUMNS = [...STEP_COLUMNS, ...(['waitEndNs', 'openNs', 'next'] as const)]
const BY_TENSOR = ['firsts', 'latest', 'serials'] as const

/** When all workers of a call were blocked at once. */
export interface Stops {
  /** Time in an interval of the call in which none waits for another one: the program was stopped. */
  stoppedNs(fromNs: number, toNs: number): number
}

/**
 * The steps of a call: a node, or several fused ones, computed by all workers. Workers come in any order, the operators of each in
 * order of time; a node occurs once in each graph run.
 */
export class Steps extends StepColumns {
  /** End of the last barrier wait. */
  waitEndNs = new Float64Array(STEPS_FIRST)
  /** When the barrier opened: the last of all workers arrived. Infinity where one is missing, or where there is only one. */
  openNs = new Float64Array(STEPS_FIRST)
  /** The step of each operator; -1: none, as another worker lost operators. */
  of = new Int32Array(1024)
  /** The next step with the same node; -1: none. */
  next = new Int32Array(STEPS_FIRST)
  /** By tensor: its first and latest step in this call, valid where `serials` is this call's. */
  firsts = new Int32Array(1024)
  latest = new Int32Array(1024)
  serials = new Int32Array(1024)
  private serial = 0
  /** The first step of each graph run: a new one begins with a node that the run before contains already. */
  private readonly runStarts: number[] = []
  private readonly cursors: number[] = []

  /** Finds the steps of these operators; replaces those of the last call. */
  find(operators: CallOperators): void {
    const { count, tensor, worker, startNs } = operators
    this.serial++
    this.count = 0
    this.runStarts.length = 0
    this.cursors.fill(-1)
    if (this.of.length < count) this.of = new Int32Array(2 * count)
    for (let i = 0; i < count; i++) {
      const by = worker[i]!
      while (this.cursors.length <= by) this.cursors.push(-1)
      const cursor = this.cursors[by]!
      let step = cursor + 1
      if (step >= this.count || this.tensor[step] !== tensor[i] || !this.isWithin(step, startNs[i]!)) {
        step = this.stepOf(tensor[i]!, cursor, startNs[i]!)
      }
      this.of[i] = step
      if (step < 0) continue
      this.cursors[by] = step
      this.merge(step, operators, i)
    }
    for (const [i, from] of this.runStarts.entries()) this.findOpen(from, this.runStarts[i + 1] ?? this.count)
  }

  /**
   * Part of the wait after an operator in which the barrier was open: its worker had no CPU, or had not noticed. Without that in which all workers were
   * blocked.
   */
  openPartNs({ endNs, waitEndNs }: CallOperators, i: number, off?: Stops): number {
    const step = this.of[i]!
    if (step < 0) return 0
    const openNs = this.openNs[step]!
    const fromNs = openNs > endNs[i]! ? openNs : endNs[i]!
    return waitEndNs[i]! > fromNs ? waitEndNs[i]! - fromNs - (off?.stoppedNs(fromNs, waitEndNs[i]!) ?? 0) : 0
  }

  /** Of the steps of a run: all its workers compute each of them. */
  private findOpen(from: number, to: number): void {
    const { workers, endNs, openNs } = this
    let all = 2
    for (let step = from; step < to; step++) if (workers[step]! > all) all = workers[step]!
    for (let step = from; step < to; step++) openNs[step] = workers[step] === all ? endNs[step]! : Infinity
  }

  /** The graph runs of the call; valid until the next {@link find}. */
  runs(call: number): RunColumns[] {
    const { runStarts, tensor, last, startNs, endNs } = this
    return runStarts.map((from, i) => {
      const to = runStarts[i + 1] ?? this.count
      const [nodes, lasts] = [tensor.subarray(from, to), last.subarray(from, to)]
      const [starts, ends] = [startNs.subarray(from, to), endNs.subarray(from, to)]
      const [workers, slowest] = [this.workers.subarray(from, to), this.slowest.subarray(from, to)]
      return { count: to - from, tensor: nodes, last: lasts, startNs: starts, endNs: ends, workers, slowest, call }
    })
  }

  /** The step of a node after one that the worker has passed; a new one if there is none; -1 where it would be in the past. */
  private stepOf(tensor: number, passed: number, startNs: number): number {
    // Mostly, the worker is the first that gets there. In runs of few nodes, a call has thousands of steps with the same one.
    if (tensor < this.serials.length && this.serials[tensor] === this.serial && this.latest[tensor]! > passed) {
      const isSame = passed >= 0 && this.tensor[passed] === tensor
      for (let step = isSame ? this.next[passed]! : this.firsts[tensor]!; step >= 0; step = this.next[step]!) {
        if (step > passed && this.isWithin(step, startNs)) return step
      }
    }
    if (this.count > 0 && startNs < this.startNs[this.count - 1]!) return -1
    return this.append(tensor)
  }

  private append(tensor: number): number {
    if (this.count === this.tensor.length) growColumns(this, COLUMNS, 2 * this.count)
    const step = this.count++
    this.tensor[step] = tensor
    this.workers[step] = 0
    this.next[step] = -1
    if (tensor >= this.serials.length) growColumns(this, BY_TENSOR, Math.max(2 * this.serials.length, tensor + 1))
    const isNew = this.serials[tensor] !== this.serial
    if (isNew) this.firsts[tensor] = step
    else this.next[this.latest[tensor]!] = step
    const runStart = this.runStarts.at(-1)
    if (runStart === undefined || (!isNew && this.latest[tensor]! >= runStart)) this.runStarts.push(step)
    this.serials[tensor] = this.serial
    this.latest[tensor] = step
    return step
  }

  private merge(step: number, operators: CallOperators, i: number): void {
    const endNs = operators.endNs[i]!
    const startNs = operators.startNs[i]!
    const waitEndNs = operators.waitEndNs[i]!
    if (this.workers[step] === 0) {
      this.workers[step] = 1
      this.last[step] = operators.last[i]!
      this.startNs[step] = startNs
      this.endNs[step] = endNs
      this.waitEndNs[step] = waitEndNs
      this.slowest[step] = operators.worker[i]!
      return
    }
    if (waitEndNs > this.waitEndNs[step]!) this.waitEndNs[step] = waitEndNs
    this.extend(step, startNs, endNs, operators.worker[i]!)
  }
}
