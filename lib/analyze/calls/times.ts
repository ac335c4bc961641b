import { decodingIn, hasRate, isCut, sequencesOf } from '../../model/calls.ts'
import type { TokenEvent } from '../../model/events.ts'

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
  /** Timed calls, their tokens, and the time in which at least one of them was running, in ns. */
  readonly calls: number
  readonly tokens: number
  readonly timeNs: number
  readonly tpotNs: number
  readonly tokensPerSecond: number
  /** Sequences decoded at once, on average over time. */
  readonly sequences: number
  /** Sequences of some calls are not recorded (each token counts as another sequence), or accepted tokens (all count as accepted). */
  readonly isAssumed: boolean
}

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
