import type { Position } from '../../errors.ts'
import { bigOf, type JsonItem, JsonItems } from '../../input/json-items.ts'
import { Inferred, type InputEvent, type RequestEvent, type RequestPart, type TraceEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { STAMP_END } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import { EventBatch } from '../common/batches.ts'
import { holding } from '../common/holdings.ts'
import { type ItemReader, jsonIssue, readItems } from '../common/json-issues.ts'

/** A request as a client measured it, or as a span of a server describes it. Absolute times in ns; undefined = not known. */
export interface ClientRequest {
  readonly start: bigint
  readonly end: bigint
  /** It came into the queue of the server that has one; by default at the start. Before, it was prepared and sent. */
  readonly queued?: bigint | undefined
  /** A server began to work on it: it was in a queue before. */
  readonly begin?: bigint | undefined
  readonly firstToken?: bigint | undefined
  /** The last token came; by default at the end. */
  readonly lastToken?: bigint | undefined
  readonly promptTokens?: number | undefined
  readonly reusedTokens?: number | undefined
  readonly generatedTokens?: number | undefined
  /** From start to end, as it was measured: where these are the same. In ns. */
  readonly statedNs?: number | undefined
  /** The number of generated tokens is that of the chunks of the answer. */
  readonly areChunks?: boolean
  readonly type: RequestEvent['type']
  readonly outcome: RequestEvent['outcome']
  readonly error?: string | undefined
}

/** How a format reads the items of its documents. */
export interface ClientFormat {
  readonly name: string
  /** Title of the input's group of tracks. */
  readonly title: string
  /** What its times are, for the trace. */
  readonly times: string
  /** Where requests and facts are in the document. */
  readonly paths: readonly string[]
  /** Reads an item. */
  item(item: Extract<JsonItem, { what: 'item' }>, into: ClientRequests): void
  /** The input has ended. */
  finish?(into: ClientRequests): void
}

/** Reads a document of requests. The first event is made of the first request: its start is the origin. */
export function readClient(
  source: AsyncIterable<Uint8Array>,
  format: ClientFormat,
  names: Names,
): AsyncGenerator<TraceEvent[]> {
  const items = new JsonItems(source, format.paths)
  const requests = new ClientRequests(format, names)
  return readItems(items, requests, (item) => {
    if (item.what === 'item') format.item(item, requests)
    else requests.issue(...jsonIssue(item))
  })
}

const TEXT_MAX = 1000
const TOKENS_MAX = 2 ** 31

/** Makes events of requests. */
export class ClientRequests implements ItemReader {
  readonly batch = new EventBatch()
  readonly facts: Record<string, string | number> = Object.create(null)
  private originNs: bigint | undefined
  private count = 0
  private errors = 0
  private cancelled = 0
  private lastNs = 0

  constructor(
    private readonly format: ClientFormat,
    readonly names: Names,
  ) {}

  add(request: ClientRequest, at: Position): void {
    const { start, end, outcome } = request
    if (start <= 0n || end < start || end >= STAMP_END) {
      return this.issue('unreadable-row', `expected a start and a later end, found ${start} and ${end} ns`, at)
    }
    if (this.originNs === undefined) this.begin(start)
    const since = (time: bigint) => Number(time - this.originNs!)
    const event = eventOf(request, since, ++this.count, this.names)
    this.lastNs = event.endNs
    if (outcome === 'error') this.errors++
    if (outcome === 'cancelled') this.cancelled++
    this.batch.add(event)
  }

  issue(code: IssueCode, detail: string, at: Position): void {
    this.batch.add(issueOf(code, detail, at, this.lastNs))
  }

  /** Counts something that is not drawn. */
  skip(what: string): void {
    this.batch.leftOut.add(what)
  }

  /** Adds a fact about the run; the first of each key stays. */
  fact(key: string, value: unknown): void {
    if (key in this.facts) return
    if (typeof value === 'string' && value !== '') this.facts[key] = value.slice(0, TEXT_MAX)
    if (typeof value === 'number' && Number.isFinite(value)) this.facts[key] = value
  }

  finish(): void {
    this.format.finish?.(this)
    if (this.originNs === undefined) this.begin(0n)
    const { count, errors, cancelled } = this
    const { contents, attributes } = holding({ request: count, error: errors, cancellation: cancelled }, 'no requests')
    this.batch.add({ kind: 'facts', contents, attributes: { ...this.facts, ...attributes } })
    this.batch.end()
  }

  private begin(originNs: bigint): void {
    this.originNs = originNs
    const { name, title, times } = this.format
    const clock: InputEvent['clock'] = originNs > 0n ? 'REALTIME' : 'unknown'
    this.batch.begin({
      ...{ kind: 'input', format: name, clock, originNs, title, attributes: { times } },
      capabilities: { order: false, operators: false, requests: true },
    })
  }
}

function eventOf(request: ClientRequest, since: (time: bigint) => number, id: number, names: Names): RequestEvent {
  const [startNs, endNs] = [since(request.start), since(request.end)]
  const inside = (time: bigint | undefined, after: number) =>
    time === undefined ? undefined : Math.min(endNs, Math.max(after, since(time)))
  const beginNs = inside(request.begin, startNs)
  const firstTokenNs = inside(request.firstToken, beginNs ?? startNs)
  const lastNs = inside(request.lastToken, firstTokenNs ?? startNs) ?? endNs
  const parts: RequestPart[] = []
  const add = (what: RequestPart['what'], from: number, to: number, tokens = -1) => {
    if (to > from)
      parts.push({ what, startNs: from, endNs: to, tokens, call: -1, accepted: -1, othersTokens: 0, others: 0 })
  }
  const [prompt, reused, generated] = [
    countOf(request.promptTokens),
    countOf(request.reusedTokens),
    countOf(request.generatedTokens),
  ]
  const processed = prompt >= 0 ? prompt - Math.max(0, reused) : -1
  if (beginNs !== undefined) {
    const queuedNs = Math.min(beginNs, inside(request.queued, startNs) ?? startNs)
    add('other', startNs, queuedNs)
    add('queued', queuedNs, beginNs)
  }
  if (firstTokenNs !== undefined) {
    add('prefill', beginNs ?? startNs, firstTokenNs, processed)
    add('decode', firstTokenNs, lastNs, generated)
    add('other', lastNs, endNs)
  } else add('other', beginNs ?? startNs, endNs)
  return {
    kind: 'request',
    id,
    task: -1,
    slot: -1,
    context: 0,
    type: request.type,
    outcome: request.outcome,
    startNs,
    launchNs: beginNs ?? startNs,
    firstTokenNs: firstTokenNs ?? -1,
    endNs,
    promptTokens: prompt,
    reusedTokens: reused,
    generatedTokens: generated,
    draftedTokens: 0,
    acceptedTokens: 0,
    parts,
    error: request.error === undefined || request.error === '' ? undefined : names.id(request.error.slice(0, TEXT_MAX)),
    stated: endNs === startNs && request.statedNs !== undefined ? { totalNs: request.statedNs } : undefined,
    inferred: (firstTokenNs === undefined ? 0 : Inferred.Parts) | (request.areChunks ? Inferred.TokenCount : 0),
  }
}

const countOf = (value: number | undefined) =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 && value <= TOKENS_MAX ? value : -1

/** The time that a number of units after another one is; undefined where it is not a plausible one. */
export function later(time: bigint, value: unknown, unitNs: number): bigint | undefined {
  const ns = typeof value === 'number' ? Math.round(value * unitNs) : NaN
  return Number.isSafeInteger(ns) && ns >= 0 ? time + BigInt(ns) : undefined
}

/** A time in ns since 1970, from a number or a text. */
export const timeOf = bigOf
