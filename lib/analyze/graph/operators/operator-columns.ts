import type { OperatorEvent } from '../../../model/events.ts'

/** Capacity at first, a power of two. The columns grow with the operators that are held. */
export const FIRST_CAPACITY = 1 << 10

/** Numbers of an operator, of which it has as many as it likes, or none. */
export type Numbers = readonly number[] | undefined

/** The columns of {@link OperatorColumns}. */
export const OPERATOR_COLUMNS = [
  ...(['tensor', 'last', 'worker', 'tid', 'cpu', 'startNs', 'endNs', 'waitEndNs', 'innerWaitNs'] as const),
]

/**
 * Operators as columns: as objects, which live longer than V8's young generation, 100 000 of them cost 290 MB and half of the
 * speed.
 */
export class OperatorColumns {
  tensor = new Int32Array(FIRST_CAPACITY)
  /** The last of fused nodes; else the same as in `tensor`. */
  last = new Int32Array(FIRST_CAPACITY)
  worker = new Int32Array(FIRST_CAPACITY)
  tid = new Int32Array(FIRST_CAPACITY)
  cpu = new Int32Array(FIRST_CAPACITY)
  startNs = new Float64Array(FIRST_CAPACITY)
  endNs = new Float64Array(FIRST_CAPACITY)
  waitEndNs = new Float64Array(FIRST_CAPACITY)
  innerWaitNs = new Float64Array(FIRST_CAPACITY)

  protected put(at: number, event: OperatorEvent): void {
    this.tensor[at] = event.tensor
    this.last[at] = event.fusedTo ?? event.tensor
    this.worker[at] = event.worker
    this.tid[at] = event.tid
    this.cpu[at] = event.cpu
    this.startNs[at] = event.startNs
    this.endNs[at] = event.endNs
    this.waitEndNs[at] = event.waitEndNs
    this.innerWaitNs[at] = event.innerWaitNs ?? 0
  }
}
