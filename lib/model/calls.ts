import type { Position } from '../errors.ts'
import { type CallBatch, Inferred, type IssueEvent, type Phase, type SequenceSpan, type TokenEvent } from './events.ts'
import { issueOf } from './issues.ts'

// llama.h of llama.cpp v0.5.0, comments of llama_decode and llama_encode.
const NOTHING = 'nothing was computed'
const PART = 'ubatches that were processed remain in the memory of the context'
/** A short name, and what llama.cpp did. */
const MEANINGS: Readonly<Record<number, readonly [short: string, effect: string]>> = {
  1: ['no slot in the KV cache', NOTHING],
  2: ['aborted', PART],
  [-1]: ['invalid batch', NOTHING],
  [-2]: ['fatal error', PART],
}

/**
 * In place of the result of a call from which no function returned: an exception or a longjmp of the program left it. Its end is not known, and
 * is the same as its start (native/log/ggtrace-records.h).
 */
export const LEFT_CALL = -0x8000_0000
const LEFT = 'left by an exception or longjmp'

/** Meaning of a result other than 0, as llama.h defines it: `short` for names, `full` with the effect on the context. */
export function meaningOf(batch: Pick<CallBatch, 'result' | 'function'>): {
  readonly short: string
  readonly full: string
} {
  const { result } = batch
  if (result === LEFT_CALL) return { short: LEFT, full: `${LEFT}; when is not known` }
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

/** Meaning of a graph's status other than 0, as ggml.h defines it. */
export function statusWord(status: number): string {
  return STATUS_WORDS[status] ?? 'unknown status'
}

/** A failure in words: its result and what that means. */
export function failureWords(result: number, meaning: string): string {
  return result === LEFT_CALL ? meaning : `${result}: ${meaning}`
}

/** Did the call return a result other than 0? It computed nothing, or an unknown part of its batch, and has no rate. */
export function isFailed({ batch }: Pick<TokenEvent, 'batch'>): boolean {
  return batch !== undefined && batch.result !== 0
}

/**
 * Is the end of the call unknown, so that its duration is a lower bound? Where all borders of calls are inferred
 * ({@link Inferred.Call}), all calls end in the same way, and their durations can be compared.
 */
export function isCut({ inferred }: Pick<TokenEvent, 'inferred'>): boolean {
  return (inferred & (Inferred.NoEnd | Inferred.Call)) === Inferred.NoEnd
}

/** Can tokens per second be computed from the time that the call works? */
export function hasRate(call: TokenEvent): boolean {
  return call.tokens > 0 && call.endNs > workStartOf(call) && !isFailed(call) && !isCut(call)
}

/**
 * When the work of a call begins. A step of an engine is launched while the GPU computes the steps before it: its own work is that of the GPU.
 * Infinity where that is not known.
 */
export function workStartOf({ startNs, endNs, step }: Pick<TokenEvent, 'startNs' | 'endNs' | 'step'>): number {
  if (!step) return startNs
  return step.workNs < 0 ? Infinity : endNs - step.workNs
}

/**
 * Number of sequences in a call's batch. Each token whose sequence is not recorded is assumed to belong to another sequence;
 * an unknown number of tokens is assumed to be one sequence (`isAssumed`).
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
 * Does a call have the tokens that another context verified in the call before, on the same thread? So the context of a draft model takes what
 * the target took: it makes no tokens.
 */
export function repeatsVerification(before: TokenEvent, call: TokenEvent): boolean {
  return isVerification(before) && repeats(before, call)
}

/** Does a call have the tokens of the call before, on the same thread, in another context? */
export function repeats(before: TokenEvent, { tid, batch, tokens }: TokenEvent): boolean {
  if (!batch || !before.batch || before.tid !== tid || before.tokens !== tokens) return false
  if (before.batch.context === batch.context) return false
  const { spans } = before.batch
  return (
    spans.length === batch.spans.length &&
    spans.every((span, i) => {
      const { sequence, position, tokens } = batch.spans[i]!
      return span.sequence === sequence && span.position === position && span.tokens === tokens
    })
  )
}

/**
 * The phase of a call of `llama_decode`, from its batch: a sequence decodes if it has one token in the batch, which is not its first
 * one, or several tokens after earlier ones, all with an output. `tokens`: size of the batch; `spans`: empty where sequences are unknown.
 */
export function phaseOf(tokens: number, { spans, areAllOutput }: Pick<CallBatch, 'spans' | 'areAllOutput'>): Phase {
  if (spans.length === 0) return tokens === 1 ? 'decode' : 'prefill'
  if (spans.every(({ tokens, position }) => position !== 0 && (tokens === 1 || (areAllOutput && position > 0))))
    return 'decode'
  return decodingIn(spans).length > 0 ? 'mixed' : 'prefill'
}

/** The sequences of a mixed batch that decode: they have one token each, which is not their first one. */
export function decodingIn(spans: readonly SequenceSpan[]): readonly SequenceSpan[] {
  const tokens = new Map<number, number>()
  for (const span of spans) tokens.set(span.sequence, (tokens.get(span.sequence) ?? 0) + span.tokens)
  return spans.filter(({ sequence, position }) => position > 0 && tokens.get(sequence) === 1)
}

/** The issue of a failed call; undefined where the call succeeded. */
export function failureOf({ batch, call, endNs }: TokenEvent, at: Position): IssueEvent | undefined {
  if (!batch || batch.result === 0) return undefined
  const which = call < 0 ? '' : ` (call ${call})`
  const { result, function: name } = batch
  const { short } = meaningOf(batch)
  const detail =
    result === LEFT_CALL
      ? `${name} did not return: it was ${short}${which}`
      : `${name} returned ${result}: ${short}${which}`
  return issueOf('call-failed', detail, at, endNs)
}
