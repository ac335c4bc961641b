/** Operators of calls that are taken before fewer calls are. */
const OPERATORS = 1 << 17
/** A call costs as much as so many operators. */
const OF_CALL = 16
/** Of so many calls, one is taken at least. */
const STRIDE_MAX = 64

/**
 * A sample of the calls of a run: all of them as long as they have few operators, then every fourth one, of long runs fewer. Each call of it
 * represents the calls up to the next one: without these weights the first calls, in which a program and its recorder set up what later
 * calls reuse, would count as if all calls were like them. Operators outside of calls are in no sample.
 */
export class CallSample {
  /** From which call on every how many calls one is taken. */
  private readonly steps = [{ from: 0, stride: 1 }]
  private latest = -1
  private left: number

  /** `operators`: after so many, fewer calls are taken. */
  constructor(private readonly operators = OPERATORS) {
    this.left = operators
  }

  /** Were calls left out? */
  get isPartial(): boolean {
    return this.latest >= (this.steps[1]?.from ?? Infinity)
  }

  /** Number of calls that a call represents; 0: it is not in the sample. */
  weightOf(call: number): number {
    if (call < 0) return 0
    const { steps } = this
    let at = steps.length - 1
    while (steps[at]!.from > call) at--
    const { stride } = steps[at]!
    return (call & (stride - 1)) === 0 ? stride : 0
  }

  /** An operator of a call, in any order. Returns whether the call is in the sample. */
  operator(call: number): boolean {
    if (this.weightOf(call) === 0) return false
    this.take(call, 1)
    return true
  }

  /** The same of the call itself. */
  call(call: number): boolean {
    if (this.weightOf(call) === 0) return false
    this.take(call, OF_CALL)
    return true
  }

  private take(call: number, cost: number): void {
    if (call > this.latest) this.latest = call
    this.left -= cost
    const { stride } = this.steps.at(-1)!
    if (this.left > 0 || stride === STRIDE_MAX) return
    this.left = this.operators
    // Calls that may have begun keep their weights.
    const from = (Math.floor(this.latest / STRIDE_MAX) + 1) * STRIDE_MAX
    this.steps.push({ from, stride: 4 * stride })
  }
}
