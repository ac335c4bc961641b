import type { RequestEvent } from '../../model/events.ts'
import type { Distribution } from '../common/figures.ts'

/** Requests to a server, or uses of sequences: where the time of each answer went. */
export interface RequestFigures {
  readonly count: number
  /** By outcome: `complete`, `cancelled`, `error`, `unfinished`. */
  readonly outcomes: Readonly<Partial<Record<RequestEvent['outcome'], number>>>
  readonly by_type: Readonly<Partial<Record<RequestEvent['type'], RequestTypeFigures>>>
  /** Sums over the requests whose parts are known. */
  readonly parts: RequestParts
  /** Sum of their latencies. */
  readonly latency_ns: number
  readonly reuse: ReuseFigures
  readonly stalls: StallFigures
  /** Drafts; null without any. */
  readonly drafts: DraftFigures | null
  /** Requests that ended before they were complete; null without any. */
  readonly cancelled: CancelledFigures | null
  readonly slots: readonly SlotFigures[]
  /** The requests with the longest latencies, at most 100, the longest first. */
  readonly slowest: readonly RequestRow[]
}

/** Requests of one type; distributions are over requests. */
export interface RequestTypeFigures {
  readonly requests: number
  readonly latency: Distribution | null
  /** From the start of a request to its first token. */
  readonly ttft: Distribution | null
  /** From the first to the last token of a request, by its further tokens. */
  readonly tpot: Distribution | null
  /** In the queue, whatever for; of the requests of which it is known. */
  readonly queued: Distribution | null
  readonly stalled: Distribution | null
}

/**
 * Parts of the latency of a request, which sum to it. Null: the log contains nothing of the part, so that its time is in another one, or
 * before what is recorded of the request. Of a sum: so it is of each request.
 */
export interface RequestParts {
  /** In the queue until the server takes it from there, which it does between calls: the wait for the end of the running one. */
  readonly call_wait_ns: number | null
  /** In the queue until a slot is free. */
  readonly deferred_ns: number | null
  /** In a queue, and the log does not contain for what. */
  readonly queued_ns: number | null
  /** From the launch in its slot to its first call. */
  readonly prepare_ns: number | null
  /** Calls that process tokens of its prompt, as the parts below without the time in which the calling thread was preempted. */
  readonly prefill_ns: number | null
  /** Calls that compute its next token. */
  readonly decode_ns: number | null
  /** A draft model works for it. */
  readonly draft_ns: number | null
  /** Calls that verify its drafts. */
  readonly verify_ns: number | null
  /** Samplers and grammar. */
  readonly sample_ns: number | null
  /** Tokens become text. */
  readonly text_ns: number | null
  /** It waits for its turn, or for space in a batch: calls, samplers and drafts of others; with the excess of its own calls that process prompts of others. */
  readonly stalled_ns: number | null
  /** The thread that makes its calls could run but had no CPU. */
  readonly preempted_ns: number | null
  /** From its last result to the end of the thread that answers. */
  readonly send_ns: number | null
  /** The remainder, of which nothing is known. */
  readonly other_ns: number | null
}

/** One request. */
export interface RequestRow {
  /** Its number in the log, from 1. */
  readonly id: number
  /** The server's number of the task; null: not known. */
  readonly task: number | null
  /** Null: it never got one. */
  readonly slot: number | null
  readonly type: RequestEvent['type']
  readonly outcome: RequestEvent['outcome']
  /** From the first event of the log; null: the log has no times. */
  readonly start_ns: number | null
  /** Without times in the log, that from its prompt on, as the server measured it; null: not known. */
  readonly latency_ns: number | null
  /** As `latency_ns`; null without a token. */
  readonly ttft_ns: number | null
  /** Null with fewer than two tokens. */
  readonly tpot_ns: number | null
  readonly prompt_tokens: number | null
  /** Tokens of the prompt that were in the cache. */
  readonly reused_tokens: number | null
  readonly generated_tokens: number | null
  readonly drafted_tokens: number
  readonly accepted_tokens: number
  /** They sum to its latency where that is known; null where nothing of them is known. */
  readonly parts: RequestParts | null
  /**
   * The part of `stalled_ns` that is inferred: what its calls with prompts of others take longer than the median of its other calls.
   */
  readonly stalled_inferred_ns: number
  /** Who stalled it, most time first, at most 5. */
  readonly stalled_by: readonly StalledBy[]
  readonly lost: LostTokens | null
  /** The server's message. */
  readonly error: string | null
  /**
   * What is inferred: its borders from its tokens; its parts, or its tokens, from what the server writes of it; `times`: the log has
   * none, so that its durations are those that the server measured.
   */
  readonly inferred: readonly ('borders' | 'parts' | 'tokens' | 'times')[]
}

/** A request for which another one waited. */
export interface StalledBy {
  readonly id: number
  readonly task: number | null
  readonly time_ns: number
  /** Of the latency of the request that waited. */
  readonly share: number
  /** The part of `time_ns` in which its prompt was processed, and the tokens of the prompt that were processed then. */
  readonly prefill_ns: number
  readonly prefill_tokens: number
  /** Time of its calls for the prompt in which the other waited, or had a token in the same call. */
  readonly overlap_ns: number
}

/** Time that requests waited for others. */
export interface StallFigures {
  /** Time of stalls in which prompts of others were processed; of all stalls, see `parts`. */
  readonly by_prompts_ns: number
  /** The part of `parts.stalled_ns` that is inferred, as in {@link RequestRow}. */
  readonly inferred_ns: number
  /** Most time first, at most 50. */
  readonly pairs: readonly StallPair[]
}

/** One request waited for another. */
export interface StallPair extends StalledBy {
  /** The request that waited. */
  readonly stalled_id: number
  readonly stalled_task: number | null
}

/** Tokens that were in the cache of a slot, and that the next prompt could not use. */
export interface LostTokens {
  /** Position of the first token that differs. */
  readonly position: number
  /** Tokens of the slot from there on. */
  readonly tokens: number
  /** Tokens of the prompt that were processed in their place: at most as many as were lost. */
  readonly processed_again: number
  /** The share of the prefill that they took, by their number; null: not known. */
  readonly time_ns: number | null
  /** The server's reason; null: it states none. */
  readonly reason: string | null
}

/** Tokens of prompts that were in the cache, and those that were there but were processed again. */
export interface ReuseFigures {
  /** Requests whose reuse is known. */
  readonly requests: number
  readonly prompt_tokens: number
  readonly reused_tokens: number
  /** Null without prompts. */
  readonly reused_share: number | null
  /** Requests of which tokens were processed again; see {@link LostTokens}. */
  readonly lost_requests: number
  readonly processed_again: number
  readonly lost_ns: number
  /** The requests that lost most, by `time_ns`, at most 20. */
  readonly most_lost: readonly LostRow[]
}

/** What a request lost. */
export interface LostRow extends LostTokens {
  readonly id: number
  readonly task: number | null
  readonly prompt_tokens: number
  readonly latency_ns: number | null
}

/** Work for requests that were not complete: cancelled ones and errors. */
export interface CancelledFigures {
  readonly requests: number
  /** Calls, drafts and samplers for those whose parts are known; null: for none are they. */
  readonly time_ns: number | null
  /** Those whose parts are known. */
  readonly timed: number
  /** Of their prompts, without reused ones; null: not known of any. */
  readonly prompt_tokens: number | null
  /** Null: not known of any. */
  readonly generated_tokens: number | null
}

/** Tokens that a draft model proposed, in all requests. */
export interface DraftFigures {
  readonly drafted_tokens: number
  readonly accepted_tokens: number
  readonly acceptance_share: number
}

/** A slot of the server. */
export interface SlotFigures {
  readonly slot: number
  readonly requests: number
  /** Between the launch and the end of its requests; null where the log has no times. */
  readonly busy_ns: number | null
  readonly prompt_tokens: number
  readonly reused_tokens: number
  readonly generated_tokens: number
  /** Sums over its requests whose parts are known. */
  readonly parts: RequestParts
}

/** Samplers and grammar. */
export interface SamplingFigures {
  /** Tokens that were sampled; null: not known. */
  readonly tokens: number | null
  /** Applying samplers, updating them with tokens (`accept`), making them: each time once. */
  readonly time_ns: number
  readonly per_token_ns: number | null
  /** Of the time of decode calls and of sampling. */
  readonly share: number
  /** Most time first. */
  readonly samplers: readonly SamplerFigures[]
}

/** A sampler, such as `top-k`; a chain contains others. */
export interface SamplerFigures {
  readonly what: 'sample' | 'accept' | 'create-sampler'
  /** As the program names it. */
  readonly name: string
  readonly calls: number
  /** Without the samplers within it. */
  readonly time_ns: number
  readonly per_token_ns: number | null
  /** Of the time of decode calls and of sampling. */
  readonly share: number
  readonly max_ns: number
}

/** Speculative decoding: what drafts cost, and what they save. */
export interface SpeculationFigures {
  /** Calls that verify drafts. */
  readonly cycles: number
  readonly drafted_tokens: number
  readonly accepted_tokens: number
  readonly acceptance_share: number | null
  /** Of these calls: the accepted tokens, and one more of each. */
  readonly generated_tokens: number
  readonly draft_ns: number
  readonly verify_ns: number
  readonly sample_ns: number
  /** Drafts, verification and sampling, by generated tokens. */
  readonly with_token_ns: number
  /** A token without drafts; null: not determined. */
  readonly without_token_ns: number | null
  /** From decode calls without a draft of the same run, or from calls that verify, extrapolated to one token. */
  readonly without_from: 'plain decode calls' | 'verify calls, extrapolated to one token' | null
  /** Calls that it is inferred from. */
  readonly without_calls: number
  /** How much faster tokens are with drafts: below 1 they do not pay. */
  readonly speedup: number | null
  readonly by_length: readonly DraftLength[]
}

/** Drafts of one length. */
export interface DraftLength {
  readonly drafted: number
  readonly cycles: number
  readonly accepted_tokens: number
  readonly acceptance_share: number
  readonly verify_mean_ns: number
}

/** Loading of models and contexts. */
export interface LoadFigures {
  /** Sum of the stages. */
  readonly time_ns: number
  readonly stages: readonly LoadStage[]
}

/** A stage of loading, without the stages within it. */
export interface LoadStage {
  /** `load-model` and `create-context`: the rest of them. */
  readonly stage: 'load-model' | 'read-header' | 'map' | 'copy-weights' | 'create-context' | 'reserve' | 'load-lora'
  readonly calls: number
  readonly time_ns: number
  /** Null: not known. */
  readonly bytes: number | null
  readonly bytes_per_s: number | null
  /** Where the time of the thread that loads is: on a CPU; able to run, but without one. The rest it waited, as for a disk. Null: not recorded. */
  readonly cpu_ns: number | null
  readonly runnable_ns: number | null
  /** CPU time of all threads of the process; null: not recorded. */
  readonly process_cpu_ns: number | null
  /** What the kernel read from disks for the process; null: not recorded. */
  readonly disk_bytes: number | null
  readonly major_faults: number | null
}

/** What precedes the first token of a run, part by part: the waterfall of its time. */
export interface FirstTokenFigures {
  /** Sum of the parts that are known, without the time between them. */
  readonly time_ns: number
  /** All five, in their order. */
  readonly parts: readonly FirstTokenPart[]
}

/** A part of the time to the first token. */
export interface FirstTokenPart {
  /**
   * Loading the model; making its context; warm-ups; the first prompt, from its first call to the end of its last one, after which its first token
   * is sampled; the decode call that makes the second one.
   */
  readonly what: 'load' | 'context' | 'warm-up' | 'prefill' | 'first decode'
  /** Null: not recorded. Of a server's log without calls, the prompt of the first request. */
  readonly time_ns: number | null
  /** Of the sum of the parts. */
  readonly share: number | null
  /** From the end of the part before: what the program does between them, such as to wait for its first request. Null: not known. */
  readonly before_ns: number | null
  /** Of `load` and `context`, their stages. */
  readonly stages: readonly LoadStage[]
  /** Its borders are inferred from what was recorded. */
  readonly is_inferred: boolean
  /** What is unusual: the rules of its findings. */
  readonly findings: readonly string[]
}

/** Other functions around calls, by purpose and name. */
export interface FunctionFigures {
  /** Such as `tokenize`, `synchronize`, `save-state`. */
  readonly what: string
  /** Such as the name of the backend that is waited for; empty: none. */
  readonly name: string
  readonly calls: number
  /** Without functions within it. */
  readonly time_ns: number
  readonly max_ns: number
  /** Null: not known. */
  readonly tokens: number | null
  readonly bytes: number | null
}

/** Requests over time: all, or of very many every second, fourth, …. */
export interface RequestSeries {
  readonly count: number
  readonly rows_max: number
  /** One row of so many. */
  readonly every: number
  readonly rows: readonly RequestRow[]
}
