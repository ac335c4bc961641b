import type { ModelBlock } from '../../model/blocks.ts'
import type { Phase } from '../../model/events.ts'
import type { ContextRole } from '../../model/roles.ts'
import type { Distribution } from '../common/figures.ts'
import type { DraftFigures } from '../requests/figures.ts'

/** Counts of calls, and times of tokens, as summaries have them. Definitions of TPOT and tok/s: {@link Decoding}. */
export interface CallSummary {
  /** Calls that succeeded, without warm-ups. */
  readonly count: number
  /** Those and warm-ups, with the tokens in their batches. */
  readonly by_phase: Readonly<Partial<Record<Phase, { readonly calls: number; readonly tokens: number }>>>
  /** Calls of any phase that returned a result other than 0. They are not part of any time or rate. */
  readonly failed: number
  /**
   * Time to first token: start of the first call to the end of the last one before the first decode; without warm-ups and failed calls. Where
   * clearings of a memory divide the calls into runs, the mean of theirs.
   */
  readonly ttft_ns: number | null
  /** Number of runs of which `ttft_ns` is the mean: 1 where the calls are one run, 0 where it is not known. */
  readonly ttft_runs: number
  /** Time per output token of a sequence: the mean over all tokens. */
  readonly tpot_ns: number | null
  readonly decode_tokens_per_s: number | null
  /** Sequences decoded at once, on average over time. */
  readonly sequences: number | null
  /**
   * Tokens of all prefill calls, by the time in which at least one of them was running. Prompts of drafts do not count. Of steps of an engine, by the
   * time from their first to their last GPU work.
   */
  readonly prefill_tokens_per_s: number | null
}

/** What calls of a run took. */
export interface CallFigures extends CallSummary {
  /** TPOT of all tokens, of which `tpot_ns` is the mean; `count` is their number. A call that makes several tokens counts once for each of them. */
  readonly tpot: Distribution | null
  /** Each llama_context, in the order of their first calls; without any recorded, all calls as one. */
  readonly contexts: readonly ContextFigures[]
  /**
   * Drafts (speculative decoding) whose number of accepted tokens is known: the program removed rejected tokens from the memory, or the next
   * call begins after the last accepted one. Null without any.
   */
  readonly drafts: DraftFigures | null
  /** The runs into which clearings of a memory divide the calls, those with the same numbers of tokens in one row; empty for a single run. */
  readonly runs: readonly RunFigures[]
  /** Number of runs that have no row, as there are too many different ones. */
  readonly further_runs: number
  /** TPOT against the length of the context: of the llama_context that drafts for no other one and has the most time. */
  readonly slope: ContextSlope | null
}

/**
 * Runs of calls of a llama_context with the same numbers of tokens: each begins with the first call after the memory was cleared
 * (`llama_memory_clear`), as a benchmark does before each repetition of each test. Figures are means over these runs; null: not known.
 */
export interface RunFigures {
  /** Tokens that were in the context before: a benchmark computes them first, or restores them, which is no part of the run. */
  readonly depth: number
  readonly prompt_tokens: number
  readonly generated_tokens: number
  /** The most sequences in a call. */
  readonly sequences: number
  /** Their number: repetitions of a test. */
  readonly runs: number
  /** From the start of the first call to the end of the last one. */
  readonly time_ns: number
  /** Tokens of the prompt and generated ones, by that time. */
  readonly tokens_per_s: number | null
  readonly ttft_ns: number | null
  readonly prefill_tokens_per_s: number | null
  readonly tpot_ns: number | null
  readonly decode_tokens_per_s: number | null
}

/** Calls of a llama_context. */
export interface ContextFigures {
  /** Its address; 0: not recorded. */
  readonly context: number
  /** Role in speculative decoding, inferred from the order of calls. */
  readonly role: ContextRole | null
  readonly calls: number
  /** Sum of the times of its calls. */
  readonly calls_ns: number
  /** Of several runs, their mean. */
  readonly ttft_ns: number | null
  readonly prefill_tokens_per_s: number | null
  readonly decode_tokens_per_s: number | null
  readonly tpot: Distribution | null
  readonly jitter: Jitter | null
  /** Its sequences that decoded, in the order of their first tokens; empty where the log does not record sequences. */
  readonly by_sequence: readonly SequenceFigures[]
  /** Sequences that are not in `by_sequence`, as there are too many; their tokens are in the figures of the context. */
  readonly further_sequences: number
}

/** Tokens of one sequence. The numbers of sequences are used again for other texts. */
export interface SequenceFigures {
  readonly sequence: number
  readonly tpot: Distribution
  readonly jitter: Jitter
}

/**
 * How unevenly tokens come. The standard deviation of TPOT over all tokens contains slow changes, such as growth with the context. The
 * mean absolute difference of the TPOTs of successive decode calls does not; of a sequence, calls with another text in between do not
 * count as successive.
 */
export interface Jitter {
  readonly standard_deviation_ns: number
  /** Null where no calls are successive. */
  readonly mean_difference_ns: number | null
  readonly differences: number
}

/** A straight line through points (context length, time), by least squares. */
export interface Fit {
  /** Growth, in ms per 1 000 tokens of context. */
  readonly ms_per_1000_tokens: number
  /** Standard error of the growth; it assumes that deviations of calls are independent. */
  readonly standard_error_ms: number
  /** The line's value at a context length of 0. */
  readonly at_0_ns: number
  readonly mean_ns: number
  /** Share of the variance that the line explains, from 0 to 1; null where all times are the same. */
  readonly r_squared: number | null
}

/**
 * Growth of TPOT with the length of the context. Its points are timed decode calls with one token of each sequence; the context length
 * is the position of that token, of several sequences their mean. The first decode call after another kind of call is no point: its
 * caches are cold and its graph is new.
 */
export interface ContextSlope {
  readonly context: number
  readonly points: number
  /** Calls that are no points as they are the first after another kind of call, or end before the one before them. */
  readonly left_out: number
  readonly from_tokens: number
  readonly to_tokens: number
  /** Is the growth of `tpot`, or its fall, beyond what the scatter of calls gives by chance? Otherwise no growth is stated. */
  readonly is_clear: boolean
  /** `counted`: the log has no positions; all tokens since its first call are taken for one text. */
  readonly positions: 'recorded' | 'counted'
  /** The most sequences in a point. */
  readonly sequences_max: number
  /** From the end of the context's call before to the end of this one; the sum of `between_calls` and `call`. */
  readonly tpot: Fit
  readonly between_calls: Fit
  readonly call: Fit
  /** What causes it; null without operators. */
  readonly operators: OperatorSlope | null
}

/** Growth of the time of calls by role of operators, for the points whose operators were recorded. */
export interface OperatorSlope {
  readonly points: number
  /** The time of these calls. */
  readonly call: Fit
  /** Parts that sum to `call`, in their growth and their means; most growth first. */
  readonly parts: readonly SlopePart[]
}

/**
 * Operators of a role, in all layers: their time on worker 0, which is the thread that makes the call, of computing and of the barrier
 * wait after it. So a part contains the time that other workers need longer.
 */
export interface SlopePart extends Fit {
  /** `rest`: in no operator of worker 0. `other roles`: those beyond the first 256. */
  readonly what: 'role' | 'other roles' | 'rest'
  readonly role: string
  readonly op: string
  readonly block: ModelBlock | null
}

/** A call of the model, in the table of calls. */
export interface CallRow {
  readonly call: number
  readonly phase: Phase
  /** Address of the llama_context; 0: not recorded. */
  readonly context: number
  /** Null: not known. */
  readonly tokens: number | null
  readonly sequences: number
  /** Tokens in the context before the call, of several sequences their mean; null: not known. */
  readonly context_tokens: number | null
  /** Since the first event of the run. */
  readonly start_ns: number
  readonly time_ns: number
  /** Null for calls that are not timed, see {@link Decoding}. */
  readonly tpot_ns: number | null
  /** 0: success. */
  readonly result: number
  /** Time of operators of all workers, without barrier waits; null where none were recorded. */
  readonly operator_time_ns: Readonly<Partial<Record<ModelBlock, number>>> | null
  readonly wait_ns: number | null
  /** Parts of them in which threads had no CPU: preempted or blocked in operators, preempted at barriers; null where it was not recorded. */
  readonly off_cpu_ns: Readonly<Partial<Record<ModelBlock, number>>> | null
  readonly wait_preempted_ns: number | null
}

/** A table of calls. */
export interface CallSeries {
  /** Calls of the run, without warm-ups. */
  readonly count: number
  readonly rows_max: number
  /** Of each llama_context and phase, every n-th call is in `rows`: 1 if all are. A power of two. */
  readonly every: number
  readonly rows: readonly CallRow[]
}

/**
 * The speed of decoding. TPOT and tok/s are of the same calls:
 *
 * - A call **ends** when its work does: where a backend computes asynchronously, at the end of the program's wait for it.
 * - A **timed** call is a decode or mixed call that succeeded, whose end is known, and that follows a call of its llama_context, or
 *   generates the first token of a text without a prompt, as benchmarks do.
 * - Its **time** is from the end of that call to its own end: it contains sampling and all other work of the program in
 *   between, but no prefill. (It contains failed decode calls in between: the token had to wait for them.)
 * - It makes one token for each of its **sequences** that decode. Where it verifies drafts, the accepted tokens count: those of its
 *   positions that remain in the memory, or up to the sequence's position in the context's next call; where neither is recorded, all.
 * - Contexts that draft for others (speculative decoding) make no tokens. The time of their prompts is in no token's time.
 * - **TPOT** is the mean over tokens of the time that its sequence spent on it: Σ time × sequences / Σ tokens.
 * - **tok/s** is the throughput of all sequences and contexts: Σ tokens / the time in which a timed call was running.
 * - So tok/s × TPOT is the number of sequences decoded at once, on average over time (Little's law).
 */
export interface Decoding {
  /** Timed calls, their tokens, and the time in which at least one of them was running. */
  readonly calls: number
  readonly tokens: number
  readonly time_ns: number
  /** Sequences of some calls are not recorded (each token counts as another sequence), or accepted tokens (all count as accepted). */
  readonly is_assumed: boolean
}

/** Times of tokens, of all calls or those of a llama_context. */
export interface TokenTimes
  extends Pick<CallSummary, 'ttft_ns' | 'tpot_ns' | 'decode_tokens_per_s' | 'sequences' | 'prefill_tokens_per_s'> {
  /** What TPOT and tok/s are made from; null where no decode call could be timed. */
  readonly decoding: Decoding | null
}

/** Calls of a llama_context, and the times of their tokens. */
export interface ContextTimes extends Pick<ContextFigures, 'context' | 'role' | 'calls' | 'calls_ns'>, TokenTimes {}
