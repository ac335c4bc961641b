import { DefaultMap } from '../../model/default-map.ts'
import { Inferred, type RequestEvent, type RequestPart } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { REQUEST_PARTS } from '../../model/request-events.ts'
import { durationsOf, hasTimes } from '../../model/requests/durations.ts'
import { plural } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import { Median } from '../common/median.ts'
import { TimesNs } from '../common/sketches.ts'
import type { PreemptedCalls } from '../threads/preempted-calls.ts'
import type {
  CancelledFigures,
  DraftFigures,
  RequestFigures,
  RequestRow,
  RequestSeries,
  RequestTypeFigures,
} from './figures.ts'
import { HeldRequests } from './held.ts'
import { addPart, addParts, IN_QUEUE, keyOfPart, noParts, PART_KEYS, type PartSums, sumOf, WORK } from './parts.ts'
import { type Measured, rowOf } from './rows.ts'
import { Speculation } from './speculation.ts'
import { causesOf, isWithPrompt, promptsOf, type Stall } from './stalls.ts'
import { ReuseSums, Slots, Stalls } from './sums.ts'

const OUTCOMES = ['complete', 'cancelled', 'error', 'unfinished'] as const
/** Rows of the slowest requests, and of all on demand. */
const SLOWEST_MAX = 100
/** Rows of the series at most. */
const REQUEST_ROWS_MAX = 10_000
/** Calls without prompts of others from which the usual time of such a call is taken. */
const PLAIN_MIN = 3

/** A call in which others have more than a token each. */
const isBesideMore = ({ what, others, othersTokens }: RequestPart) =>
  (what === 'decode' || what === 'verify') && othersTokens > others
/** Can others have taken time of this part? */
const canStall = (part: RequestPart) => part.what === 'stalled' || isBesideMore(part)

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

class OfType {
  requests = 0
  readonly latency = new TimesNs()
  readonly ttft = new TimesNs()
  readonly tpot = new TimesNs()
  readonly queued = new TimesNs()
  readonly stalled = new TimesNs()

  figures(): RequestTypeFigures {
    const { requests, latency, ttft, tpot, queued, stalled } = this
    return {
      requests,
      latency: latency.figures(),
      ttft: ttft.figures(),
      tpot: tpot.figures(),
      queued: queued.figures(),
      stalled: stalled.figures(),
    }
  }
}

/** Where the time of requests goes: their parts, for whom they waited, what they reused. */
export class RequestStatistics {
  readonly speculation = new Speculation()
  private readonly held = new HeldRequests()
  private readonly types = new DefaultMap<RequestEvent['type'], OfType>(() => new OfType())
  private readonly outcomes = new DefaultMap<RequestEvent['outcome'], { count: number }>(() => ({ count: 0 }))
  private readonly parts = noParts()
  private readonly slots = new Slots()
  private readonly stalls = new Stalls()
  private readonly reuse = new ReuseSums()
  private readonly cancelled: Mutable<CancelledFigures> = {
    ...{ requests: 0, time_ns: null, timed: 0, prompt_tokens: null, generated_tokens: null },
  }
  private readonly drafts = { drafted: 0, accepted: 0 }
  private readonly slowest: RequestRow[] = []
  private readonly rows: RequestRow[] = []
  private readonly plainDecodes = new Median()
  private readonly plainVerifies = new Median()
  private every = 1
  private count = 0
  private latencyNs = 0
  private readonly unknown = {
    parts: 0,
    borders: 0,
    inferredParts: 0,
    tokenCounts: 0,
    excess: 0,
    causesNs: 0,
    times: 0,
    ofServer: 0,
  }

  /** `wantsRows`: a row of each request is asked for. */
  constructor(
    private readonly names: Names,
    private readonly preempted: PreemptedCalls,
    private readonly wantsRows: boolean,
  ) {}

  /** Tokens that requests generated; null without requests. */
  get generatedTokens(): number | null {
    return this.count === 0 ? null : this.slots.generatedTokens
  }

  add(event: RequestEvent): void {
    this.held.add(event)
    for (const part of event.parts) {
      if (part.othersTokens > part.others) continue
      if (part.what === 'decode') this.plainDecodes.add(part.endNs - part.startNs)
      if (part.what === 'verify') this.plainVerifies.add(part.endNs - part.startNs)
    }
    this.held.makeRoom(this.measure)
  }

  private readonly measure = (event: RequestEvent, others: () => RequestEvent[]): void => {
    const { stalls, excess, causes } = this.stallsOf(event, event.parts.some(canStall) ? others() : [])
    const parts = this.partsOf(event, excess)
    if (!parts) this.unknown.parts++
    if (!hasTimes(event)) this.unknown.times++
    if (!hasTimes(event) && event.task >= 0) this.unknown.ofServer++
    if (event.inferred & Inferred.Call) this.unknown.borders++
    if (event.inferred & Inferred.Parts) this.unknown.inferredParts++
    if (event.inferred & Inferred.TokenCount) this.unknown.tokenCounts++
    const lostNs = stalls.reduce((sum, { lostNs }) => sum + lostNs, 0)
    this.unknown.causesNs += lostNs - causes.reduce((sum, { timeNs }) => sum + timeNs, 0)
    this.take(event, { parts, causes, excessNs: [...excess.values()].reduce((sum, ns) => sum + ns, 0) })
    if (event.parts.length > 0) this.speculation.add(event.parts, (part, i) => this.timeOf(part) - (excess.get(i) ?? 0))
  }

  /** Where a request waits for others; `excess`: by part, what its calls with prompts of others take longer than usual. */
  private stallsOf(event: RequestEvent, others: readonly RequestEvent[]) {
    const stalls: Stall[] = []
    const excess = new Map<number, number>()
    const prompts = promptsOf(others)
    const usual = { decode: this.usualOf(event, 'decode'), verify: this.usualOf(event, 'verify') }
    for (const [i, part] of event.parts.entries()) {
      const { what, startNs, endNs } = part
      if (what === 'stalled') stalls.push({ startNs, endNs, lostNs: endNs - startNs, isWithPrompt: false })
      if (!isBesideMore(part) || !isWithPrompt(part, prompts)) continue
      const usualNs = usual[what === 'verify' ? what : 'decode']
      if (usualNs === null) this.unknown.excess++
      const lostNs = usualNs === null ? 0 : this.timeOf(part) - usualNs
      if (lostNs <= 0) continue
      stalls.push({ startNs, endNs, lostNs, isWithPrompt: true })
      excess.set(i, lostNs)
    }
    return { stalls, excess, causes: causesOf(stalls, others) }
  }

  /** The median time of a call of the request without prompts of others; of few calls, that of all requests. */
  private usualOf({ parts }: RequestEvent, what: 'decode' | 'verify'): number | null {
    const own = new Median()
    for (const part of parts) if (part.what === what && part.othersTokens <= part.others) own.add(this.timeOf(part))
    if (own.count >= PLAIN_MIN) return own.value
    const all = what === 'decode' ? this.plainDecodes : this.plainVerifies
    return all.count >= PLAIN_MIN ? all.value : null
  }

  /** The time of a part without that in which its thread was preempted. */
  private timeOf({ startNs, endNs, call }: RequestPart): number {
    const ns = endNs - startNs
    return call < 0 ? ns : ns - Math.min(this.preempted.of(call), ns)
  }

  /** Undefined where nothing of them is known. */
  private partsOf(event: RequestEvent, excess: ReadonlyMap<number, number>): PartSums | undefined {
    const sums = noParts()
    const { partNs } = durationsOf(event)
    for (const what of REQUEST_PARTS) addPart(sums, keyOfPart(what), partNs(what))
    if (PART_KEYS.every((key) => key === 'other_ns' || sums[key] === null)) return undefined
    if (this.preempted.isKnown) addPart(sums, 'preempted_ns', 0)
    for (const [i, part] of event.parts.entries()) {
      if (part.what === 'stalled') continue
      const lostNs = excess.get(i) ?? 0
      const preemptedNs = part.endNs - part.startNs - this.timeOf(part)
      if (preemptedNs > 0) addPart(sums, 'preempted_ns', preemptedNs)
      if (lostNs > 0) addPart(sums, 'stalled_ns', lostNs)
      addPart(sums, keyOfPart(part.what), -preemptedNs - lostNs)
    }
    return sums
  }

  private take(event: RequestEvent, measured: Measured): void {
    const row = rowOf(event, measured, this.names)
    const { parts } = row
    this.count++
    this.outcomes.of(event.outcome).count++
    const type = this.types.of(event.type)
    type.requests++
    type.latency.add(row.latency_ns)
    type.ttft.add(row.ttft_ns)
    type.tpot.add(row.tpot_ns)
    type.queued.add(parts && sumOf(parts, IN_QUEUE))
    type.stalled.add(parts?.stalled_ns)
    if (parts) addParts(this.parts, parts)
    this.latencyNs += parts ? (row.latency_ns ?? 0) : 0
    this.drafts.drafted += event.draftedTokens
    this.drafts.accepted += event.acceptedTokens
    this.slots.add(event, row)
    this.stalls.add(row, measured.causes)
    this.reuse.add(row)
    if (event.outcome === 'cancelled' || event.outcome === 'error') this.addCancelled(row)
    this.keep(row)
  }

  private addCancelled({ parts, prompt_tokens, reused_tokens, generated_tokens }: RequestRow): void {
    const { cancelled } = this
    cancelled.requests++
    const add = (key: 'time_ns' | 'prompt_tokens' | 'generated_tokens', value: number | null) => {
      if (value !== null) cancelled[key] = (cancelled[key] ?? 0) + value
    }
    add('prompt_tokens', prompt_tokens === null ? null : Math.max(prompt_tokens - (reused_tokens ?? 0), 0))
    add('generated_tokens', generated_tokens)
    const workNs = parts && sumOf(parts, WORK)
    add('time_ns', workNs)
    if (workNs !== null) cancelled.timed++
  }

  private keep(row: RequestRow): void {
    const { slowest } = this
    let at = slowest.length
    while (at > 0 && (slowest[at - 1]!.latency_ns ?? -1) < (row.latency_ns ?? -1)) at--
    if (at < SLOWEST_MAX) slowest.splice(at, 0, row)
    slowest.length = Math.min(slowest.length, SLOWEST_MAX)
    if (!this.wantsRows || (this.count - 1) % this.every !== 0) return
    this.rows.push(row)
    if (this.rows.length <= REQUEST_ROWS_MAX) return
    this.every *= 2
    this.rows.splice(0, Infinity, ...this.rows.filter((_, i) => i % 2 === 0))
  }

  /** Null without requests. `firstNs`: time of the first event. */
  finish(firstNs: number): { readonly figures: RequestFigures; readonly series: RequestSeries } | null {
    this.held.finish(this.measure)
    const { count } = this
    if (count === 0) return null
    const fromFirst = (row: RequestRow): RequestRow => {
      return { ...row, start_ns: row.start_ns === null ? null : row.start_ns - firstNs }
    }
    const types = [...this.types].map(([type, ofType]) => [type, ofType.figures()])
    const figures: RequestFigures = {
      count,
      outcomes: Object.fromEntries(
        OUTCOMES.flatMap((outcome) => (this.outcomes.has(outcome) ? [[outcome, this.outcomes.of(outcome).count]] : [])),
      ),
      by_type: Object.fromEntries(types),
      parts: this.parts,
      latency_ns: this.latencyNs,
      reuse: this.reuse.figures(),
      stalls: this.stalls.figures(),
      drafts: this.draftFigures(),
      cancelled: this.cancelled.requests === 0 ? null : this.cancelled,
      slots: this.slots.figures(),
      slowest: this.slowest.map(fromFirst),
    }
    const rows = this.rows.map(fromFirst).sort((a, b) => a.id - b.id)
    return { figures, series: { count, rows_max: REQUEST_ROWS_MAX, every: this.every, rows } }
  }

  private draftFigures(): DraftFigures | null {
    const { drafted, accepted } = this.drafts
    if (drafted === 0) return null
    return { drafted_tokens: drafted, accepted_tokens: accepted, acceptance_share: accepted / drafted }
  }

  /** What is not known of them; call it after {@link finish}. */
  undetermined(): Undetermined[] {
    const { count, unknown, preempted } = this
    if (count === 0) return []
    const found: Undetermined[] = []
    const add = (isSo: boolean, what: string, why: string, hint?: string) => {
      if (isSo) found.push({ what: `requests.${what}`, why, hint })
    }
    const n = (value: number) => `of ${value} of ${count} request${count === 1 ? '' : 's'}`
    add(unknown.borders > 0, 'slowest', `inferred: the borders ${n(unknown.borders)}, from their tokens`)
    const written = 'from what the server writes of them'
    add(
      unknown.times > 0,
      'slowest',
      `no times ${n(unknown.times)} are in the log: durations are those that the server measured, others are not known`,
      unknown.ofServer > 0 ? 'start the server with --log-timestamps and --log-prefix' : undefined,
    )
    add(unknown.inferredParts > 0, 'parts', `inferred: the parts ${n(unknown.inferredParts)}, ${written}`)
    add(unknown.tokenCounts > 0, 'slowest', `inferred: the numbers of tokens ${n(unknown.tokenCounts)}, ${written}`)
    add(
      unknown.parts > 0,
      'parts',
      `the log does not contain the calls ${n(unknown.parts)}`,
      'record the server with ggml2perfetto record',
    )
    add(!preempted.isKnown, 'parts.preempted_ns', 'the states of the thread that makes the calls are not recorded')
    add(
      unknown.excess > 0,
      'parts.stalled_ns',
      `without ${plural(unknown.excess, 'call')} with prompts of others: there are no others to be compared with`,
    )
    add(
      this.latencyNs > 0 && unknown.causesNs > 0.01 * this.latencyNs,
      'stalls',
      'a part of the stalls is of no other request in the log',
    )
    const { ttft } = this.types.get('completion') ?? {}
    const without = (this.types.get('completion')?.requests ?? 0) - (ttft?.count ?? 0)
    add(without > 0, 'by_type.completion.ttft', `no first token ${n(without)} is recorded`)
    return found
  }
}
