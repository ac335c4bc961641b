import { decodingIn, hasRate, isCut, sequencesOf, workStartOf } from '../../model/calls.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { TokenTimes } from './figures.ts'

/** A call, and the start of its time as {@link Decoding} defines it; undefined where that is not known. */
export interface TimedCall {
  readonly event: TokenEvent
  readonly fromNs: number | undefined
  /** Accepted tokens, where drafts were verified; 0: it makes no tokens. */
  readonly made?: number | undefined
  readonly isAssumed?: boolean
}

/** A timed call, as {@link Decoding} defines it: each of its tokens took `timeNs` × `sequences` / `tokens`. */
export interface TimedDecode {
  /** Time from the end of the context's call before it to its own end, in ns. */
  readonly timeNs: number
  readonly tokens: number
  readonly sequences: number
}

/** Does the call make tokens of sequences that were in earlier calls? */
export function decodes({ phase }: TokenEvent): boolean {
  return phase === 'decode' || phase === 'mixed'
}

/** Intervals of a {@link Union}: usually one between two prefills. */
const INTERVALS_MAX = 1024

/** Sums of timed calls. */
export class Times {
  calls = 0
  timeNs = 0
  hasDecoded = false
  private readonly busy = new Union()
  private firstCallNs: number | undefined
  private firstTokenNs: number | undefined
  private timed = 0
  private tokens = 0
  /** Time × sequences. */
  private spentNs = 0
  private isAssumed = false
  private readonly prefills = { tokens: 0, busy: new Union() }

  constructor(private readonly onCall: (event: TokenEvent, timed: TimedDecode | undefined) => void) {}

  get figures(): TokenTimes {
    const {
      firstCallNs = NaN,
      firstTokenNs = NaN,
      timed: calls,
      tokens,
      spentNs,
      isAssumed: is_assumed,
      prefills,
    } = this
    const time_ns = this.busy.length
    const isKnown = tokens > 0 && time_ns > 0
    return {
      // Times that are all the same show no duration.
      ttft_ns: firstTokenNs - firstCallNs || null,
      tpot_ns: isKnown ? spentNs / tokens : null,
      decode_tokens_per_s: isKnown ? (tokens * 1e9) / time_ns : null,
      sequences: isKnown ? spentNs / time_ns : null,
      prefill_tokens_per_s: prefills.busy.length === 0 ? null : (prefills.tokens * 1e9) / prefills.busy.length,
      decoding: isKnown ? { calls, tokens, time_ns, is_assumed } : null,
    }
  }

  add(call: TimedCall, isDraft = false): void {
    const { event, fromNs } = call
    const isDecoding = decodes(event)
    this.calls++
    this.timeNs += event.endNs - event.startNs
    this.hasDecoded ||= isDecoding
    if (event.phase === 'prefill' && !isDraft) this.addPrefill(event)
    if (isCut(event)) return this.onCall(event, undefined)
    // A step of an engine does not show when its requests came.
    if (!event.step) {
      this.firstCallNs ??= event.startNs
      if (!this.hasDecoded) this.firstTokenNs = event.endNs
    }
    this.onCall(event, isDecoding && fromNs !== undefined ? this.timeDecode(call, fromNs) : undefined)
  }

  private addPrefill(event: TokenEvent): void {
    if (!hasRate(event)) return
    this.prefills.tokens += event.tokens
    this.prefills.busy.add(workStartOf(event), event.endNs)
  }

  private timeDecode(
    { event, made, isAssumed: isMadeAssumed = false }: TimedCall,
    fromNs: number,
  ): TimedDecode | undefined {
    const { phase, batch, step } = event
    // Events of a program may have no batch.
    const mixed = phase !== 'mixed' ? undefined : batch ? decodingIn(batch.spans).length : step?.decoding
    const { sequences, isAssumed } = mixed === undefined ? sequencesOf(event) : { sequences: mixed, isAssumed: false }
    const tokens = made ?? mixed ?? (event.tokens < 0 ? sequences : event.tokens)
    if (tokens === 0) return undefined
    this.timed++
    this.tokens += tokens
    this.spentNs += (event.endNs - fromNs) * sequences
    this.isAssumed ||= isAssumed || isMadeAssumed
    this.busy.add(fromNs, event.endNs)
    return { timeNs: event.endNs - fromNs, tokens, sequences }
  }
}

/** The length of a union of intervals, most of which come in order. */
class Union {
  /** Disjoint, in order. */
  private readonly intervals: { fromNs: number; toNs: number }[] = []
  private closedNs = 0

  get length(): number {
    return this.intervals.reduce((sum, { fromNs, toNs }) => sum + toNs - fromNs, this.closedNs)
  }

  add(fromNs: number, toNs: number): void {
    const { intervals } = this
    let first = intervals.length
    while (first > 0 && intervals[first - 1]!.toNs >= fromNs) first--
    let [joined, last] = [{ fromNs, toNs }, first]
    for (; last < intervals.length && intervals[last]!.fromNs <= toNs; last++) {
      const met = intervals[last]!
      joined = { fromNs: Math.min(joined.fromNs, met.fromNs), toNs: Math.max(joined.toNs, met.toNs) }
    }
    intervals.splice(first, last - first, joined)
    if (intervals.length <= INTERVALS_MAX) return
    const closed = intervals.shift()!
    this.closedNs += closed.toNs - closed.fromNs
  }
}
