import type { CallOperators } from '../graph/operators/call-operators.ts'

/** Chooses one call with operators: the one with this number, or the n-th decode call, else an earlier one, else the first call of all. */
export class ChosenCall {
  /** How well the latest choice fits; a later call must fit better. */
  private fit = 0
  private decodes = 0

  constructor(
    private readonly call: number | undefined,
    private readonly nthDecode: number,
  ) {}

  /** Is this call a better choice than those before it? Operators of a call may come in several parts; the first one counts. */
  isChosen({ call, event, isFurther }: CallOperators): boolean {
    if (isFurther) return false
    const fit = this.fitOf(call, event?.phase)
    if (fit <= this.fit) return false
    this.fit = fit
    return true
  }

  private fitOf(call: number, phase: string | undefined): number {
    if (this.call !== undefined) return call === this.call ? 1 : 0
    if (phase === 'decode') return 2 + Math.min(++this.decodes, this.nthDecode)
    return phase === undefined ? 1 : 2
  }
}
