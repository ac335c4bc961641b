import type { TraceEvent } from './events.ts'

/**
 * The one kind of consumer of events: the timeline, the summary, each analysis. A pass gets every batch of an input in order
 * and returns its result at the end. It is synchronous and handles a batch in one loop with one `switch` on the kind: a handler
 * registered for each kind costs ten times as much per event.
 */
export interface EventPass<R> {
  /** Takes the next batch. The first event of the first batch is the {@link InputEvent}. */
  take(batch: readonly TraceEvent[]): void
  /** Called once, after the last batch. */
  finish(): R
}
