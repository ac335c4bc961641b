import { CallOrder } from '../model/call-order.ts'
import { decodingIn, isCut, isFailed, isVerification, sequencesOf } from '../model/calls.ts'
import type { TokenEvent } from '../model/events.ts'
import { type Role, Roles } from '../model/roles.ts'

/**
 * How fast tokens were decoded. TPOT and tok/s are of the same calls:
 *
 * - A **timed** call is a decode or mixed call that succeeded, whose end is known, and that has a call of its llama_context before it.
 * - Its **time** is from the end of that call to its own end: it contains sampling and whatever else the program did in
 *   between, and no prefill. (Decode calls in between that failed are part of it: the token had to wait for them.)
 * - It makes one token for each of its **sequences** that decode. Where it verifies drafts, it makes as many as the sequence has
 *   moved on when the context's next call begins; all that it takes in, where there is no such call.
 * - Contexts that draft for others (speculative decoding) make no tokens. What they take for a prompt is in no token's time.
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
  /** Sequences or tokens of some calls are not recorded: each token was taken for that of another sequence, or for accepted. */
  readonly isAssumed: boolean
}

/** Stretches of time that are kept apart: one for each prefill between decode calls, mostly. */
const STRETCHES_MAX = 1024
/** Contexts with times of their own. */
const CONTEXTS_MAX = 64
/** Calls of a context that may turn out to be drafts when another context's call comes. */
const DRAFTS_MAX = 64

/** A call, and from when on its tokens were waited for; undefined where that is not known. */
interface TimedCall {
  readonly event: TokenEvent
  readonly fromNs: number | undefined
  /** Tokens, where drafts were verified. */
  readonly made?: number | undefined
  readonly isAssumed?: boolean
}

/** Calls, TTFT and decoding of a llama_context. */
export interface ContextTimes {
  /** Address of the llama_context. */
  readonly context: number
  /** What it is in speculative decoding: from which calls follow which. */
  readonly role: Role | undefined
  readonly calls: number
  readonly ttftNs: number | undefined
  readonly decoding: Decoding | undefined
}

/** Times of calls: TTFT, and what {@link Decoding} defines. Calls may come out of order. */
export class CallTimes {
  private readonly order = new CallOrder((event) => this.time(event))
  /** When the latest call of a context ended; undefined where that is not known. */
  private readonly ends = new Map<number, number | undefined>()
  private readonly roles = new Roles()
  /** When the latest call of a context ended that took in a prompt from its start. */
  private readonly promptEnds = new Map<number, number>()
  /** Of all contexts; of those that draft, what they do before anything is decoded. */
  private readonly all = new Times()
  private readonly byContext = new Map<number, Times>()
  /** Calls that verify drafts, by context: how many were accepted is known at the next call. */
  private readonly verifying = new Map<number, TimedCall>()
  private waiting: TimedCall[] = []
  private waitingOf = 0

  /** Adds a call; warm-ups do not count. */
  add(event: TokenEvent): void {
    if (event.phase !== 'warm-up') this.order.add(event)
  }

  /** All calls were added. */
  finish(): void {
    this.order.finish()
    for (const context of [...this.verifying.keys()]) this.verify(context)
    this.flush()
  }

  /** From the start of the first call to the end of the last call that was no decode before one that was. */
  get ttftNs(): number | undefined {
    return this.all.ttftNs
  }

  get decoding(): Decoding | undefined {
    return this.all.decoding
  }

  get contexts(): ContextTimes[] {
    return [...this.byContext].map(([context, { calls, ttftNs, decoding }]) => {
      return { context, role: this.roles.of(context), calls, ttftNs, decoding }
    })
  }

  private time(event: TokenEvent): void {
    const { phase, endNs } = event
    const context = contextOf(event)
    const before = this.ends.get(context)
    if (isFailed(event) && (phase === 'decode' || phase === 'mixed')) return
    // A lower bound of an end is of no use: neither to this call nor to the next.
    this.ends.set(context, isCut(event) ? undefined : Math.max(before ?? endNs, endNs))
    if (isFailed(event)) return
    this.verify(context, event)
    this.roles.add(event)
    if (phase !== 'decode' && event.batch?.spans.some(({ position }) => position === 0)) this.notePrompt(context, endNs)
    const fromNs = before === undefined ? undefined : Math.min(Math.max(before, this.draftPromptEnd(event)), endNs)
    const call = { event, fromNs }
    if (!isVerification(event)) return this.take(call)
    // What was drafted for it comes before it, also where it is taken later.
    if (context !== this.waitingOf) this.flush()
    this.all.hasDecoded = true
    this.verifying.set(context, call)
  }

  /** Of the contexts that prompted last: each call looks through them. */
  private notePrompt(context: number, endNs: number): void {
    this.promptEnds.delete(context)
    this.promptEnds.set(context, endNs)
    const [oldest] = this.promptEnds.keys()
    if (this.promptEnds.size > CONTEXTS_MAX) this.promptEnds.delete(oldest!)
  }

  /** When the contexts that draft for this call took in their prompt. */
  private draftPromptEnd({ startNs }: TokenEvent): number {
    let end = 0
    if (this.roles.areNone) return end
    for (const [context, endNs] of this.promptEnds) {
      if (endNs <= startNs && endNs > end && this.roles.of(context) === 'draft') end = endNs
    }
    return end
  }

  /** Takes the context's call that verified drafts: the `next` one begins behind the last that was accepted. */
  private verify(context: number, next?: TokenEvent): void {
    const call = this.verifying.get(context)
    if (!call) return
    this.verifying.delete(context)
    let [made, isAssumed] = [0, false]
    for (const { sequence, position, tokens } of call.event.batch!.spans) {
      const then = next?.batch?.spans.find((span) => span.sequence === sequence)?.position ?? -1
      const isKnown = then > position && then <= position + tokens
      made += isKnown ? then - position : tokens
      isAssumed ||= !isKnown && tokens > 1
    }
    this.take({ ...call, made, isAssumed })
  }

  private take(call: TimedCall): void {
    const context = contextOf(call.event)
    // Several schedulers may work for one context.
    if (call.event.batch?.function !== 'ggml_backend_sched_graph_compute') this.timesOf(context)?.add(call)
    if (context !== this.waitingOf || this.waiting.length === DRAFTS_MAX) this.flush()
    this.waitingOf = context
    this.waiting.push(call)
  }

  private flush(): void {
    const drafts = this.roles.of(this.waitingOf) === 'draft'
    for (const call of this.waiting) if (!drafts || call.event.phase !== 'decode') this.all.add(call)
    this.waiting = []
  }

  private timesOf(context: number): Times | undefined {
    const known = this.byContext.get(context)
    if (known || this.byContext.size === CONTEXTS_MAX) return known
    const times = new Times()
    this.byContext.set(context, times)
    return times
  }
}

function contextOf({ batch }: TokenEvent): number {
  return batch?.context ?? 0
}

/** Sums of timed calls. */
class Times {
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

  get ttftNs(): number | undefined {
    const { firstCallNs, firstTokenNs } = this
    return firstCallNs === undefined || firstTokenNs === undefined ? undefined : firstTokenNs - firstCallNs
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

  add(call: TimedCall): void {
    const { event, fromNs } = call
    const decodes = event.phase === 'decode' || event.phase === 'mixed'
    this.calls++
    this.hasDecoded ||= decodes
    if (isCut(event)) return
    this.firstCallNs ??= event.startNs
    if (!this.hasDecoded) this.firstTokenNs = event.endNs
    if (decodes && fromNs !== undefined) this.timeDecode(call, fromNs)
  }

  private timeDecode({ event, made, isAssumed: isMadeAssumed = false }: TimedCall, fromNs: number): void {
    const { phase, batch } = event
    const mixed = phase === 'mixed' ? decodingIn(batch!.spans).length : undefined
    const { sequences, isAssumed } = mixed === undefined ? sequencesOf(event) : { sequences: mixed, isAssumed: false }
    const tokens = made ?? mixed ?? (event.tokens < 0 ? sequences : event.tokens)
    if (tokens === 0) return
    this.timed++
    this.tokens += tokens
    this.spentNs += (event.endNs - fromNs) * sequences
    this.isAssumed ||= isAssumed || isMadeAssumed
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
