import { noteOthers } from '../model/batch.ts'
import { type Wrong, wrongAmount } from '../model/bounds.ts'
import { EVENT_BOUNDS, type IssueEvent, lastTimeOf, type TraceEvent } from '../model/events.ts'
import type { GpuEvent } from '../model/gpu-events.ts'
import { isSound } from '../model/graph-events.ts'
import { issueOf } from '../model/issues.ts'
import { placeSwitch, SwitchOrder } from './order.ts'

/** Issues of one input. */
const ISSUES_MAX = 1000
/** Events of a batch have no position. */
const NOWHERE = { byte: 0 }

/** A piece of work of a stream. */
interface Piece {
  readonly startNs: number
  readonly endNs: number
  readonly correlation: number
  isReported: boolean
}

/** The work of a stream: the piece before, and the one that ended last. */
interface Latest {
  before: Piece
  last: Piece
}

/**
 * Finds work within other work of its stream: a stream runs one piece after the other, so that one of the two has a wrong end. Pieces of
 * graphs and of queues of other APIs run at the same time, and are not looked at; nor are pieces that overlap in a part only, as kernels of
 * programmatic dependent launch do. Each piece is compared with the one before it in the file, and with the one that ended last.
 */
class StreamWork {
  private readonly streams = new Map<string, Latest>()
  private issues = 0

  /** The issue of a piece, if any. */
  follow(event: GpuEvent): IssueEvent | undefined {
    const { startNs, endNs, correlation, device, context, stream, pid } = event
    if (stream < 0 || event.queue !== undefined || event.what === 'graph' || (event.count ?? 1) > 1 || event.node)
      return undefined
    if (isOfGraph(event)) return undefined
    const key = `${pid} ${device} ${context} ${stream}`
    const piece = { startNs, endNs, correlation, isReported: false }
    const latest = this.streams.get(key)
    if (!latest) {
      this.streams.set(key, { before: piece, last: piece })
      return undefined
    }
    const outer = [latest.last, latest.before].find((other) => contains(other, piece))
    const pair = outer ? [outer, piece] : contains(piece, latest.before) ? [piece, latest.before] : undefined
    latest.before = piece
    if (endNs >= latest.last.endNs) latest.last = piece
    return pair && this.report(`stream ${stream} of device ${device}`, pair[0]!, pair[1]!)
  }

  private report(where: string, outer: Piece, inner: Piece): IssueEvent | undefined {
    if (outer.isReported || this.issues++ >= ISSUES_MAX) return undefined
    outer.isReported = true
    const found = `${where}: work from ${outer.startNs} to ${outer.endNs} ns contains work from ${inner.startNs} to ${inner.endNs} ns`
    return issueOf(
      'overlapping-work',
      `expected one piece of work after the other, found ${found}`,
      NOWHERE,
      outer.startNs,
    )
  }
}

/** Pieces of one launch may run at the same time. */
function contains(outer: Piece, inner: Piece): boolean {
  const isOfOneLaunch = outer.correlation >= 0 && outer.correlation === inner.correlation
  return !isOfOneLaunch && inner.endNs > inner.startNs && outer.startNs <= inner.startNs && outer.endNs >= inner.endNs
}

const isOfGraph = ({ facts }: GpuEvent) => !Array.isArray(facts) && 'graph_node' in facts

/**
 * Checks every event of every input, between the readers and all passes. In checked events, times and the numbers that
 * identify threads, CPUs, tensors and launches are in their ranges (model/limits.ts), and the switches of each CPU are in order.
 * Work within other work of its stream is an issue, and stays.
 * A wrong number becomes -1 where -1 means unknown; otherwise the event is left out. Both are issues at the last valid time.
 */
export class EventBounds {
  private lastNs = 0
  private readonly order = new SwitchOrder()
  private readonly streams = new StreamWork()

  /** Returns the batch itself if all of its events are valid. */
  check(batch: TraceEvent[]): TraceEvent[] {
    let checked: TraceEvent[] | undefined
    const others: number[] = []
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i]!
      if (event.kind === 'operator') {
        if (!isSound(event)) checked = this.checkOne(event, i, batch, checked)
        else if (checked) checked.push(event)
        continue
      }
      others.push(i)
      checked = this.checkOne(event, i, batch, checked)
    }
    const sound = checked ?? batch
    if (!checked) noteOthers(batch, others)
    this.lastNs = this.lastOf(sound)
    return sound
  }

  /** Checks one event. Returns all checked events so far, or undefined while they are the batch itself. */
  private checkOne(
    event: TraceEvent,
    at: number,
    batch: TraceEvent[],
    before?: TraceEvent[],
  ): TraceEvent[] | undefined {
    const wrong = wrongIn(event)
    const issue = wrong ? undefined : this.orderIssue(event)
    const checked = before ?? (wrong || issue ? batch.slice(0, at) : undefined)
    if (wrong) this.mend(event, wrong, checked!)
    else if (issue && event.kind === 'switch') placeSwitch(event, issue, checked!)
    else if (issue) checked!.push(event, issue)
    else checked?.push(event)
    return checked
  }

  private orderIssue(event: TraceEvent): IssueEvent | undefined {
    if (event.kind === 'switch') return this.order.follow(event)
    return event.kind === 'gpu' ? this.streams.follow(event) : undefined
  }

  private mend(event: TraceEvent, first: Wrong, into: TraceEvent[]): void {
    const atNs = this.lastOf(into)
    if (event.kind === 'issue') {
      into.push({ ...event, atNs })
      return
    }
    const issues: IssueEvent[] = []
    let mended = event
    for (let wrong: Wrong | undefined = first; wrong; wrong = wrongIn(mended)) {
      const { code, field, expected, found, instead } = wrong
      const done = instead ? 'not used' : 'left out'
      const detail = `${event.kind}: expected ${field} ${expected}, found ${found}; ${done}`
      issues.push(issueOf(code, detail, { byte: 0 }, atNs))
      if (!instead) {
        into.push(...issues)
        return
      }
      mended = { ...mended, ...instead }
    }
    if (mended.kind === 'switch') placeSwitch(mended, this.order.follow(mended), into)
    else into.push(mended)
    into.push(...issues)
  }

  /** The time of the last event that has one. */
  private lastOf(events: readonly TraceEvent[]): number {
    for (let i = events.length - 1; i >= 0; i--) {
      const ns = lastTimeOf(events[i]!)
      if (ns !== undefined) return ns
    }
    return this.lastNs
  }
}

const BOUNDS: ReadonlyMap<string, unknown> = new Map(Object.entries(EVENT_BOUNDS))

/** The first wrong field. Readers of programs may have events of other kinds. */
function wrongIn(event: TraceEvent): Wrong | undefined {
  return ((BOUNDS.get(event.kind) ?? wrongAmount) as typeof wrongAmount)(event)
}
