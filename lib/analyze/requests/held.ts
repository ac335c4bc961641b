import { MinTree } from '../../bytes/min-tree.ts'
import { firstIndex } from '../../bytes/search.ts'
import type { RequestEvent } from '../../model/events.ts'
import { activeFromNs } from '../../model/requests/durations.ts'

/** Parts of requests that are held: those of others show for whom a request waited. About 40 MB. */
const PARTS_MAX = 1 << 18
/** A request without its parts takes as much memory as so many. */
const REQUEST_PARTS = 4

interface Held {
  readonly event: RequestEvent
  readonly activeNs: number
  isDone: boolean
}

/** Requests that are measured later, as others may have been worked on meanwhile; those that ended long ago are dropped. */
export class HeldRequests {
  /** In the order of their ends from the last {@link measure} on. */
  private readonly held: Held[] = []
  private parts = 0

  add(event: RequestEvent): void {
    this.held.push({ event, activeNs: activeFromNs(event), isDone: false })
    this.parts += REQUEST_PARTS + event.parts.length
  }

  /** Too many are held: measures the older half, and drops the older half of that. */
  makeRoom(measure: (event: RequestEvent, others: () => RequestEvent[]) => void): void {
    if (this.parts <= PARTS_MAX) return
    const { held } = this
    this.measure(Math.ceil(held.length / 2), measure)
    const dropped = held.splice(0, Math.ceil(held.length / 4))
    for (const { event } of dropped) this.parts -= REQUEST_PARTS + event.parts.length
  }

  /** Measures all. `others`: requests that were worked on while this one was, the last to end first. */
  finish(measure: (event: RequestEvent, others: () => RequestEvent[]) => void): void {
    this.measure(this.held.length, measure)
  }

  private measure(count: number, measure: (event: RequestEvent, others: () => RequestEvent[]) => void): void {
    const { held } = this
    held.sort((a, b) => a.event.endNs - b.event.endNs)
    const starts = new MinTree()
    for (const [i, { activeNs }] of held.entries()) starts.set(i, activeNs)
    for (const measured of held.slice(0, count)) {
      if (!measured.isDone) measure(measured.event, () => this.othersOf(measured, starts))
      measured.isDone = true
    }
  }

  private othersOf({ event, activeNs }: Held, starts: MinTree): RequestEvent[] {
    const { held } = this
    const found: RequestEvent[] = []
    const from = firstIndex(0, held.length, (i) => held[i]!.event.endNs > activeNs)
    for (let i = starts.firstUpTo(event.endNs, from); i >= 0; i = starts.firstUpTo(event.endNs, i + 1)) {
      const other = held[i]!
      if (other.event !== event && other.activeNs < event.endNs) found.push(other.event)
    }
    return found.reverse()
  }
}
