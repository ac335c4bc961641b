/**
 * What a call was for. `prefill`: prompts. `decode`: each sequence gets its next token, or several at once where drafts are verified
 * (speculative decoding). `mixed`: some sequences decode, others prefill. `encode`: an encoder's, or for embeddings, with nothing to
 * decode. `compute`: a graph was computed, and what for is not known.
 */
export type Phase = 'warm-up' | 'prefill' | 'decode' | 'mixed' | 'encode' | 'compute'

/** One `llama_decode` or the like ({@link Batch.function}), or one step of a serving engine. */
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
  readonly step?: EngineStep | undefined
}

/**
 * A step of a serving engine (vLLM, SGLang), in place of a `llama_decode`: from its launch to the end of the GPU work that it
 * launched, but at least to the end of its launch.
 */
export interface EngineStep {
  /** Requests in it, each of them a sequence; -1 = not known. */
  readonly requests: number
  /** How long the CPU took to launch its work, in ns. */
  readonly launchNs: number
  /** Pieces of GPU work that it launched. */
  readonly gpuWork: number
  /** What its end is that of. `launch`: its GPU work ended earlier, or is not known, which makes the end a lower bound. */
  readonly endOf: 'GPU work' | 'launch'
  /** Launches whose work is not in the log: they, too, make the end a lower bound ({@link Inferred.NoEnd}). */
  readonly launchesWithoutWork: number
}

/** What a call was given and what it returned. */
export interface Batch {
  readonly function: CallFunction
  /** Several tokens, each of which has an output: drafts that are verified, embeddings of each token, perplexity. */
  readonly areAllOutput: boolean
  /** What happened in it was not to be recorded. */
  readonly isLeftOut: boolean
  /** As the function returns it: 0 is success. */
  readonly result: number
  /** Which sequences' tokens are in it, in its order; those of a very mixed batch may not all be told. */
  readonly spans: readonly SequenceSpan[]
  /** Address of the llama_context, or of the scheduler. */
  readonly context: number
}

/**
 * What was called: `llama_decode` or `llama_encode` (also by way of `llama_process`), or, where neither was seen, the scheduler that
 * computed a graph.
 */
export type CallFunction = 'llama_decode' | 'llama_encode' | 'ggml_backend_sched_graph_compute'

/** Tokens of a batch that follow each other, and are of one sequence at successive positions. */
export interface SequenceSpan {
  readonly sequence: number
  /** Of the first token; -1 where llama.cpp keeps track of it. */
  readonly position: number
  readonly tokens: number
}
