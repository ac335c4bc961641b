import { CallOrder } from '../model/call-order.ts'
import { isCut, isFailed, sequencesOf } from '../model/calls.ts'
import type { TokenEvent } from '../model/events.ts'

/**
 * How fast tokens were decoded. TPOT and tok/s are of the same calls:
 *
 * - A **timed** call is a decode call that succeeded, whose end is known, and that has a call of its llama_context before it.
 * - Its **time** is from the end of that call to its own end: it contains sampling and whatever else the program did in
 *   between, and no prefill. (Decode calls in between that failed are part of it: the token had to wait for them.)
 * - It makes one token for each of its **sequences**, or as many as it takes in of a sequence (speculative decoding; whether
 *   drafts were accepted is not recorded).
 * - **TPOT** is the mean over tokens, each by the time that its sequence spent on it: Σ time × sequences / Σ tokens.
 * - **tok/s** is the throughput of all sequences and contexts: Σ tokens / the time in which a timed call was under way.
 * - So tok/s × TPOT is the number of sequences that were decoded at once, on average over time (Little's law).
 */
export interface Decoding {
  /** Timed calls, their tokens, and the time in which at least one of them was under way, in ns. */
  readonly calls: number
  readonly tokens: number
  readonly timeNs: number
  readonly tpotNs: number
  readonly tokensPerSecond: number
  /** Decoded at once, on average over time. */
  readonly sequences: number
  /** Sequences or tokens of some calls are not recorded: each token was taken for that of another sequence. */
  readonly isAssumed: boolean
}

/** Stretches of time that are kept apart: one for each prefill between decode calls, mostly. */
const STRETCHES_MAX = 1024

/** Times of calls: TTFT, and what {@link Decoding} defines. Calls may come out of order. */
export class CallTimes {
  private readonly order = new CallOrder((event) => this.time(event))
  /** When the latest call of a context ended; undefined where that is not known. */
  private readonly ends = new Map<number, number | undefined>()
  private readonly busy = new Union()
  private firstCallNs: number | undefined
  private firstTokenNs: number | undefined
  private hasDecoded = false
  private calls = 0
  private tokens = 0
  /** Time × sequences. */
  private spentNs = 0
  private isAssumed = false

  /** Adds a call; warm-ups do not count. */
  add(event: TokenEvent): void {
    if (event.phase !== 'warm-up') this.order.add(event)
  }

  /** All calls were added. */
  finish(): void {
    this.order.finish()
  }

  /** From the start of the first call to the end of the last prefill call before a decode call. */
  get ttftNs(): number | undefined {
    const { firstCallNs, firstTokenNs } = this
    return firstCallNs === undefined || firstTokenNs === undefined ? undefined : firstTokenNs - firstCallNs
  }

  get decoding(): Decoding | undefined {
    const { calls, tokens, spentNs, isAssumed } = this
    const timeNs = this.busy.length
    if (tokens === 0 || timeNs === 0) return undefined
    const sequences = spentNs / timeNs
    return {
      calls,
      tokens,
      timeNs,
      tpotNs: spentNs / tokens,
      tokensPerSecond: (tokens * 1e9) / timeNs,
      sequences,
      isAssumed,
    }
  }

  private time(event: TokenEvent): void {
    const { phase, startNs, endNs, batch } = event
    const context = batch?.context ?? 0
    const before = this.ends.get(context)
    if (isFailed(event) && phase === 'decode') return
    if (phase === 'decode') this.hasDecoded = true
    // A lower bound of an end is of no use: neither to this call nor to the next.
    this.ends.set(context, isCut(event) ? undefined : Math.max(before ?? endNs, endNs))
    if (isFailed(event) || isCut(event)) return
    this.firstCallNs ??= startNs
    if (phase !== 'decode') {
      if (!this.hasDecoded) this.firstTokenNs = endNs
    } else if (before !== undefined) this.timeDecode(event, Math.min(before, endNs))
  }

  private timeDecode(event: TokenEvent, fromNs: number): void {
    const { sequences, isAssumed } = sequencesOf(event)
    const tokens = event.tokens < 0 ? sequences : event.tokens
    if (tokens === 0) return
    this.calls++
    this.tokens += tokens
    this.spentNs += (event.endNs - fromNs) * sequences
    this.isAssumed ||= isAssumed
    this.busy.add(fromNs, event.endNs)
  }
}

/** The length of a union of stretches of time, most of which follow the latest ones. */
class Union {
  /** Apart from each other, in order. */
  private readonly stretches: { fromNs: number; toNs: number }[] = []
  private closedNs = 0

  get length(): number {
    return this.stretches.reduce((sum, { fromNs, toNs }) => sum + toNs - fromNs, this.closedNs)
  }

  add(fromNs: number, toNs: number): void {
    const { stretches } = this
    let first = stretches.length
    while (first > 0 && stretches[first - 1]!.toNs >= fromNs) first--
    let [joined, last] = [{ fromNs, toNs }, first]
    for (; last < stretches.length && stretches[last]!.fromNs <= toNs; last++) {
      const met = stretches[last]!
      joined = { fromNs: Math.min(joined.fromNs, met.fromNs), toNs: Math.max(joined.toNs, met.toNs) }
    }
    stretches.splice(first, last - first, joined)
    if (stretches.length <= STRETCHES_MAX) return
    const closed = stretches.shift()!
    this.closedNs += closed.toNs - closed.fromNs
  }
}
