import type { OperatorEvent } from '../../../model/events.ts'

/** The columns grow with the operators that are held. */
const FIRST_CAPACITY = 1 << 10

type Numbers = readonly number[] | undefined

/**
 * Operators that wait to be drawn, in the order in which they came, as columns: as objects, which live longer than V8's young
 * generation, 100 000 of them cost 290 MB and half of the speed.
 */
export class HeldOperators {
  /** Operators that came so far; the number of the next one. */
  end = 0
  /** Number of the first one that is held. */
  first = 0
  startNs = new Float64Array(FIRST_CAPACITY)
  endNs = new Float64Array(FIRST_CAPACITY)
  waitEndNs = new Float64Array(FIRST_CAPACITY)
  /** Serial of the graph run; -1: none. */
  serial = new Int32Array(FIRST_CAPACITY)
  /** The step of the graph run. */
  step = new Int32Array(FIRST_CAPACITY)
  /** Number of the operator of the same step that came before; -1: none. */
  previous = new Float64Array(FIRST_CAPACITY)
  worker = new Int32Array(FIRST_CAPACITY)
  call = new Int32Array(FIRST_CAPACITY)
  private innerWaitNs = new Float64Array(FIRST_CAPACITY)
  private tensor = new Int32Array(FIRST_CAPACITY)
  private tid = new Int32Array(FIRST_CAPACITY)
  private cpu = new Int32Array(FIRST_CAPACITY)
  private fusedTo = new Int32Array(FIRST_CAPACITY)
  private inferred = new Int32Array(FIRST_CAPACITY)
  private counts: Numbers[] = []
  private experts: Numbers[] = []
  /** Of the columns, a power of two. */
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
    this.startNs[at] = event.startNs
    this.endNs[at] = event.endNs
    this.waitEndNs[at] = event.waitEndNs
    this.innerWaitNs[at] = event.innerWaitNs ?? -1
    this.worker[at] = event.worker
    this.tensor[at] = event.tensor
    this.tid[at] = event.tid
    this.cpu[at] = event.cpu
    this.call[at] = event.call
    this.fusedTo[at] = event.fusedTo ?? -1
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
    const innerWaitNs = this.innerWaitNs[at]!
    const fusedTo = this.fusedTo[at]!
    return {
      kind: 'operator',
      tensor: this.tensor[at]!,
      worker: this.worker[at]!,
      tid: this.tid[at]!,
      cpu: this.cpu[at]!,
      call: this.call[at]!,
      startNs: this.startNs[at]!,
      endNs: this.endNs[at]!,
      waitEndNs: this.waitEndNs[at]!,
      innerWaitNs: innerWaitNs < 0 ? undefined : innerWaitNs,
      counts: this.counts[at],
      fusedTo: fusedTo < 0 ? undefined : fusedTo,
      experts: this.experts[at],
      inferred: this.inferred[at]!,
    }
  }

  private grow(): void {
    const to = 2 * this.capacity
    const from = Math.max(this.end - this.capacity, this.known)
    const moved = <T extends Float64Array | Int32Array>(column: T): T => {
      const wider = new (column.constructor as new (length: number) => T)(to)
      for (let number = from; number < this.end; number++) wider[number & (to - 1)] = column[this.at(number)]!
      return wider
    }
    const movedLists = (lists: readonly Numbers[]) => {
      const wider = new Array<Numbers>(to).fill(undefined)
      for (let number = from; number < this.end; number++) wider[number & (to - 1)] = lists[this.at(number)]
      return wider
    }
    this.startNs = moved(this.startNs)
    this.endNs = moved(this.endNs)
    this.waitEndNs = moved(this.waitEndNs)
    this.innerWaitNs = moved(this.innerWaitNs)
    this.previous = moved(this.previous)
    this.serial = moved(this.serial)
    this.step = moved(this.step)
    this.worker = moved(this.worker)
    this.tensor = moved(this.tensor)
    this.tid = moved(this.tid)
    this.cpu = moved(this.cpu)
    this.call = moved(this.call)
    this.fusedTo = moved(this.fusedTo)
    this.inferred = moved(this.inferred)
    this.counts = movedLists(this.counts)
    this.experts = movedLists(this.experts)
    this.capacity = to
    this.known = from
  }
}
