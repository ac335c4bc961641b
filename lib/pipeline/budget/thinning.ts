import type { TraceEvent } from '../../model/events.ts'
import type { Thinned } from '../../model/sums.ts'
import type { Thinner } from './thinner.ts'

/** What is known about a trace before it is written. */
export type AboutBudget = Pick<Thinned, 'budget_bytes' | 'all_bytes' | 'scheduler_bytes'>

/** A stage between the reader of a log and the timeline, which replaces details by sums. */
export class Thinning {
  constructor(
    protected readonly thinner: Thinner,
    private readonly about: AboutBudget,
    /** It is known from the start that not all calls are in full: the tracks are described so. */
    readonly isPlanned: boolean,
  ) {}

  /** The events of a batch that are drawn now. */
  take(batch: readonly TraceEvent[]): TraceEvent[] {
    return this.thinner.take(batch)
  }

  /** The rest of what is drawn. */
  finish(): TraceEvent[] {
    return this.thinner.finish()
  }

  /** Events that say what was left out. */
  leftOutEvents(): TraceEvent[] {
    return this.thinner.leftOutEvents()
  }

  /** What is in the trace in full; undefined where all of it is. */
  get thinned(): Thinned | undefined {
    const { operators, operatorsInFull, operatorsOutsideCalls, works, worksInFull, calls, kept } = this.thinner
    if (operatorsInFull + operatorsOutsideCalls === operators && worksInFull === works) return undefined
    const callsInFull = Object.values(kept).reduce((sum, count) => sum + count, 0)
    return {
      ...this.about,
      calls,
      calls_in_full: callsInFull,
      kept,
      operators,
      operators_in_full: operatorsInFull,
      operators_outside_calls: operatorsOutsideCalls,
    }
  }
}
