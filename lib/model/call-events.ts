/** What a call of `llama_decode` was for. */
export type Phase = 'warm-up' | 'prefill' | 'decode'

/** One `llama_decode`. Emitted when it ends. */
export interface TokenEvent {
  readonly kind: 'token'
  /** Counts calls from 0, warm-up apart (-1). */
  readonly call: number
  readonly phase: Phase
  /** Tokens in the batch, or -1. */
  readonly tokens: number
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  readonly inferred: number
  readonly batch?: Batch | undefined
}

/** What a call was given and what it returned. */
export interface Batch {
  /** It was `llama_encode`. */
  readonly isEncode: boolean
  /** What happened in it was not to be recorded. */
  readonly isLeftOut: boolean
  /** As llama.cpp returns it: 0 is success. */
  readonly result: number
  /** Which sequences' tokens are in it, in its order; those of a very mixed batch may not all be told. */
  readonly spans: readonly SequenceSpan[]
  /** Address of the llama_context. */
  readonly context: number
}

/** Tokens of a batch that follow each other, and are of one sequence at successive positions. */
export interface SequenceSpan {
  readonly sequence: number
  /** Of the first token; -1 where llama.cpp keeps track of it. */
  readonly position: number
  readonly tokens: number
}
