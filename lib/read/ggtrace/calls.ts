import { RECORD_BYTES, RecordType, SPAN_BYTES, TOKEN_KINDS, TokenBits } from '../../log/ggtrace-layout.ts'
import { failureOf, LEFT_CALL, phaseOf, repeatsVerification } from '../../model/calls.ts'
import { type CallBatch, Inferred, type SequenceSpan, type TokenEvent } from '../../model/events.ts'
import type { Resources } from '../../model/resources.ts'
import type { EventBatch } from '../common/batches.ts'
import { readAddress, readNumber } from './fields.ts'

/** Calls that may be a warm-up and wait for the record that says so: the recorder writes at most 32. */
const UNSETTLED_MAX = 64

interface Place {
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  /** Offset in the input. */
  readonly byte: number
  readonly resources: Resources | undefined
}

interface Call {
  readonly event: TokenEvent
  readonly byte: number
}

/**
 * Turns TOKEN records into events. Two kinds of calls wait for what follows. One that may be a warm-up: a second record of the call makes it
 * one; another call of its context, or a sampler, shows that it is none. And one whose token is the first of a text: if the text continues
 * although no output of it was read, the token is no prompt, but the first that a benchmark generates.
 */
export class CallRecords {
  private readonly unsettled = new Map<number, Call>()
  /** The latest call that was taken for an ordinary one: a record that makes it a warm-up comes too late. */
  private settled = -1
  private latest: TokenEvent | undefined

  constructor(private readonly batch: EventBatch) {}

  /** Reads a record. `at`, `end`: in the view. */
  read(view: DataView, at: number, end: number, place: Place): void {
    const flags = view.getUint32(at + 28, true)
    const made = callOf(view, at, end, place)
    const { call, phase, batch } = made
    const isRepeated = phase === 'prefill' && this.latest !== undefined && repeatsVerification(this.latest, made)
    const event: TokenEvent = isRepeated ? { ...made, phase: 'decode' } : made
    this.latest = made
    const read = { event, byte: place.byte }
    const mayWarmUp = (flags & TokenBits.mayWarmUp) !== 0
    if (!mayWarmUp && phase === 'warm-up' && call >= 0 && !this.unsettled.delete(call) && call <= this.settled) return
    if (!mayWarmUp && phase !== 'warm-up') this.settle(batch!.context, event)
    if (!mayWarmUp && !beginsText(event)) return this.add(read)
    if (this.unsettled.size === UNSETTLED_MAX) this.settle()
    this.unsettled.set(call, read)
  }

  /** Calls of a context (without one, all) that wait are no warm-ups. `next`: the next call of the context. */
  settle(context?: number, next?: TokenEvent): void {
    if (this.unsettled.size === 0) return
    const waiting = [...this.unsettled].filter(
      ([, { event }]) => (context ?? event.batch!.context) === event.batch!.context,
    )
    for (const [i, [call, { event, byte }]] of waiting.entries()) {
      this.unsettled.delete(call)
      this.settled = Math.max(this.settled, call)
      const after = waiting[i + 1]?.[1].event ?? next
      this.add({
        event: after && beginsText(event) && isUnread(event, after) ? { ...event, phase: 'decode' } : event,
        byte,
      })
    }
  }

  private add({ event, byte }: Call): void {
    this.batch.add(event)
    const failure = failureOf(event, { byte })
    if (failure) this.batch.add(failure)
  }
}

/** Has the call one token, the first of a text? */
function beginsText({ phase, tokens, batch }: TokenEvent): boolean {
  return phase === 'prefill' && tokens === 1 && batch!.spans[0]?.position === 0
}

/** Has the next call of the context the next token of the text, although no output was read? */
function isUnread({ batch: before }: TokenEvent, { tokens, batch }: TokenEvent): boolean {
  if (!batch!.followsUnread || tokens !== 1 || batch!.context !== before!.context) return false
  const [first, then] = [before!.spans[0]!, batch!.spans[0]]
  return then?.position === 1 && then.sequence === first.sequence
}

function callOf(view: DataView, at: number, end: number, { startNs, endNs, tid, resources }: Place): TokenEvent {
  const flags = view.getUint32(at + 28, true)
  const has = (bit: number) => (flags & bit) !== 0
  const kind = TOKEN_KINDS[flags & TokenBits.kind] ?? 'decode'
  const isByGraph = kind === 'compute' || has(TokenBits.byGraph)
  const tokens = view.getUint32(at + 24, true)
  const batch: CallBatch = {
    function: isByGraph ? 'ggml_backend_sched_graph_compute' : kind === 'encode' ? 'llama_encode' : 'llama_decode',
    areAllOutput: has(TokenBits.allOutput),
    isLeftOut: has(TokenBits.leftOut),
    followsUnread: has(TokenBits.followsUnread) || undefined,
    result: view.getInt32(at + 32, true),
    spans: spansOf(view, at + RECORD_BYTES[RecordType.Token]!, end),
    context: readAddress(view, at + 36),
  }
  return {
    kind: 'token',
    call: readNumber(view, at + 20),
    phase: kind !== 'decode' ? kind : has(TokenBits.embeds) ? 'encode' : phaseOf(tokens, batch),
    tokens: isByGraph && tokens === 0 ? -1 : tokens,
    startNs,
    endNs,
    tid,
    inferred:
      (kind === 'decode' || has(TokenBits.inferredKind) ? Inferred.Phase : 0) |
      (isByGraph ? Inferred.Call : 0) |
      (batch.result === LEFT_CALL ? Inferred.NoEnd : 0) |
      (isByGraph && tokens > 0 ? Inferred.TokenCount : 0),
    batch,
    resources,
  }
}

function spansOf(view: DataView, from: number, end: number): SequenceSpan[] {
  const spans: SequenceSpan[] = []
  for (let at = from; at + SPAN_BYTES <= end; at += SPAN_BYTES) {
    const [sequence, tokens] = [view.getUint32(at, true), view.getUint32(at + 8, true)]
    spans.push({ sequence, position: readNumber(view, at + 4), tokens })
  }
  return spans
}
