import type { Position } from '../errors.ts'
import { type Batch, Inferred, type IssueEvent, type Phase, type SequenceSpan, type TokenEvent } from './events.ts'
import { issueOf } from './issues.ts'

// llama.h of llama.cpp v0.5.0, comments of llama_decode and llama_encode.
const NOTHING = 'nothing was computed'
const PART = 'ubatches that were processed remain in the memory of the context'
/** In a few words, and what llama.cpp did. */
const MEANINGS: Readonly<Record<number, readonly [short: string, effect: string]>> = {
  1: ['no slot in the KV cache', NOTHING],
  2: ['aborted', PART],
  [-1]: ['invalid batch', NOTHING],
  [-2]: ['fatal error', PART],
}

/** What a result other than 0 means, as llama.h defines it: in a few words, for names, and with what the call left behind. */
export function meaningOf(batch: Pick<Batch, 'result' | 'function'>): {
  readonly short: string
  readonly full: string
} {
  const { result } = batch
  if (batch.function === 'ggml_backend_sched_graph_compute')
    return { short: statusWord(result), full: statusWord(result) }
  const isEncode = batch.function === 'llama_encode'
  if (isEncode && result < 0) return { short: 'error', full: 'error; the memory is as before the call' }
  const [short, effect] = (isEncode ? undefined : MEANINGS[Math.max(result, -2)]) ?? [
    'unknown result',
    'not in llama.h',
  ]
  return { short, full: `${short}; ${effect}` }
}

// ggml.h of llama.cpp v0.5.0, enum ggml_status.
const STATUS_WORDS: Readonly<Record<number, string>> = { [-2]: 'no memory', [-1]: 'error', 1: 'aborted' }

/** The meaning of a graph's status other than 0, as ggml.h defines it. */
export function statusWord(status: number): string {
  return STATUS_WORDS[status] ?? 'unknown status'
}

/** Did the call return another result than 0? It computed nothing, or an unknown part of its batch: it has no rate. */
export function isFailed({ batch }: Pick<TokenEvent, 'batch'>): boolean {
  return batch !== undefined && batch.result !== 0
}

/**
 * Is the end of the call unknown, so that its time is a lower bound? Where all borders of calls are inferred
 * ({@link Inferred.Call}), all calls end alike, and their times can be compared.
 */
export function isCut({ inferred }: Pick<TokenEvent, 'inferred'>): boolean {
  return (inferred & (Inferred.NoEnd | Inferred.Call)) === Inferred.NoEnd
}

/** Can tokens per second be computed from the call's own time? */
export function hasRate(call: TokenEvent): boolean {
  return call.tokens > 0 && call.endNs > call.startNs && !isFailed(call) && !isCut(call)
}

/**
 * How many sequences a call takes tokens of. Where the log does not record that of all tokens, each of the others is taken for
 * the token of another sequence, and of an unknown number of tokens there is one (`isAssumed`).
 */
export function sequencesOf({ tokens, batch, step }: TokenEvent): {
  readonly sequences: number
  readonly isAssumed: boolean
} {
  if (tokens === 1) return { sequences: 1, isAssumed: false }
  if (step && step.requests > 0) return { sequences: step.requests, isAssumed: tokens < 0 }
  const spans = batch?.spans ?? []
  const known = new Set(spans.map(({ sequence }) => sequence)).size
  const rest = tokens - spans.reduce((sum, span) => sum + span.tokens, 0)
  if (tokens < 0) return { sequences: Math.max(known, 1), isAssumed: true }
  return { sequences: known + Math.max(rest, 0), isAssumed: rest > 0 }
}

/** Does the call verify drafts: several tokens of a sequence that was decoded before, each with an output? */
export function isVerification({ phase, batch }: TokenEvent): boolean {
  return phase === 'decode' && batch !== undefined && batch.areAllOutput && batch.spans.some(({ tokens }) => tokens > 1)
}

/**
 * The phase of a call of `llama_decode`, from its batch: a sequence of which there is one token, which is not its first, decodes, and so
 * does one of which there are several behind others, all with an output. `tokens`: of the batch; `spans`: where their sequences are known.
 */
export function phaseOf(tokens: number, { spans, areAllOutput }: Pick<Batch, 'spans' | 'areAllOutput'>): Phase {
  if (spans.length === 0) return tokens === 1 ? 'decode' : 'prefill'
  if (spans.every(({ tokens, position }) => position !== 0 && (tokens === 1 || (areAllOutput && position > 0))))
    return 'decode'
  return decodingIn(spans).length > 0 ? 'mixed' : 'prefill'
}

/** Of a batch in which other sequences prefill: those that decode, one token each, which is not their first. */
export function decodingIn(spans: readonly SequenceSpan[]): readonly SequenceSpan[] {
  const tokens = new Map<number, number>()
  for (const span of spans) tokens.set(span.sequence, (tokens.get(span.sequence) ?? 0) + span.tokens)
  return spans.filter(({ sequence, position }) => position > 0 && tokens.get(sequence) === 1)
}

/** The issue of a call that failed; undefined of one that succeeded. */
export function failureOf({ batch, call, endNs }: TokenEvent, at: Position): IssueEvent | undefined {
  if (!batch || batch.result === 0) return undefined
  const which = call < 0 ? '' : ` (call ${call})`
  const detail = `${batch.function} returned ${batch.result}: ${meaningOf(batch).short}${which}`
  return issueOf('call-failed', detail, at, endNs)
}
