import type { TokenEvent } from '../call-events.ts'
import { isFailed } from '../calls.ts'
import { Inferred } from '../events.ts'
import {
  type LostReuse,
  QUEUE_PARTS,
  type RequestEvent,
  type RequestPart,
  type RequestPartKind,
  type TaskEvent,
  type TaskValues,
  WITHIN_CALLS,
} from '../request-events.ts'
import { isPlaced } from '../times.ts'
import { Parts } from './parts.ts'
import type { Queued } from './queue.ts'
import { type Inference, Written } from './written.ts'

/** Tokens of one sequence in a call. */
export interface Share {
  /** Position of its first token; -1 = not known. */
  readonly position: number
  readonly tokens: number
  readonly othersTokens: number
  readonly others: number
  /** Was a draft made since the call before? */
  readonly isDrafted: boolean
}

/** What the call of a request does for it. */
export type CallKind = Extract<RequestPartKind, 'prefill' | 'decode' | 'verify'>

/** A verified draft, whose number of accepted tokens is not known yet. */
interface Verification {
  readonly position: number
  readonly tokens: number
  readonly part: { accepted: number }
}

/** The server's own durations may exceed the time between its lines by so much: they are rounded. */
const ROUNDED_NS_MAX = 1e6

/** A request that has not ended: it gathers its parts and figures. Times in ns. */
export class OpenRequest {
  /** Has it not ended? */
  isOpen = true
  task = -1
  context = 0
  /** Thread of the program that works on it, or -1. */
  tid = -1
  launchNs = -1
  private readonly written = new Written()
  error: number | undefined
  /** The server's reason to process the prompt again: a name. */
  reason: number | undefined
  isCancelled = false
  lastSendNs = -1
  lost: LostReuse | undefined
  /** Calls that processed tokens of it. */
  calls = 0
  /** Was a token sampled, or an embedding read, or its sequence cut, as programs do that answer? */
  isEvident = false
  /** Position of its first token in its last call; -1 = not known. */
  lastPosition = -1
  private readonly parts: Parts
  private type: RequestEvent['type'] = 'unknown'
  private reused = -1
  private processed = 0
  private generated = 0
  private drafted = 0
  private accepted = 0
  private firstTokenNs = -1
  /** Number of its calls when its first token was sampled. */
  private firstTokenCalls = 0
  private promptEndNs = -1
  private lastOwnNs: number
  /** Its last call has an output that was not sampled yet. */
  private isOutputPending = false
  private hasSamples = false
  private verification: Verification | undefined
  private inferredBits = 0
  private isPosted = false
  /** Other requests that were in slots when it was launched. */
  private others = 0
  /** Calls of one token after the first one, as long as nothing is sampled: they may be the end of the prompt. */
  private assumed: { what: RequestPartKind; tokens: number }[] = []

  /** `isInferred`: its borders are those of its tokens; `areSampled`: the input is known to contain the sampling of tokens. */
  constructor(
    readonly id: number,
    readonly slot: number,
    private startNs: number,
    private readonly isInferred: boolean,
    private readonly areSampled: boolean,
  ) {
    this.parts = new Parts(startNs)
    this.lastOwnNs = startNs
  }

  /** Are its borders those of its tokens? */
  get isOfTokens(): boolean {
    return this.isInferred
  }

  /** Has it generated tokens? */
  get isGenerating(): boolean {
    return this.generated > 0
  }

  /** What the time is that no event covers. */
  private get gap(): RequestPartKind {
    return this.calls === 0 ? 'prepare' : 'other'
  }

  /** What its server states of it. */
  get stated(): TaskValues {
    return this.written.figures
  }

  /** The server writes a step of its task. */
  state(event: TaskEvent): void {
    this.inferredBits |= event.inferred ?? 0
    this.written.take(event)
  }

  /**
   * It was in the server's queue before: until the server looked for a slot, then until one was free. `isForCall`: it did not wait for a
   * slot before.
   */
  wasQueued({ postNs, deferNs = Infinity, busy, inferred }: Queued, untilNs: number, isForCall: boolean): void {
    this.isPosted = true
    this.inferredBits |= inferred
    const lookedNs = Math.min(deferNs, untilNs)
    this.parts.add(
      { what: isForCall ? 'call-wait' : 'queued', startNs: postNs, endNs: lookedNs, others: busy },
      'queued',
    )
    this.parts.add({ what: 'deferred', startNs: lookedNs, endNs: untilNs }, 'queued')
  }

  /** The server's task, which was posted at a time before. */
  isTask(task: number, postNs: number | undefined): void {
    this.task = task
    this.isEvident = true
    if (postNs === undefined || postNs >= this.startNs) return
    this.parts.queuedFrom(postNs)
    this.startNs = postNs
  }

  /** A slot begins to process it. `others`: requests in slots. */
  launch({ atNs, tid, inferred = 0 }: TaskEvent, others: number): void {
    this.parts.fill(atNs, 'queued')
    this.inferredBits |= inferred
    this.others = others
    this.launchNs = atNs
    this.tid = tid
    this.lastOwnNs = atNs
  }

  /** What a call does that has tokens of it. */
  kindOf({ phase, batch }: TokenEvent, { tokens, position, isDrafted }: Share): CallKind {
    const { calls, processed, stated, reused } = this
    if (phase === 'encode' || calls === 0) return 'prefill'
    if (isDrafted && tokens > 1 && batch?.areAllOutput) return 'verify'
    const left = (stated.promptTokens ?? -1) - (stated.reusedTokens ?? reused) - processed
    if (stated.promptTokens !== undefined && reused >= 0 && left > 0) return 'prefill'
    if (this.assumed.length > 0 && tokens > 1 && batch?.areAllOutput !== true) return 'prefill'
    if (this.generated > 0) return tokens > 1 ? 'verify' : 'decode'
    if (this.areSampled) return 'prefill'
    const isPromptDone = tokens === 1 ? position !== 0 : batch?.areAllOutput === true && left === 0
    return isPromptDone ? 'decode' : 'prefill'
  }

  /** Takes a call that has tokens of it. */
  call(event: TokenEvent, share: Share): void {
    const { startNs, endNs, call } = event
    const { tokens, position, others, othersTokens, isDrafted } = share
    this.settle(position)
    const what = this.kindOf(event, share)
    this.parts.add({ what, startNs, endNs, call, tokens, others, othersTokens }, this.gap)
    if (what === 'prefill') this.endPrompt()
    else if (!this.hasSamples && !isDrafted) this.assume()
    if (this.calls === 0 && position >= 0) this.reused = position
    this.calls++
    this.lastOwnNs = endNs
    this.lastPosition = position
    if (event.phase === 'encode') this.type = 'embedding'
    else if (what !== 'prefill') this.type = 'completion'
    if (isFailed(event)) return
    if (what === 'prefill') {
      this.processed += tokens
      this.promptEndNs = endNs
    }
    if (what === 'verify') {
      this.drafted += tokens - 1
      const { last } = this.parts
      if (last?.call === call) this.verification = { position, tokens, part: last }
      this.isOutputPending = false
    } else this.isOutputPending = event.phase !== 'encode'
  }

  /** Its next token is sampled; one token needs several samplers. */
  sample(startNs: number, endNs: number): void {
    if (!this.hasSamples) this.endPrompt()
    this.hasSamples = true
    this.isEvident = true
    this.type = 'completion'
    this.own('sample', startNs, endNs)
    if ((this.isOutputPending || this.verification) && this.generated === 0) this.firstTokenCalls = this.calls
    if (this.firstTokenCalls === this.calls) this.firstTokenNs = endNs
    this.count()
  }

  /** Another part of its own, that is no call. */
  own(what: RequestPartKind, startNs: number, endNs: number, tokens = -1): void {
    this.parts.add({ what, startNs, endNs, tokens }, this.gap)
    this.lastOwnNs = Math.max(this.lastOwnNs, endNs)
  }

  /** Others are worked on while it waits. Of requests whose ends are not recorded, stalls become one. */
  stall(startNs: number, endNs: number, call: number, others: number, othersTokens: number): void {
    const shown = this.isInferred ? -1 : call
    this.parts.add({ what: 'stalled', startNs, endNs, call: shown, others, othersTokens }, this.gap)
  }

  /** An embedding of it is read. */
  embedding(): void {
    this.isEvident = true
    if (this.generated === 0) this.type = 'embedding'
  }

  /** The result of its last verification: a number of accepted drafted tokens. */
  accept(count: number): void {
    const { verification } = this
    if (!verification) return
    const { part, tokens } = verification
    part.accepted = Math.max(0, Math.min(count, tokens - 1))
    this.accepted += part.accepted
    this.generated += count + 1
    this.verification = undefined
  }

  /** Its sequence continues from a position: what it has from there on of a draft was rejected. */
  settle(position: number): void {
    const { verification } = this
    if (verification && position >= 0) this.accept(position - verification.position - 1)
  }

  /** Its prompt was processed in another slot, from which the sequence was copied. */
  copyPrompt({ reused, processed, promptEndNs, stated, context, lastPosition }: OpenRequest): void {
    Object.assign(this, { reused, processed, promptEndNs, context, lastPosition })
    this.written.figures = { ...stated, ...this.stated }
    this.calls++
    this.isOutputPending = true
  }

  /** The request, ended. `latestNs`: the time of the last event where nothing else says when it ended. */
  finish(outcome: RequestEvent['outcome'], endNs: number): RequestEvent {
    const { id, task, slot, context, startNs, launchNs, stated } = this
    if (outcome === 'complete') {
      if (!this.hasSamples) this.count()
      if (this.verification) this.accept(this.verification.tokens - 1)
    }
    const toNs = Math.max(endNs, startNs)
    const inference = this.calls === 0 ? this.inferred(outcome) : undefined
    const reusedTokens = stated.reusedTokens ?? inference?.reusedTokens ?? this.reused
    const processed = stated.processedTokens ?? (this.calls > 0 ? this.processed : -1)
    const sum = reusedTokens >= 0 && processed >= 0 ? reusedTokens + processed : -1
    if (outcome === 'complete' && this.calls > 0 && this.type === 'unknown') this.type = 'completion'
    const isLost = this.lost !== undefined && processed > 1
    const parts = this.parts.finish(toNs, this.rest(toNs)) as RequestPart[]
    const isOrder = this.calls === 0 && this.isOrder(toNs)
    if (isOrder) this.inferredBits |= Inferred.Order
    return {
      kind: 'request',
      id,
      task,
      slot,
      context,
      type: this.type,
      outcome,
      startNs,
      launchNs,
      firstTokenNs: isOrder ? -1 : (inference?.firstTokenNs ?? this.firstToken()),
      endNs: toNs,
      promptTokens: stated.promptTokens ?? inference?.promptTokens ?? sum,
      reusedTokens,
      generatedTokens: inference?.generatedTokens ?? stated.generatedTokens ?? this.generated,
      draftedTokens: stated.draftedTokens ?? inference?.draftedTokens ?? this.drafted,
      acceptedTokens: stated.acceptedTokens ?? inference?.acceptedTokens ?? this.accepted,
      lost: isLost ? { ...this.lost!, reason: this.reason } : undefined,
      parts: isOrder ? [] : parts,
      unknownParts: this.unknownParts(parts),
      stated: statedOf(this.written.stated),
      error: this.error,
      inferred: (this.isInferred ? Inferred.Call : 0) | this.inferredBits,
    }
  }

  /** What the time after its last part is. */
  private rest(toNs: number): RequestPartKind {
    const { calls, launchNs, lastSendNs, parts, gap } = this
    if (calls > 0) return lastSendNs === toNs ? 'send' : gap
    if (launchNs < 0) return parts.last?.what ?? 'queued'
    return lastSendNs === toNs && parts.last?.what === 'decode' ? 'send' : 'other'
  }

  /** Do its times follow only from the order of the lines, or can they not be, as its server measured more time than is between them? */
  private isOrder(toNs: number): boolean {
    const { startNs, launchNs, inferredBits } = this
    const { promptNs = 0, generationNs = 0, totalNs = promptNs + generationNs } = this.written.stated
    const fromNs = launchNs < 0 ? startNs : launchNs
    return !isPlaced(inferredBits) || toNs === startNs || totalNs > toNs - fromNs + ROUNDED_NS_MAX
  }

  /** Kinds of parts of which the input contains nothing. */
  private unknownParts(parts: readonly RequestPart[]): readonly RequestPartKind[] | undefined {
    const { isPosted, calls, launchNs } = this
    // Of a request that a slot works on, without calls and what its server writes at its end: nothing but when it begins and ends.
    const isDark = calls === 0 && launchNs >= 0 && parts.every(({ what }) => what !== 'prefill')
    const unknown = [
      ...(isPosted ? [] : QUEUE_PARTS),
      ...(calls > 0 ? [] : WITHIN_CALLS),
      ...(isDark ? (['prepare', 'prefill', 'decode'] as const) : []),
    ]
    const left = unknown.filter((kind) => parts.every(({ what }) => what !== kind))
    return left.length > 0 ? left : undefined
  }

  /** Its parts and figures as its server wrote them: no call of it is known. */
  private inferred(outcome: RequestEvent['outcome']): Inference {
    const inference = this.written.infer(outcome)
    const { promptNs, promptUntilNs, firstTokenNs, lastTokenNs, generatedTokens } = inference
    const { stated } = this
    if (generatedTokens > 0) this.type = 'completion'
    const isStated = (what: 'promptTokens' | 'reusedTokens' | 'generatedTokens') => {
      return inference[what] <= 0 || stated[what] === inference[what]
    }
    if (!isStated('promptTokens') || !isStated('reusedTokens') || !isStated('generatedTokens')) {
      this.inferredBits |= Inferred.TokenCount
    }
    if (this.launchNs >= 0) this.inferredBits |= Inferred.Parts
    if (promptNs < 0) return inference
    // Its slot processes nothing of it while calls of others have no space for it.
    const gap = this.others > 0 ? 'stalled' : 'prepare'
    if (promptUntilNs < promptNs) {
      if (this.launchNs >= 0) this.parts.fill(promptNs, gap)
      return inference
    }
    const tokens = stated.processedTokens ?? -1
    this.parts.add({ what: 'prefill', startNs: promptNs, endNs: promptUntilNs, tokens }, gap)
    if (firstTokenNs >= 0)
      this.parts.add({ what: 'decode', startNs: firstTokenNs, endNs: lastTokenNs, tokens: generatedTokens }, 'other')
    return inference
  }

  /** When the last result was sent; else the end of its last own part. */
  get ownEndNs(): number {
    return this.lastSendNs >= this.lastOwnNs ? this.lastSendNs : this.lastOwnNs
  }

  /** The end of its first sampling; where samplers are not recorded, of the call that computed it. */
  private firstToken(): number {
    if (this.generated === 0 || this.type !== 'completion') return -1
    return this.firstTokenNs >= 0 ? this.firstTokenNs : this.promptEndNs
  }

  /** Its first call after those of its prompt, as far as is known. */
  private assume(): void {
    this.count()
    const { last } = this.parts
    if (last) this.assumed.push(last)
  }

  /** Its first token is sampled, or its prompt continues: all calls before were those of its prompt. */
  private endPrompt(): void {
    for (const part of this.assumed) {
      if (part.what === 'verify') this.drafted -= part.tokens - 1
      part.what = 'prefill'
      this.processed += part.tokens
    }
    if (this.assumed.length > 0) this.verification = undefined
    if (this.assumed.length > 0) this.generated = 0
    this.assumed = []
  }

  /** The output of its last call became a token. */
  private count(): void {
    if (!this.isOutputPending) return
    this.isOutputPending = false
    this.generated++
  }
}

const statedOf = (values: TaskValues) => (Object.keys(values).length > 0 ? values : undefined)
