import { CallOrder } from '../../model/call-order.ts'
import { isCut, isFailed, isVerification, repeats } from '../../model/calls.ts'
import { type Change, ChangesBetweenCalls } from '../../model/changes-between-calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { SequenceSpan, TokenEvent } from '../../model/events.ts'
import type { FunctionEvent, SequenceEvent } from '../../model/request-events.ts'
import { Roles } from '../../model/roles.ts'
import { isRemoval, TextBeginnings } from '../../model/text-beginnings.ts'
import type { DraftFigures } from '../requests/figures.ts'
import type { CallSummary, ContextTimes, TokenTimes } from './figures.ts'
import { RunsOfCalls } from './runs-of-calls.ts'
import { decodes, type TimedCall, type TimedDecode, Times } from './times.ts'

/** Finds how many tokens of verified drafts were accepted. */
class Acceptance {
  private drafted = 0
  private accepted = 0

  /** Drafts whose number of accepted tokens is known; null without any. */
  get figures(): DraftFigures | null {
    const { drafted, accepted } = this
    if (drafted === 0) return null
    return { drafted_tokens: drafted, accepted_tokens: accepted, acceptance_share: accepted / drafted }
  }

  /**
   * The tokens that a verification made, by what the program did after it: rejected tokens are removed from the memory, and the next call
   * begins after the last accepted one. Where neither is recorded, all are taken for accepted.
   */
  of({ batch }: TokenEvent, changes: readonly Change[], next?: TokenEvent): { made: number; isAssumed: boolean } {
    let [made, isAssumed] = [0, false]
    for (const span of batch!.spans) {
      const end = removedFrom(span, changes) ?? continuedAt(span, next)
      made += end === undefined ? span.tokens : end - span.position
      if (span.tokens === 1) continue
      if (end === undefined) isAssumed = true
      else {
        this.drafted += span.tokens - 1
        this.accepted += end - span.position - 1
      }
    }
    return { made, isAssumed }
  }
}

/** Is a position right after one of the tokens? */
const isAfter = ({ position, tokens }: SequenceSpan, at: number) => at > position && at <= position + tokens

function removedFrom(span: SequenceSpan, changes: readonly Change[]): number | undefined {
  return changes.find((change) => isRemoval(change, span) && isAfter(span, change.from))?.from
}

function continuedAt(span: SequenceSpan, next: TokenEvent | undefined): number | undefined {
  const position = next?.batch?.spans.find(({ sequence }) => sequence === span.sequence)?.position ?? -1
  return isAfter(span, position) ? position : undefined
}

/** Contexts that are timed separately. */
const CONTEXTS_MAX = 64
/** Calls of a context that wait: the next call of another context may show that they are drafts. */
const DRAFTS_MAX = 64

/**
 * Gets each call that succeeded, in order, with its time where it is timed: once in `context`, once in the figures of `all` contexts.
 * `all` does not contain decode calls of drafts; `context` not the graphs of a scheduler.
 */
export type OnCall = (scope: 'all' | 'context', event: TokenEvent, timed: TimedDecode | undefined) => void

const NONE: OnCall = () => {}

/** Times of tokens, as {@link Decoding} defines them. Calls may come out of order. */
export class CallTimes {
  private readonly order = new CallOrder((event) => {
    if (event.call > this.next && this.next > 0) this.interrupt()
    this.next = Math.max(this.next, event.call + 1)
    if (event.phase !== 'warm-up') this.time(event)
  })
  /** The number of the call after the latest. */
  private next = 0
  /** End of the latest call, by context; undefined where it is not known. */
  private readonly ends = new Map<number, number | undefined>()
  private readonly beginnings = new TextBeginnings()
  private readonly roles = new Roles()
  /** End of the latest call that began a prompt, by context. */
  private readonly promptEnds = new Map<number, number>()
  /** Times of all contexts; of draft contexts, only their calls before decoding. */
  private readonly all: Times
  private readonly byContext: DefaultMap<number, Times>
  /** Calls that verify drafts, by context: what follows shows how many were accepted. */
  private readonly verifying = new Map<number, TimedCall>()
  private readonly changes = new ChangesBetweenCalls()
  private readonly acceptance = new Acceptance()
  private readonly divided = new RunsOfCalls((context) => this.roles.of(context) === 'draft')
  private latest: TokenEvent | undefined
  private waiting: TimedCall[] = []
  private waitingOf = 0

  constructor(onCall = NONE) {
    this.all = new Times((event, timed) => onCall('all', event, timed))
    this.byContext = new DefaultMap(() => new Times((event, timed) => onCall('context', event, timed)))
  }

  /** Adds a call; warm-ups are ignored. */
  add(event: TokenEvent): void {
    // A warm-up that was recognised afterwards has a number, which the next call follows.
    if (event.phase !== 'warm-up' || event.call >= 0) this.order.add(event)
  }

  /** Adds what happens around calls: a change of a context's memory may divide its calls into runs, or remove rejected drafts. */
  around(event: FunctionEvent | SequenceEvent): void {
    this.changes.add(event)
  }

  /** Call after the last {@link add}. */
  finish(): void {
    this.order.finish()
    for (const context of [...this.verifying.keys()]) this.verify(context, this.changes.until(context, Infinity))
    this.flush()
    this.divided.finish()
  }

  /** Times of all calls. Prompts of drafts are not in them. Of several runs, TTFT is the mean. */
  get figures(): TokenTimes & Pick<CallSummary, 'ttft_runs'> {
    const { areSeveral, ttft } = this.divided
    const { ttft_ns, ...others } = this.all.figures
    if (areSeveral) return { ttft_ns: ttft.mean, ttft_runs: ttft.count, ...others }
    return { ttft_ns, ttft_runs: ttft_ns === null ? 0 : 1, ...others }
  }

  /** Drafts whose number of accepted tokens is known. */
  get drafts(): Acceptance['figures'] {
    return this.acceptance.figures
  }

  /** The runs into which clearings of a memory divide the calls; none where it is one run. */
  get runs(): RunsOfCalls['figures'] {
    return this.divided.figures
  }

  /** Each llama_context, in the order of their first calls. */
  get contexts(): ContextTimes[] {
    const { areSeveral } = this.divided
    return [...this.byContext].map(([context, { calls, timeNs, figures }]) => {
      const ttft = areSeveral && { ttft_ns: this.divided.ttftOf(context) }
      return { context, role: this.roles.of(context) ?? null, calls, calls_ns: timeNs, ...figures, ...ttft }
    })
  }

  private time(event: TokenEvent): void {
    const { phase, startNs, endNs } = event
    const context = contextOf(event)
    const changes = this.changes.until(context, startNs)
    const cleared = changes.findLastIndex(({ what }) => what === 'clear')
    if (cleared >= 0) this.begin(context, changes, changes[cleared]!.atNs)
    // Texts that begin waited for nothing: before them, the program may have had nothing to do.
    const isNew = this.beginnings.begin(event, changes, this.roles.of(context) === 'draft')
    const before = isNew ? startNs : this.ends.get(context)
    if (isFailed(event) && decodes(event)) return
    // An end that is a lower bound times neither this call nor the next.
    this.ends.set(context, isCut(event) ? undefined : Math.max(before ?? endNs, endNs))
    if (isFailed(event)) return
    this.verify(context, changes, event)
    if (changes.some(({ what }, i) => i > cleared && what === 'save-state')) this.divided.save(context)
    this.roles.add(event)
    const isRepeated = this.latest !== undefined && repeats(this.latest, event) && this.roles.of(context) === 'draft'
    this.latest = event
    if (phase !== 'decode' && event.batch?.spans.some(({ position }) => position === 0)) this.notePrompt(context, endNs)
    const fromNs = before === undefined ? undefined : Math.min(Math.max(before, this.draftPromptEnd(event)), endNs)
    const call = { event, fromNs, made: isRepeated && decodes(event) ? 0 : undefined }
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

  /** Calls are missing here: neither the time since the latest one is known, nor whether it was the one before. */
  private interrupt(): void {
    this.flush()
    this.ends.clear()
    this.beginnings.interrupt()
    this.all.hasDecoded = true
    for (const times of this.byContext.values()) times.hasDecoded = true
    this.divided.interrupt()
  }

  /** The context's memory was cleared, last at this time: what follows is another run. */
  private begin(context: number, changes: readonly Change[], atNs: number): void {
    this.verify(context, changes)
    this.flush()
    this.ends.delete(context)
    this.divided.clear(context, atNs)
  }

  /** Takes the context's call that verified drafts, by what changed after it, and the `next` call. */
  private verify(context: number, changes: readonly Change[], next?: TokenEvent): void {
    const call = this.verifying.get(context)
    if (!call) return
    this.verifying.delete(context)
    this.take({ ...call, ...this.acceptance.of(call.event, changes, next) })
  }

  private take(call: TimedCall): void {
    const context = contextOf(call.event)
    // A context may have several schedulers.
    if (call.event.batch?.function !== 'ggml_backend_sched_graph_compute') this.timesOf(context)?.add(call)
    this.divided.add(context, call)
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

function contextOf({ batch }: TokenEvent): number {
  return batch?.context ?? 0
}
