import { decodingIn, hasRate, isCut, sequencesOf } from '../../model/calls.ts'
import type { TokenEvent } from '../../model/events.ts'
import type { Decoding } from './figures.ts'

/** Calls that prefill only and succeeded, their tokens, and the time in which at least one of them was running, in ns. */
export interface Prefilling {
  readonly calls: number
  readonly tokens: number
  readonly timeNs: number
  readonly tokensPerSecond: number
}

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
  hasDecoded = false
  private readonly busy = new Union()
  private firstCallNs: number | undefined
  private firstTokenNs: number | undefined
  private timed = 0
  private tokens = 0
  /** Time × sequences. */
  private spentNs = 0
  private isAssumed = false
  private readonly prefills = { calls: 0, tokens: 0, busy: new Union() }

  constructor(private readonly onCall: (event: TokenEvent, timed: TimedDecode | undefined) => void) {}

  get prefilling(): Prefilling | undefined {
    const { calls, tokens, busy } = this.prefills
    const timeNs = busy.length
    return timeNs === 0 ? undefined : { calls, tokens, timeNs, tokensPerSecond: (tokens * 1e9) / timeNs }
  }

  get ttftNs(): number | undefined {
    const { firstCallNs, firstTokenNs } = this
    // Times that are all the same show no duration.
    return firstCallNs === undefined || firstTokenNs === undefined ? undefined : firstTokenNs - firstCallNs || undefined
  }

  get decoding(): Decoding | undefined {
    const { timed, tokens, spentNs, isAssumed } = this
    const timeNs = this.busy.length
    if (tokens === 0 || timeNs === 0) return undefined
    const sequences = spentNs / timeNs
    return {
      calls: timed,
      tokens,
      timeNs,
      tpotNs: spentNs / tokens,
      tokensPerSecond: (tokens * 1e9) / timeNs,
      sequences,
      isAssumed,
    }
  }

  add(call: TimedCall, isDraft = false): void {
    const { event, fromNs } = call
    const isDecoding = decodes(event)
    this.calls++
    this.hasDecoded ||= isDecoding
    if (event.phase === 'prefill' && !isDraft) this.addPrefill(event)
    if (isCut(event)) return this.onCall(event, undefined)
    this.firstCallNs ??= event.startNs
    if (!this.hasDecoded) this.firstTokenNs = event.endNs
    this.onCall(event, isDecoding && fromNs !== undefined ? this.timeDecode(call, fromNs) : undefined)
  }

  private addPrefill(event: TokenEvent): void {
    if (!hasRate(event)) return
    this.prefills.calls++
    this.prefills.tokens += event.tokens
    this.prefills.busy.add(event.startNs, event.endNs)
  }

  private timeDecode(
    { event, made, isAssumed: isMadeAssumed = false }: TimedCall,
    fromNs: number,
  ): TimedDecode | undefined {
    const { phase, batch } = event
    // Events of a program may have no batch.
    const mixed = phase === 'mixed' && batch ? decodingIn(batch.spans).length : undefined
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
