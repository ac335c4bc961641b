import { type Bounds, orUnknown, wrongAmount, wrongSpan } from './bounds.ts'
import type { Resources } from './resources.ts'

/**
 * The purpose of a call. `prefill`: prompts. `decode`: each sequence gets its next token, or several where drafts are verified
 * (speculative decoding). `mixed`: some sequences decode, others prefill. `encode`: of an encoder, or for embeddings, without
 * decoding. `compute`: a graph was computed, for an unknown purpose.
 */
export type Phase = 'warm-up' | 'prefill' | 'decode' | 'mixed' | 'encode' | 'compute'

/** All phases, in the order of their numbers where a phase is kept as a number. */
export const PHASES = ['warm-up', 'prefill', 'decode', 'mixed', 'encode', 'compute'] as const satisfies readonly Phase[]

/** One `llama_decode` or the like ({@link CallBatch.function}), or one step of a serving engine. */
export interface TokenEvent {
  readonly kind: 'token'
  /** Counts calls from 0; -1 for warm-ups, except those that were recognised only afterwards. */
  readonly call: number
  readonly phase: Phase
  /** Tokens in the batch, or -1. */
  readonly tokens: number
  readonly startNs: number
  /** When its work is complete: where a device computes asynchronously, later than its return. Readers give the return. */
  readonly endNs: number
  /** When the function returned, where that was before its work was complete. */
  readonly returnNs?: number | undefined
  readonly tid: number
  readonly inferred: number
  readonly batch?: CallBatch | undefined
  /** Also those of other calls at the same time. */
  readonly resources?: Resources | undefined
  readonly step?: EngineStep | undefined
}

/**
 * A step of a serving engine (vLLM, SGLang), the counterpart of a `llama_decode`: from the start of its launch to the end of
 * the GPU work that it launched, but at least to the end of its launch.
 */
export interface EngineStep {
  /** Requests in the step, each of them a sequence; -1 = not known. */
  readonly requests: number
  /** Time in which the CPU launched its work, in ns. */
  readonly launchNs: number
  /** Requests that decode; the others prefill. */
  readonly decoding: number
  /** Number of kernels, copies and fills that it launched. */
  readonly gpuWork: number
  /**
   * From the start of the first to the end of the last piece of its GPU work, without the wait for the work before it; -1: not known, as its work
   * or a part of it is not in the log, or ends before the launch does.
   */
  readonly workNs: number
  /** What ends last. `launch`: the GPU work ended earlier, or is not known; then the end is a lower bound. */
  readonly endOf: 'GPU work' | 'launch'
  /** Launches whose work is not in the log: with any, the end is a lower bound ({@link Inferred.NoEnd}). */
  readonly launchesWithoutWork: number
}

/** Input and result of a call. */
export interface CallBatch {
  readonly function: CallFunction
  /** The batch has several tokens, each with an output: verified drafts, embeddings of each token, perplexity. */
  readonly areAllOutput: boolean
  /** The recorder was set to record nothing inside this call. */
  readonly isLeftOut: boolean
  /** Is it known that no output of the call of its context before it was read? So it is in benchmarks. */
  readonly followsUnread?: boolean | undefined
  /** Return value; 0 is success. */
  readonly result: number
  /** Sequences of the batch, in its order; incomplete for a batch that mixes many. */
  readonly spans: readonly SequenceSpan[]
  /** Address of the llama_context, or of the scheduler. */
  readonly context: number
}

/**
 * The function: `llama_decode` or `llama_encode` (also when called through `llama_process`), or, where neither was seen, the
 * scheduler that computed a graph.
 */
export type CallFunction = 'llama_decode' | 'llama_encode' | 'ggml_backend_sched_graph_compute'

/** Consecutive tokens of a batch that belong to one sequence and have successive positions. */
export interface SequenceSpan {
  readonly sequence: number
  /** Position of the first token; -1 where llama.cpp assigns it. */
  readonly position: number
  readonly tokens: number
}

/** Its ranges. */
export const CALL_BOUNDS: Bounds<TokenEvent> = {
  token: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    orUnknown('call', event.call) ??
    orUnknown('tid', event.tid) ??
    wrongAmount(event),
}
