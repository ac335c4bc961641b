import { type Wrong, wrongAmount } from '../model/bounds.ts'
import { EVENT_BOUNDS, type IssueEvent, lastTimeOf, type TraceEvent } from '../model/events.ts'
import { isSound } from '../model/graph-events.ts'
import { issueOf } from '../model/issues.ts'
import { placeSwitch, SwitchOrder } from './order.ts'
import { StreamWork } from './stream-work.ts'

/**
 * Checks every event of every input, between the readers and all passes. In checked events, times and the numbers that
 * identify threads, CPUs, tensors and launches are in their ranges (model/limits.ts), and the switches of each CPU are in order.
 * Work within other work of its stream is an issue, and stays.
 * A wrong number becomes -1 where -1 means unknown; otherwise the event is left out. Both are issues at the last valid time.
 */
export class EventBounds {
  /** Places of the events of the last batch that are no operators: most events are, and the next stages need only the others. */
  others: number[] = []
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
    this.others = checked ? othersIn(checked) : others
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

/** Places of the events that are no operators. */
export function othersIn(batch: readonly TraceEvent[]): number[] {
  return batch.flatMap(({ kind }, i) => (kind === 'operator' ? [] : [i]))
}

const BOUNDS: ReadonlyMap<string, unknown> = new Map(Object.entries(EVENT_BOUNDS))

/** The first wrong field. Readers of programs may have events of other kinds. */
function wrongIn(event: TraceEvent): Wrong | undefined {
  return ((BOUNDS.get(event.kind) ?? wrongAmount) as typeof wrongAmount)(event)
}
