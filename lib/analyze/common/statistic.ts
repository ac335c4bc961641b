import type { TraceEvent } from '../../model/events.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps, Stops } from '../graph/operators/steps.ts'

/** Kinds of events. */
export type EventKind = TraceEvent['kind']

/** Time of a call's operators in which the thread had no CPU, by operator. */
export interface OffCpu extends Stops {
  /** In the operator: the thread could run; and it waited for something, or after that for a CPU. */
  readonly preemptedNs: Float64Array
  readonly blockedNs: Float64Array
  /** In the barrier after it: the thread could run. */
  readonly waitPreemptedNs: Float64Array
}

/** The operators of a call, and what several statistics need of them. Valid until {@link Statistic.call} returns. */
export interface CallParts {
  readonly operators: CallOperators
  readonly steps: Steps
  /** Undefined where no states of threads are known. */
  readonly off: OffCpu | undefined
  /** Number of calls that it represents: 1, but for those of a sample. */
  readonly weight: number
}

/** A part of an Analysis, collected from the events of one input. `F`: the figures that all statistics make. */
export interface Statistic<F = object, K extends EventKind = EventKind> {
  /** Kinds of events that {@link event} gets, in the order of the input. */
  readonly kinds?: readonly K[]
  event?(event: Extract<TraceEvent, { readonly kind: K }>): void
  /** All operators of a call were read, those of a very long call in several parts. */
  call?(call: CallParts): void
  /** Does {@link call} also get calls that have choices of experts only, and no operator? */
  readonly needsChoices?: boolean
  /** All events were read; operators of the last calls may follow. */
  lastEvent?(): void
  /** The figures. `firstNs`: time of the first event. */
  finish?(firstNs: number): Partial<F>
}
