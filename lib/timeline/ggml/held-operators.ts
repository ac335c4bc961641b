import type { OperatorEvent } from '../../model/events.ts'

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
  readonly startNs: Float64Array
  readonly endNs: Float64Array
  readonly waitEndNs: Float64Array
  /** Serial of the graph run; -1: none. */
  readonly serial: Int32Array
  /** The step of the graph run. */
  readonly step: Int32Array
  /** Number of the operator of the same step that came before; -1: none. */
  readonly previous: Float64Array
  readonly worker: Int32Array
  private readonly innerWaitNs: Float64Array
  private readonly tensor: Int32Array
  private readonly tid: Int32Array
  private readonly cpu: Int32Array
  private readonly call: Int32Array
  private readonly fusedTo: Int32Array
  private readonly inferred: Int32Array
  private readonly counts: Numbers[] = []
  private readonly experts: Numbers[] = []

  /** `capacity`: operators that are held at most, a power of two. */
  constructor(private readonly capacity: number) {
    const doubles = () => new Float64Array(capacity)
    const ints = () => new Int32Array(capacity)
    ;[this.startNs, this.endNs, this.waitEndNs, this.innerWaitNs, this.previous] = [
      doubles(),
      doubles(),
      doubles(),
      doubles(),
      doubles(),
    ]
    ;[this.serial, this.step, this.worker, this.tensor, this.tid] = [ints(), ints(), ints(), ints(), ints()]
    ;[this.cpu, this.call, this.fusedTo, this.inferred] = [ints(), ints(), ints(), ints()]
  }

  get isEmpty(): boolean {
    return this.first === this.end
  }

  get size(): number {
    return this.end - this.first
  }

  /** Are the columns of an operator that came those of that number, or are they used again? */
  has(number: number): boolean {
    return number >= this.end - this.capacity
  }

  /** The index of an operator in the columns. */
  at(number: number): number {
    return number & (this.capacity - 1)
  }

  /** Adds an operator and returns its number. */
  add(event: OperatorEvent, serial: number, step: number): number {
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
}
