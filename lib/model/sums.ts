import { type Bounds, orUnknown, wrongAmount, wrongSpan } from './bounds.ts'

/**
 * Sums over operators of one worker, or over graphs, in successive calls that are not drawn in detail. No reader yields them:
 * the budget of a trace (lib/pipeline/budget/) puts them in the place of what they sum.
 */
export interface SumsEvent {
  readonly kind: 'sums'
  readonly of: 'operators' | 'graphs'
  /** ggml's `ith`; -1 for graphs. */
  readonly worker: number
  /** Thread of the last operator, or -1. */
  readonly tid: number
  /** The first call, and the last one. */
  readonly call: number
  readonly toCall: number
  /** From the start of the first operator or graph to the end of the last, with its wait. */
  readonly startNs: number
  readonly endNs: number
  /** In the order in which they are drawn. */
  readonly sums: readonly SliceSum[]
}

/** Its ranges. */
export const SUMS_BOUNDS: Bounds<SumsEvent> = {
  sums: (event) => wrongSpan(event.startNs, event.endNs) ?? orUnknown('call', event.call) ?? wrongAmount(event),
}

/** The sum of all slices of one name. */
export interface SliceSum {
  /** Category of the slices that it replaces. */
  readonly what: 'operator' | 'barrier' | 'graph' | 'outside'
  /** Name of these slices. */
  readonly name: number
  readonly count: number
  /** Exact, as long as it is below 2^53. */
  readonly sumNs: number
  /** See `OperatorEvent.innerWaitNs`. */
  readonly innerWaitNs: number
  /** See `OperatorEvent.counts`; undefined without any. */
  readonly counts: readonly number[] | undefined
}

/** What is in a trace in full, and what only as sums, where all of it would exceed the trace's budget. */
export interface Thinned {
  /** Size that the trace should not exceed. */
  readonly budget_bytes: number
  /** The size of all of it, estimated; null where the input could be read only once. */
  readonly all_bytes: number | null
  readonly calls: number
  readonly calls_in_full: number
  /** Why calls are in full: the first ones, prefills, slow ones, evenly spread ones. */
  readonly kept: Readonly<Record<KeptAs, number>>
  readonly operators: number
  readonly operators_in_full: number
  /** Operators that belong to no call: they are in the trace in full. */
  readonly operators_outside_calls: number
  /** Estimated bytes of the recordings of the scheduler, which are never summed. */
  readonly scheduler_bytes: number
}

/** Why a call is in the trace in full. */
export type KeptAs = 'first' | 'prefill' | 'slow' | 'spread'
