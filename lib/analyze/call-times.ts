import { CallOrder } from '../model/call-order.ts'
import { decodingIn, hasRate, isCut, isFailed, isVerification, sequencesOf } from '../model/calls.ts'
import { DefaultMap } from '../model/default-map.ts'
import type { TokenEvent } from '../model/events.ts'
import type { FunctionEvent } from '../model/request-events.ts'
import { type Role, Roles } from '../model/roles.ts'
import { CallWaits } from './calls/call-waits.ts'

/**
 * The speed of decoding. TPOT and tok/s are of the same calls:
 *
 * - A call **ends** when its work does: where a backend computes asynchronously, at the end of the program's wait for it ({@link CallWaits}).
 * - A **timed** call is a decode or mixed call that succeeded, whose end is known, and that follows a call of its llama_context.
 * - Its **time** is from the end of that call to its own end: it contains sampling and all other work of the program in
 *   between, but no prefill. (It contains failed decode calls in between: the token had to wait for them.)
 * - It makes one token for each of its **sequences** that decode. Where it verifies drafts, the accepted tokens count: the
 *   difference of the sequence's positions in this call and in the context's next call; without a next call, all its tokens.
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

/** Intervals of a {@link Union}: usually one between two prefills. */
const INTERVALS_MAX = 1024
/** Contexts that are timed separately. */
const CONTEXTS_MAX = 64
/** Calls of a context that wait: the next call of another context may show that they are drafts. */
const DRAFTS_MAX = 64

/** A call, and the start of its time as {@link Decoding} defines it; undefined where that is not known. */
interface TimedCall {
  readonly event: TokenEvent
  readonly fromNs: number | undefined
  /** Accepted tokens, where drafts were verified. */
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

/** Calls that prefill only and succeeded, their tokens, and the time in which at least one of them was running, in ns. */
export interface Prefilling {
  readonly calls: number
  readonly tokens: number
  readonly timeNs: number
  readonly tokensPerSecond: number
}

/**
 * Gets each call that succeeded, in order, with its time where it is timed: once in `context`, once in the figures of `all` contexts.
 * `all` does not contain decode calls of drafts; `context` not the graphs of a scheduler.
 */
export type OnCall = (of: 'all' | 'context', event: TokenEvent, timed: TimedDecode | undefined) => void

/** Calls, TTFT and decoding of a llama_context. */
export interface ContextTimes {
  /** Address of the llama_context. */
  readonly context: number
  /** Role in speculative decoding, inferred from the order of calls. */
  readonly role: Role | undefined
  readonly calls: number
  readonly ttftNs: number | undefined
  readonly decoding: Decoding | undefined
}

const NONE: OnCall = () => {}

/** TTFT and {@link Decoding} of calls. Calls may come out of order. */
export class CallTimes {
  private readonly order = new CallOrder((event) => {
    if (event.phase !== 'warm-up') this.time(event)
  })
  private readonly waits = new CallWaits((event, endNs) => {
    // A warm-up that was recognised afterwards has a number, which the next call follows.
    if (event.phase !== 'warm-up' || event.call >= 0) this.order.add(endNs > event.endNs ? { ...event, endNs } : event)
  })
  /** End of the latest call, by context; undefined where it is not known. */
  private readonly ends = new Map<number, number | undefined>()
  private readonly roles = new Roles()
  /** End of the latest call that began a prompt, by context. */
  private readonly promptEnds = new Map<number, number>()
  /** Times of all contexts; of draft contexts, only their calls before decoding. */
  private readonly all: Times
  private readonly byContext: DefaultMap<number, Times>
  /** Calls that verify drafts, by context: the next call shows how many were accepted. */
  private readonly verifying = new Map<number, TimedCall>()
  private waiting: TimedCall[] = []
  private waitingOf = 0

  constructor(onCall = NONE) {
    this.all = new Times((event, timed) => onCall('all', event, timed))
    this.byContext = new DefaultMap(() => new Times((event, timed) => onCall('context', event, timed)))
  }

  /** Adds a call; warm-ups are ignored. */
  add(event: TokenEvent): void {
    this.waits.call(event)
  }

  /** Adds a function around calls: it may wait for the work of a call. */
  function(event: FunctionEvent): void {
    this.waits.function(event)
  }

  /** Call after the last {@link add}. */
  finish(): void {
    this.waits.finish()
    this.order.finish()
    for (const context of [...this.verifying.keys()]) this.verify(context)
    this.flush()
  }

  /** From the start of the first call to the end of the last call before the first decode. */
  get ttftNs(): number | undefined {
    return this.all.ttftNs
  }

  get decoding(): Decoding | undefined {
    return this.all.decoding
  }

  /** Prefills of drafts are not in it. */
  get prefilling(): Prefilling | undefined {
    return this.all.prefilling
  }

  /** {@link prefilling} of one context. */
  prefillingOf(context: number): Prefilling | undefined {
    return this.byContext.get(context)?.prefilling
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
    if (isFailed(event) && decodes(event)) return
    // An end that is a lower bound times neither this call nor the next.
    this.ends.set(context, isCut(event) ? undefined : Math.max(before ?? endNs, endNs))
    if (isFailed(event)) return
    this.verify(context, event)
    this.roles.add(event)
    if (phase !== 'decode' && event.batch?.spans.some(({ position }) => position === 0)) this.notePrompt(context, endNs)
    const fromNs = before === undefined ? undefined : Math.min(Math.max(before, this.draftPromptEnd(event)), endNs)
    const call = { event, fromNs }
    if (!isVerification(event)) return this.take(call)
    // The calls before it are taken first, as it is taken later.
    this.flush()
    this.all.hasDecoded = true
    this.verifying.set(context, call)
  }

  /** Keeps the latest contexts only, as each call iterates over them. */
  private notePrompt(context: number, endNs: number): void {
    this.promptEnds.delete(context)
    this.promptEnds.set(context, endNs)
    const [oldest] = this.promptEnds.keys()
    if (this.promptEnds.size > CONTEXTS_MAX) this.promptEnds.delete(oldest!)
  }

  /** End of the latest prompt of a draft context before this call. */
  private draftPromptEnd({ startNs }: TokenEvent): number {
    let end = 0
    if (this.roles.areNone) return end
    for (const [context, endNs] of this.promptEnds) {
      if (endNs <= startNs && endNs > end && this.roles.of(context) === 'draft') end = endNs
    }
    return end
  }

  /** Takes the context's call that verified drafts: the `next` call begins after the last accepted token. */
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
    // A context may have several schedulers.
    if (call.event.batch?.function !== 'ggml_backend_sched_graph_compute') this.timesOf(context)?.add(call)
    if (context !== this.waitingOf || this.waiting.length === DRAFTS_MAX) this.flush()
    this.waitingOf = context
    this.waiting.push(call)
  }

  private flush(): void {
    const drafts = this.roles.of(this.waitingOf) === 'draft'
    for (const call of this.waiting) if (!drafts || !decodes(call.event)) this.all.add(call, drafts)
    this.waiting = []
  }

  private timesOf(context: number): Times | undefined {
    return this.byContext.size < CONTEXTS_MAX ? this.byContext.of(context) : this.byContext.get(context)
  }
}

/** Does the call make tokens of sequences that were in earlier calls? */
function decodes({ phase }: TokenEvent): boolean {
  return phase === 'decode' || phase === 'mixed'
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
