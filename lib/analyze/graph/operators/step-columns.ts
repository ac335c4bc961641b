/** Steps for which there is room at first: a program may compute single nodes, and thousands of such runs are held. */
export const STEPS_FIRST = 8

/** The columns of {@link StepColumns}. */
export const STEP_COLUMNS = ['tensor', 'last', 'startNs', 'endNs', 'workers', 'slowest'] as const

/**
 * Steps as columns. A step is a node, or several fused ones, that all workers compute: from the start of the first worker to the end of
 * the last one.
 */
export class StepColumns {
  count = 0
  /** Tensor id of the node; of fused nodes, the first one. */
  tensor = new Int32Array(STEPS_FIRST)
  /** The last of fused nodes; else the same as in `tensor`. */
  last = new Int32Array(STEPS_FIRST)
  /** Start of the first worker, in ns. */
  startNs = new Float64Array(STEPS_FIRST)
  /** End of computing of the last worker, in ns. */
  endNs = new Float64Array(STEPS_FIRST)
  /** Operators, and the worker that ended last. */
  workers = new Int32Array(STEPS_FIRST)
  slowest = new Int32Array(STEPS_FIRST)

  /** Did an operator that began at this time begin before the step after this one did? */
  isWithin(step: number, startNs: number): boolean {
    return step + 1 >= this.count || startNs < this.startNs[step + 1]!
  }

  /** Extends a step by another worker's operator. */
  extend(step: number, startNs: number, endNs: number, worker: number): void {
    this.workers[step]!++
    if (startNs < this.startNs[step]!) this.startNs[step] = startNs
    if (endNs <= this.endNs[step]!) return
    this.endNs[step] = endNs
    this.slowest[step] = worker
  }
}
