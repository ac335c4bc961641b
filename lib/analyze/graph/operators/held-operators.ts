import { growColumns } from '../../../bytes/resized.ts'
import type { OperatorEvent } from '../../../model/events.ts'
import { FIRST_CAPACITY, type Numbers, OPERATOR_COLUMNS, OperatorColumns } from './operator-columns.ts'

const COLUMNS = [...OPERATOR_COLUMNS, ...(['call', 'inferred', 'serial', 'step', 'previous'] as const)]

/** Operators that wait to be drawn, in the order in which they came: columns that are used again. */
export class HeldOperators extends OperatorColumns {
  /** Operators that came so far; the number of the next one. */
  end = 0
  /** Number of the first one that is held. */
  first = 0
  call = new Int32Array(FIRST_CAPACITY)
  inferred = new Int32Array(FIRST_CAPACITY)
  /** Serial of the graph run; -1: none. */
  serial = new Int32Array(FIRST_CAPACITY)
  /** The step of the graph run. */
  step = new Int32Array(FIRST_CAPACITY)
  /** Number of the operator of the same step that came before; -1: none. */
  previous = new Float64Array(FIRST_CAPACITY)
  private readonly counts: Numbers[] = []
  private readonly experts: Numbers[] = []
  /** Of the columns. */
  private capacity = FIRST_CAPACITY
  /** Operators before this one were not moved when the columns grew. */
  private known = 0

  get isEmpty(): boolean {
    return this.first === this.end
  }

  get size(): number {
    return this.end - this.first
  }

  /** Are the columns of an operator that came those of that number, or are they used again? */
  has(number: number): boolean {
    return number >= Math.max(this.end - this.capacity, this.known)
  }

  /** The index of an operator in the columns. */
  at(number: number): number {
    return number & (this.capacity - 1)
  }

  /** Adds an operator and returns its number. */
  add(event: OperatorEvent, serial: number, step: number): number {
    // Half of the columns stay with operators that were drawn: others of their steps need them.
    if (2 * this.size >= this.capacity) this.grow()
    const number = this.end++
    const at = this.at(number)
    this.put(at, event)
    this.call[at] = event.call
    this.inferred[at] = event.inferred
    this.counts[at] = event.counts
    this.experts[at] = event.experts
    this.serial[at] = serial
    this.step[at] = step
    return number
  }

  /** Removes the first operator. */
  take(): OperatorEvent {
    const at = this.at(this.first++)
    const [tensor, last] = [this.tensor[at]!, this.last[at]!]
    return {
      kind: 'operator',
      tensor,
      worker: this.worker[at]!,
      tid: this.tid[at]!,
      cpu: this.cpu[at]!,
      call: this.call[at]!,
      startNs: this.startNs[at]!,
      endNs: this.endNs[at]!,
      waitEndNs: this.waitEndNs[at]!,
      innerWaitNs: this.innerWaitNs[at] || undefined,
      counts: this.counts[at],
      fusedTo: last === tensor ? undefined : last,
      experts: this.experts[at],
      inferred: this.inferred[at]!,
    }
  }

  /** An operator keeps its index, or moves by the number of columns: it is at both. */
  private grow(): void {
    const { capacity, counts, experts } = this
    growColumns(this, COLUMNS, 2 * capacity)
    for (const key of COLUMNS) this[key].copyWithin(capacity, 0, capacity)
    for (const list of [counts, experts]) for (let at = 0; at < capacity; at++) list[at + capacity] = list[at]
    this.known = Math.max(this.end - capacity, this.known)
    this.capacity = 2 * capacity
  }
}
