/**
 * Events of the work around calls: what a program, such as llama-server, does with requests. Readers yield functions, changes of
 * sequences, and tasks; {@link RequestEvent}s are made of them (lib/model/requests), or read where an input contains requests.
 */

import { type Bounds, orUnknown, wrongAmount, wrongSpan, wrongTime } from './bounds.ts'
import type { Resources } from './resources.ts'

/**
 * The purpose of a function that is not a call ({@link TokenEvent}):
 * - sampling: `sample` (llama_sampler_apply), `accept` (llama_sampler_accept), `create-sampler` (with a grammar, its parsing);
 * - text: `tokenize`, `detokenize`, `token-to-piece`;
 * - waiting: `synchronize` (llama_synchronize, ggml_backend_synchronize and the like);
 * - loading: `load-model` with its stages `read-header`, `map`, `copy-weights`, then `create-context` with `reserve`;
 * - `save-state`, `restore-state`; `load-lora`, `set-lora`; `get-embeddings`;
 * - images and sound: `tokenize-media`, `encode-media`, `decode-media`;
 * - speculative decoding: `draft`, `verify` (the draft model takes the batch: common_speculative_process), `accept-draft`;
 * - `write-log`: the program takes a message of ggml or llama.cpp for its log;
 * - `wait-to-send`: the other end of a connection takes no data (`poll` for writing, `send`), for 1 ms or longer.
 */
export type FunctionPurpose =
  | 'sample'
  | 'accept'
  | 'create-sampler'
  | 'tokenize'
  | 'detokenize'
  | 'token-to-piece'
  | 'synchronize'
  | 'load-model'
  | 'read-header'
  | 'map'
  | 'copy-weights'
  | 'create-context'
  | 'reserve'
  | 'save-state'
  | 'restore-state'
  | 'load-lora'
  | 'set-lora'
  | 'get-embeddings'
  | 'tokenize-media'
  | 'encode-media'
  | 'decode-media'
  | 'draft'
  | 'verify'
  | 'accept-draft'
  | 'write-log'
  | 'wait-to-send'

/** A function of llama.cpp from entry to return; on a thread they nest. */
export interface FunctionEvent {
  readonly kind: 'function'
  readonly what: FunctionPurpose
  /** Name of the sampler, the stage, the backend or the function; 0: no other than its purpose. */
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  /** Address of the llama_context (of a model while it loads), or 0. */
  readonly context: number
  /** Sequence that it works for, as the function was given it; -1 = not known. */
  readonly sequence: number
  /** Sampling: place in the batch of the output that is sampled; -1 = not known. */
  readonly output: number
  /** Number of tokens (text, drafts), or of bytes (loading, state, log); -1 = not known. */
  readonly value: number
  /** Of stages of loading. */
  readonly resources?: Resources | undefined
}

/**
 * A change of the KV cache by `llama_memory_seq_rm` (`remove`), `_seq_add` (`shift`), `_seq_cp` (`copy`), `_seq_keep` (`keep`) or
 * `llama_memory_clear` (`clear`). Before a prefill, a server removes from the first position that is not reused.
 */
export interface SequenceEvent {
  readonly kind: 'sequence'
  readonly what: 'remove' | 'shift' | 'copy' | 'keep' | 'clear'
  readonly atNs: number
  readonly tid: number
  /** Address of the llama_context, or of the memory where its context is not known. */
  readonly context: number
  /** -1: all sequences. */
  readonly sequence: number
  /** Of `copy`: the sequence copied to; else -1. */
  readonly to: number
  /** First position; -1 = from the start. */
  readonly from: number
  /** Position after the last; -1 = to the end. */
  readonly end: number
  /** Of `shift`: what is added to each position; else 0. */
  readonly delta: number
  /** `false`: the function could not do it (a part of a recurrent state cannot be removed), and changed nothing. */
  readonly isDone: boolean
}

/**
 * A step of a server's task:
 * - `post`: a task comes into the queue;
 * - `defer`: no slot is free: it waits;
 * - `resume`: a slot was released: the task with the number, or the longest waiting one, goes back into the queue;
 * - `launch`: a slot begins to process it; `text` contains why this one (`LRU`, `LCP similarity`, `id`);
 * - `prompt`: the size of its prompt is known;
 * - `reuse`: the number of tokens that are reused is known, and the position from which the cache was cut;
 * - `reprocess`: the whole prompt is processed again; `text` contains the reason;
 * - `progress`: a part of the prompt is processed (`processedTokens` without, `contextTokens` with the reused ones), or tokens of
 *   the answer are generated (`generatedTokens` so far);
 * - `draft`: a draft was verified;
 * - `checkpoint`: the slot's state was saved, restored or dropped; `text` contains which;
 * - `shift`: its context is full: tokens from `position` on are discarded, and later ones are shifted;
 * - `timings`: the server's own figures at the end of the task; there may be several events, each with some of them;
 * - `release`: the slot is free again;
 * - `send`: a result is passed to the thread that answers;
 * - `cancel`: the client is gone;
 * - `error`: it failed; `text` contains why.
 */
export type TaskStep =
  | 'post'
  | 'defer'
  | 'resume'
  | 'launch'
  | 'prompt'
  | 'reuse'
  | 'reprocess'
  | 'progress'
  | 'draft'
  | 'checkpoint'
  | 'shift'
  | 'timings'
  | 'release'
  | 'send'
  | 'cancel'
  | 'error'

/** One step of a server's task: from its functions, from a line of its log, or both. */
export interface TaskEvent {
  readonly kind: 'task'
  readonly what: TaskStep
  readonly atNs: number
  /** Thread, or -1. */
  readonly tid: number
  /** The server's number of the task; -1 = not known. */
  readonly task: number
  /** Number of the slot, which is the sequence in its llama_context; -1: none, or not known. */
  readonly slot: number
  readonly values?: TaskValues | undefined
  /** Name: the server's words. */
  readonly text?: number | undefined
  /** {@link Inferred} bits: `Order` where its time follows only from the order of the log's lines. Undefined: 0. */
  readonly inferred?: number | undefined
}

/** Figures of a task, as the server states them. */
export interface TaskValues {
  readonly promptTokens?: number | undefined
  /** Tokens of the prompt that were in the cache already. */
  readonly reusedTokens?: number | undefined
  /** First position that was removed from the cache. */
  readonly position?: number | undefined
  /** Tokens of the prompt that were processed. */
  readonly processedTokens?: number | undefined
  readonly generatedTokens?: number | undefined
  /** Of `timings`, the time from the begin of the prompt to the first token; of `progress`, to this step. */
  readonly promptNs?: number | undefined
  /** From the first token to the last. */
  readonly generationNs?: number | undefined
  /** From the begin of the prompt to the last token. */
  readonly totalNs?: number | undefined
  readonly draftedTokens?: number | undefined
  readonly acceptedTokens?: number | undefined
  /** All tokens in the slot. */
  readonly contextTokens?: number | undefined
  /** Of `shift`. */
  readonly discardedTokens?: number | undefined
  /** Of `launch`: the search in the cache of prompts, and its update, before. */
  readonly cacheNs?: number | undefined
}

/**
 * The parts of a request's latency; they cover it without gaps:
 * - `call-wait`: in the queue until the server takes it from there, which it does between calls: it waits for the running call;
 * - `deferred`: in the queue until a slot is free: all were busy when the server took it;
 * - `queued`: in the queue, and it is not known for what;
 * - `prepare`: from the launch to its first call: saved and restored states, tokens compared;
 * - `prefill`: calls that process tokens of its prompt; `decode`: calls that compute its next token; `verify`: the same with a draft;
 * - `draft`: a draft model works for it; `sample`: samplers and grammar; `text`: tokens become text;
 * - `stalled`: calls, samplers and drafts of other requests while it waits: for its turn, or for space in a batch;
 * - `other`: the remainder, of which nothing is known; `send`: from its last result to the answering thread's end, where that is known.
 */
export const REQUEST_PARTS = [
  'call-wait',
  'deferred',
  'queued',
  'prepare',
  'prefill',
  'draft',
  'decode',
  'verify',
  'sample',
  'text',
  'stalled',
  'send',
  'other',
] as const

/** See {@link REQUEST_PARTS}. */
export type RequestPartKind = (typeof REQUEST_PARTS)[number]

/** A part of a request, in the order of time. */
export interface RequestPart {
  readonly what: RequestPartKind
  readonly startNs: number
  readonly endNs: number
  /** Its call ({@link TokenEvent.call}), or -1. */
  readonly call: number
  /** Tokens of this request in that call; for drafts, the tokens drafted; -1 = none, or not known. */
  readonly tokens: number
  /** Of `verify`: drafted tokens that were accepted; -1 = not known. */
  readonly accepted: number
  /** Tokens of other requests in the same call; of a stall, in the calls of others; 0 = none. */
  readonly othersTokens: number
  /** Number of other requests in them; of `call-wait`, in slots when it began. */
  readonly others: number
}

/** Kinds of parts before a slot begins with a request. */
export const QUEUE_PARTS = ['call-wait', 'deferred', 'queued'] as const satisfies readonly RequestPartKind[]
/** Kinds of parts that a log does not contain which has no calls: their time is in `prefill` and `decode`. */
export const WITHIN_CALLS = [
  'draft',
  'verify',
  'sample',
  'text',
  'stalled',
  'send',
] as const satisfies readonly RequestPartKind[]

/** One request to a server, or the use of one sequence from its first token to its last. */
export interface RequestEvent {
  readonly kind: 'request'
  /** Counts the requests of an input from 1, in the order in which they get a slot. */
  readonly id: number
  /** The server's number of the task; -1 = not known. */
  readonly task: number
  /** Number of the slot or the sequence; -1: it never got one. */
  readonly slot: number
  /** Address of the llama_context of its calls, or 0. */
  readonly context: number
  readonly type: 'completion' | 'embedding' | 'unknown'
  /** `unfinished`: the log ends before it does. */
  readonly outcome: 'complete' | 'cancelled' | 'error' | 'unfinished'
  /** The post into the queue, else the launch, else the first call. */
  readonly startNs: number
  /** Its slot begins with it; -1: never, or not known. */
  readonly launchNs: number
  /** Its first token was sampled; -1: never, or not known. */
  readonly firstTokenNs: number
  /** The last result was sent; else its slot was released, else its last call ended. */
  readonly endNs: number
  /** -1 = not known. */
  readonly promptTokens: number
  /** Tokens of the prompt that were not computed again: they were in the cache; -1 = not known. */
  readonly reusedTokens: number
  /** -1 = not known. */
  readonly generatedTokens: number
  /** Drafted tokens that were verified, and those accepted; 0 without drafts. */
  readonly draftedTokens: number
  readonly acceptedTokens: number
  /** The cache of its slot had tokens that it could not use. */
  readonly lost?: LostReuse | undefined
  /** Without gaps from `startNs` to `endNs`; empty where the input contains none, or not their times. */
  readonly parts: readonly RequestPart[]
  /** Kinds of parts of which the input contains nothing: their time is within others, or before `startNs`. Undefined: none. */
  readonly unknownParts?: readonly RequestPartKind[] | undefined
  /** What the server states of it, at its end. */
  readonly stated?: TaskValues | undefined
  /** Name: the message of the error. */
  readonly error?: number | undefined
  /**
   * {@link Inferred} bits: `Call` where its borders are inferred from its tokens; where no calls are known, `Parts`, whose prefill and
   * decode contain the time of others, and `TokenCount`; `Order` where its times follow from the order of the log's lines, so that
   * only `stated` contains durations. `durationsOf` (lib/model/requests) knows which to use.
   */
  readonly inferred: number
}

/** Tokens that were in a slot's cache and had to be processed, or were thrown away, for another prompt. */
export interface LostReuse {
  /** Position of the first token that differs. */
  readonly position: number
  /** Tokens of the slot from that position on. */
  readonly tokens: number
  /** Name: the server's reason, where it states one. */
  readonly reason?: number | undefined
}

/** Their ranges. */
export const REQUEST_BOUNDS: Bounds<FunctionEvent | SequenceEvent | TaskEvent | RequestEvent> = {
  function: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    orUnknown('tid', event.tid) ??
    orUnknown('sequence', event.sequence) ??
    wrongAmount(event),
  sequence: (event) => wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? wrongAmount(event),
  task: (event) => wrongTime(event.atNs) ?? orUnknown('tid', event.tid) ?? wrongAmount(event),
  request: (event) => wrongSpan(event.startNs, event.endNs) ?? wrongAmount(event),
}
