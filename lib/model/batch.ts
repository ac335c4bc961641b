import type { TraceEvent } from './events.ts'

/** By batch: see {@link othersIn}. */
const known = new WeakMap<readonly TraceEvent[], readonly number[]>()

/**
 * Places of the events of a batch that are no operators. Most events are operators, and kinds are slow to read where events have many
 * shapes: each batch is looked through once, and not by each pass. A batch must not be changed afterwards.
 */
export function othersIn(batch: readonly TraceEvent[]): readonly number[] {
  let others = known.get(batch)
  if (!others) {
    others = batch.flatMap(({ kind }, i) => (kind === 'operator' ? [] : [i]))
    known.set(batch, others)
  }
  return others
}

/** Notes what {@link othersIn} returns for a batch: also for one that a program has filled again. */
export function noteOthers(batch: readonly TraceEvent[], places: readonly number[]): void {
  known.set(batch, places)
}
