import type { TokenEvent } from '../call-events.ts'
import { isFailed } from '../calls.ts'
import { DefaultMap } from '../default-map.ts'
import { IdMap } from '../id-map.ts'
import { type IssueEvent, issueOf } from '../issues.ts'
import type { FunctionEvent, RequestEvent, SequenceEvent, TaskEvent } from '../request-events.ts'
import { Cache, type CachedSequence, SEQUENCES_MAX } from './cache.ts'
import { OpenRequest, type Share } from './open-request.ts'
import { OutputOwners } from './outputs.ts'
import { TaskQueue } from './queue.ts'
import { sharesOf } from './shares.ts'

/** What requests are made of. */
export type RequestSource = TokenEvent | FunctionEvent | SequenceEvent | TaskEvent

/** What a thread does. Times in ns. */
interface Thread {
  /** Its last call that is not a draft model's. */
  call: TokenEvent | undefined
  /** Whose tokens are sampled since then. */
  sampled: OpenRequest | undefined
  /** A draft model works until then. */
  draftsUntilNs: number
  /** Was a draft made since its last call? */
  isDrafted: boolean
}

/**
 * Makes requests of the events of one input, which come in the order of their starts. Borders and figures are those of a server's tasks; where
 * none are recorded, a request is the use of a sequence, from a prompt to the last token before the next prompt, if there are signs
 * that its tokens are an answer: they are sampled, or its sequence was cut before the prompt. Memory and
 * work of an event: of the requests that are open, of which there are {@link SEQUENCES_MAX} at most.
 */
export class Requests {
  private readonly caches = new DefaultMap<number, Cache>(() => new Cache())
  private readonly threads = new DefaultMap<number, Thread>(() => ({
    call: undefined,
    sampled: undefined,
    draftsUntilNs: -Infinity,
    isDrafted: false,
  }))
  private readonly queue = new TaskQueue()
  /** By context: programs may have several, each with its thread. */
  private readonly outputs = new DefaultMap<number, OutputOwners>(() => new OutputOwners())
  /** In the order in which they began. */
  private readonly open: OpenRequest[] = []
  /** Launched requests by slot and by task. */
  private readonly launched = new IdMap<OpenRequest>()
  private readonly byTask = new IdMap<OpenRequest>()
  /** When slots were released last. */
  private readonly releasedNs = new Map<number, number>()
  /** Is it recorded where a task waits for a slot? */
  private areDefersRecorded = false
  /** The context of a server's slots; 0 = not known. */
  private target = 0
  /** The context of the last call that is not a draft model's. */
  private latestContext = 0
  /** Does the input contain the sampling of tokens? */
  private areSampled = false
  private count = 0
  private latestNs = -Infinity
  private done: (RequestEvent | IssueEvent)[] = []

  /** Slots that process a request. */
  get busy(): number {
    return this.launched.size
  }

  /** Takes the next event; returns the requests that ended. */
  take(event: RequestSource): readonly (RequestEvent | IssueEvent)[] {
    switch (event.kind) {
      case 'token':
        this.call(event)
        break
      case 'function':
        this.function(event)
        break
      case 'sequence':
        this.change(event)
        break
      case 'task':
        this.step(event)
    }
    const endNs = 'endNs' in event ? event.endNs : event.atNs
    if (endNs > this.latestNs) this.latestNs = endNs
    return this.ended()
  }

  /** The requests that did not end, one after the other: there may be many. */
  *finish(): Generator<RequestEvent | IssueEvent, void> {
    for (const request of [...this.open]) {
      this.endLate(request)
      yield* this.ended()
    }
    for (const task of this.queue.deferred()) {
      this.neverLaunched(task, 'unfinished', this.latestNs)
      yield* this.ended()
    }
  }

  private ended(): readonly (RequestEvent | IssueEvent)[] {
    if (this.done.length === 0) return this.done
    const { done } = this
    this.done = []
    return done
  }

  /** Ends a request whose end is not in the input. */
  private endLate(request: OpenRequest): void {
    const { isOfTokens, ownEndNs, lastSendNs } = request
    const isDone = isOfTokens || lastSendNs >= ownEndNs
    this.end(request, isDone ? 'complete' : 'unfinished', isDone ? ownEndNs : this.latestNs)
  }

  private call(event: TokenEvent): void {
    const { batch, startNs, endNs, tid, phase } = event
    if (!batch || phase === 'warm-up' || batch.function === 'ggml_backend_sched_graph_compute') return
    const thread = this.threads.of(tid)
    const cache = this.caches.of(batch.context)
    const isDraft = startNs < thread.draftsUntilNs || this.target !== 0
    if (isDraft && batch.context !== this.target) cache.isOfDrafts = true
    if (cache.isOfDrafts) return this.draftCall(event)
    thread.call = event
    thread.sampled = undefined
    this.latestContext = batch.context
    const shares = sharesOf(batch.spans, event.tokens, thread.isDrafted)
    thread.isDrafted = false
    const own = new Set<OpenRequest>()
    for (const [sequence, share] of shares) {
      const request = this.requestOf(cache, sequence, share, event)
      if (!request) continue
      own.add(request)
      request.call(event, share)
    }
    this.outputs.of(batch.context).call(batch.spans, (sequence) => cache.of(sequence).request)
    for (const [sequence, { position, tokens }] of shares) follow(cache.of(sequence), position, tokens, isFailed(event))
    const others = shares.size
    for (const request of this.open) {
      const isBeside = request.context === batch.context || request.tid === tid
      if (isBeside && !own.has(request)) request.stall(startNs, endNs, event.call, others, Math.max(event.tokens, 0))
    }
  }

  /** The request of a sequence in a call: the launched one, or one that begins with the call. */
  private requestOf(cache: Cache, sequence: number, share: Share, event: TokenEvent): OpenRequest | undefined {
    const { context } = event.batch!
    const cachedSequence = cache.of(sequence)
    const launched = this.target === 0 || this.target === context ? this.launched.get(sequence) : undefined
    if (launched && launched !== cachedSequence.request) {
      this.target = context
      cachedSequence.request = launched
      launched.context = context
    }
    if (cachedSequence.request?.isOfTokens && isNext(cachedSequence, share, event))
      this.end(cachedSequence.request, 'complete', cachedSequence.request.ownEndNs)
    if (!cachedSequence.request) {
      const isPrompt = share.tokens > 1 || share.position === 0 || cachedSequence.cut !== undefined
      if (!isPrompt) return undefined
      cachedSequence.request = this.begin(sequence, event.startNs, true)
      Object.assign(cachedSequence.request, { context, tid: event.tid })
      if (cachedSequence.cut) cachedSequence.request.isEvident = true
    }
    const { request, cut } = cachedSequence
    if (request.calls === 0 && cut) request.lost = cut
    cachedSequence.cut = undefined
    request.tid = event.tid
    return request
  }

  /** A call of a draft model: a part of the function around it, or, where that is not recorded, of its own. */
  private draftCall({ startNs, endNs, tid, batch }: TokenEvent): void {
    if (startNs < this.threads.of(tid).draftsUntilNs) return
    for (const { sequence, tokens } of batch!.spans) this.launched.get(sequence)?.own('draft', startNs, endNs, tokens)
  }

  private function(event: FunctionEvent): void {
    const { what, startNs, tid, value, sequence } = event
    const thread = this.threads.of(tid)
    if (what === 'draft' || what === 'verify') return this.drafts(event, thread)
    if (what === 'accept-draft') this.inSlot(sequence)?.accept(value)
    if (startNs < thread.draftsUntilNs) return
    if (what === 'sample') this.sample(event, thread)
    else if (what === 'accept') this.ofSampled('sample', event, thread)
    else if (what === 'detokenize' || what === 'token-to-piece') this.ofSampled('text', event, thread)
    else if (what === 'get-embeddings') this.owner(event, thread)?.embedding()
  }

  private sample(event: FunctionEvent, thread: Thread): void {
    const { startNs, endNs } = event
    const request = this.owner(event, thread)
    if (!request) return
    this.areSampled = true
    thread.sampled = request
    request.sample(startNs, endNs)
    this.stallOthers(request, event)
  }

  /** Work on the token that was sampled last. */
  private ofSampled(what: 'sample' | 'text', event: FunctionEvent, { sampled }: Thread): void {
    if (!sampled?.isOpen) return
    if (event.what === 'accept') this.outputs.of(sampled.context).accepted()
    sampled.own(what, event.startNs, event.endNs)
    this.stallOthers(sampled, event)
  }

  private stallOthers(own: OpenRequest, { startNs, endNs, tid }: FunctionEvent): void {
    for (const request of this.open) if (request !== own && request.tid === tid) request.stall(startNs, endNs, -1, 1, 0)
  }

  /** The request whose output is sampled or read: by the place in the batch, else by its sequence. */
  private owner({ context, output, sequence }: FunctionEvent, thread: Thread): OpenRequest | undefined {
    if (!thread.call) return undefined
    const request = this.outputs.of(context || thread.call.batch!.context).of(output) ?? this.inSlot(sequence)
    return request?.isOpen ? request : undefined
  }

  /** A draft is made, or the draft model takes the batch: work for one sequence, for those that generate, for those in the batch. */
  private drafts({ what, startNs, endNs, tid, sequence, value }: FunctionEvent, thread: Thread): void {
    const isOuter = startNs >= thread.draftsUntilNs
    thread.draftsUntilNs = Math.max(thread.draftsUntilNs, endNs)
    if (!isOuter) return
    if (what === 'draft') thread.isDrafted = true
    const named = this.inSlot(sequence)
    const ofThread = this.open.filter((request) => request.tid === tid)
    const areGenerating = what === 'draft' && ofThread.some(({ isGenerating }) => isGenerating)
    for (const request of ofThread) {
      const isOwn = named ? request === named : areGenerating ? request.isGenerating : this.isInBatch(request)
      if (isOwn) request.own('draft', startNs, endNs, named ? value : -1)
      else request.stall(startNs, endNs, -1, 1, 0)
    }
  }

  /** Does a request have tokens in the last call of its context? */
  private isInBatch(request: OpenRequest): boolean {
    return this.outputs.of(request.context).has(request)
  }

  private change(event: SequenceEvent): void {
    const { what, sequence, to, context, from, isDone } = event
    if (!isDone) return
    const cache = this.caches.of(context)
    const changed = what === 'keep' ? cache.others(sequence) : cache.named(what === 'clear' ? -1 : sequence)
    cache.change(event)
    if (what === 'copy') {
      const [openRequest, child] = [cache.of(sequence).request, this.launched.get(to)]
      if (!openRequest || !child || child.calls > 0) return
      child.copyPrompt(openRequest)
      cache.of(to).request = child
      this.outputs.of(openRequest.context).share(openRequest, child)
      return
    }
    if (what === 'shift' || (what === 'remove' && event.end >= 0)) return
    for (const sequence of changed) {
      const { request } = sequence
      if (!request) continue
      if (what === 'remove' && from > request.lastPosition && request.calls > 0) {
        request.settle(from)
        sequence.cut = undefined // a rejected draft
      } else if (request.isOfTokens && request.calls > 0) {
        this.end(request, 'complete', request.ownEndNs)
      } else if (request.calls > 0) request.settle(from)
    }
  }

  private step(event: TaskEvent): void {
    const { what, atNs, task, slot, text } = event
    if (what === 'post') return this.queue.post(event, this.busy)
    if (what === 'defer') return this.defer(event)
    if (what === 'launch') return this.launch(event)
    if (what === 'resume' && task >= 0) return
    const request = this.byTask.get(task) ?? this.inSlot(slot) ?? this.sentBy(event)
    if (!request) return this.stepOfQueued(event)
    request.state(event)
    if (what === 'send' || what === 'error') request.lastSendNs = atNs
    // The server cancels what failed, too. What failed as it was launched is in no slot, and none is released.
    if (what === 'cancel' && request.error !== undefined) this.release(request, atNs)
    else if (what === 'cancel') request.isCancelled = true
    // The first text is the reason; a record of a function has none.
    else if (what === 'error') request.error = request.error || (text ?? 0)
    else if (what === 'reprocess') request.reason = text
    else if (what === 'release' || what === 'resume') this.release(request, atNs)
  }

  private inSlot(slot: number): OpenRequest | undefined {
    return slot < 0 ? undefined : (this.launched.get(slot) ?? this.caches.of(this.latestContext).of(slot).request)
  }

  private stepOfQueued({ what, task, atNs, text }: TaskEvent): void {
    const queued = this.queue.of(task)
    if (!queued) return
    if (what === 'cancel' && queued.deferNs !== undefined) this.neverLaunched(task, 'cancelled', atNs)
    else if (what === 'error') {
      queued.error = text ?? 0
      this.neverLaunched(task, 'error', atNs)
    }
  }

  private launch(event: TaskEvent): void {
    const { task, slot, atNs } = event
    if (task >= 0 && this.byTask.has(task)) return
    const before = this.launched.get(slot)
    if (before) this.release(before, before.ownEndNs)
    const queued = this.queue.take(task)
    const request = this.begin(slot, queued?.postNs ?? atNs, false)
    request.isTask(task, undefined)
    // Where it is not recorded that no slot is free, it may be that its slot was not.
    const wasFree = !before && (this.releasedNs.get(slot) ?? -Infinity) <= (queued?.postNs ?? atNs)
    if (queued) request.wasQueued(queued, atNs, this.areDefersRecorded || wasFree)
    request.launch(event, this.busy)
    if (task >= 0) this.byTask.set(task, request)
    if (slot < 0) return
    this.launched.set(slot, request)
    const sequence = this.target === 0 ? undefined : this.caches.of(this.target).of(slot)
    if (sequence) {
      if (sequence.request?.isOfTokens) this.end(sequence.request, 'complete', sequence.request.ownEndNs)
      Object.assign(sequence, { request, cut: undefined })
      request.context = this.target
    }
  }

  /** The request of tokens whose result is sent, where launches are not recorded: the one that its thread sampled last. */
  private sentBy({ what, task, tid }: TaskEvent): OpenRequest | undefined {
    const sampled = what === 'send' && task >= 0 ? this.threads.of(tid).sampled : undefined
    if (!sampled?.isOpen || sampled.task >= 0) return undefined
    const postNs = this.queue.take(task)?.postNs
    sampled.isTask(task, postNs)
    this.byTask.set(task, sampled)
    return sampled
  }

  private defer(event: TaskEvent): void {
    this.areDefersRecorded = true
    const dropped = this.queue.defer(event, this.busy)
    if (dropped !== undefined) this.neverLaunched(dropped, 'unfinished', event.atNs)
  }

  private release(request: OpenRequest, atNs: number): void {
    this.releasedNs.set(request.slot, atNs)
    const { error, isCancelled, stated, lastSendNs } = request
    const isAnswered = stated.generatedTokens !== undefined || !isCancelled
    const outcome = error !== undefined ? 'error' : isAnswered ? 'complete' : 'cancelled'
    const isSent = outcome !== 'cancelled' && lastSendNs >= 0 && lastSendNs <= atNs
    this.end(request, outcome, isSent ? lastSendNs : atNs)
  }

  private begin(slot: number, startNs: number, isInferred: boolean): OpenRequest {
    if (this.open.length >= SEQUENCES_MAX) this.makeRoom(startNs)
    const request = new OpenRequest(++this.count, slot, startNs, isInferred, this.areSampled)
    this.open.push(request)
    return request
  }

  /** More requests than can be worked on at a time: the end of the first is not in the input, as far as is known. */
  private makeRoom(atNs: number): void {
    const [first] = this.open
    const detail = `expected at most ${SEQUENCES_MAX} requests at a time, found another; the first of them is unfinished from there on`
    if (!first!.isOfTokens) this.done.push(issueOf('request-without-end', detail, { byte: 0 }, Math.max(atNs, 0)))
    this.endLate(first!)
  }

  private end(request: OpenRequest, outcome: RequestEvent['outcome'], endNs: number): void {
    const { slot, task, context } = request
    if (request.isOpen) this.open.splice(this.open.indexOf(request), 1)
    request.isOpen = false
    if (this.launched.get(slot) === request) this.launched.delete(slot)
    if (this.byTask.get(task) === request) this.byTask.delete(task)
    const sequence = this.caches.of(context).of(slot)
    if (sequence.request === request) sequence.request = undefined
    if (request.isEvident) this.done.push(request.finish(outcome, endNs))
  }

  /** A task left the queue, or the log ended, before a slot was free. */
  private neverLaunched(task: number, outcome: RequestEvent['outcome'], atNs: number): void {
    const queued = this.queue.take(task)!
    const request = this.begin(-1, queued.postNs, false)
    request.isTask(task, undefined)
    request.wasQueued(queued, Math.max(atNs, queued.postNs), this.areDefersRecorded)
    request.error = queued.error
    this.end(request, outcome, atNs)
  }
}

/** Follows a call: the sequence ends after its last token. */
function follow(sequence: CachedSequence, position: number, tokens: number, isFailed: boolean): void {
  sequence.cut = undefined
  if (isFailed) return
  if (position >= 0) sequence.next = position + tokens
  else if (sequence.next >= 0) sequence.next += tokens
}

/** Does a prompt begin with these tokens of a sequence that has generated some? */
function isNext({ next, request, cut }: CachedSequence, { tokens, position }: Share, { batch }: TokenEvent): boolean {
  if (!request?.isGenerating) return false
  if (tokens > 1) return !batch!.areAllOutput
  return cut !== undefined || (position >= 0 && next >= 0 && position !== next)
}
