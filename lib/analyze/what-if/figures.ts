/** Version of the document of {@link WhatIf}. */
export const WHAT_IF_SCHEMA = 'ggml2perfetto.what-if/1'

/**
 * What can be taken out of a run. `preempted`: time in which threads could run but had no CPU. `faults`: calls with page faults that read.
 * `first-call`: the first call of each phase.
 */
export type Disturbance = 'preempted' | 'faults' | 'first-call'

/** What is different from the run; several at once. */
export interface Changes {
  /** Tokens of the prompt; decoding follows it, with as many tokens as in the run. */
  readonly context?: number | undefined
  readonly without?: readonly Disturbance[] | undefined
  /** Threads that compute, in both phases. */
  readonly threads?: number | undefined
  /** Type of all weights that products read, except those in f32: a name of ggml, such as `q8_0`. */
  readonly type?: string | undefined
  /** Experts that a token uses, of a model with experts. */
  readonly experts?: number | undefined
  /** Sequences that are decoded at once, each with the context of those of the run. */
  readonly batch?: number | undefined
}

/** A figure of the run, and what the changes make of it. */
export interface Predicted {
  /** Of the run; null: it has none. */
  readonly now: number | null
  /** Null where it cannot be said. */
  readonly expected: number | null
  /** 90 % interval of `expected`; both are it where nothing changes. */
  readonly low: number | null
  readonly high: number | null
  /** Why it cannot be said. */
  readonly why: string | null
}

/** Time of a group of operators, of a call on average. */
export interface WhatIfPart {
  readonly phase: 'decode' | 'prefill'
  /** `barriers`: of all steps, with the gaps between them. `outside`: of calls, in no step. `between`: from the end of a call to the start of the next. */
  readonly what: 'operators' | 'barriers' | 'outside' | 'between'
  /** Empty where `what` is not `operators`. */
  readonly op: string
  readonly role: string
  readonly type: string
  readonly now_ns: number
  readonly then_ns: number
}

/** What would be, from what was. */
export interface WhatIf {
  readonly schema: typeof WHAT_IF_SCHEMA
  readonly changes: Changes
  /** The answer in one line. */
  readonly sentence: string
  /** The changes do nothing in this run: all figures are those of it. */
  readonly is_unchanged: boolean
  readonly decode_tokens_per_s: Predicted
  readonly tpot_ns: Predicted
  readonly ttft_ns: Predicted
  /** Most change first. */
  readonly parts: readonly WhatIfPart[]
  /** What it rests on: calls, fits, limits. */
  readonly basis: readonly string[]
}
