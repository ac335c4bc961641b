import { MinTree } from '../../bytes/min-tree.ts'
import { firstIndex } from '../../bytes/search.ts'
import type { RequestEvent } from '../../model/events.ts'
import { RequestColumns } from './request-columns.ts'

/** Parts of requests that are held: those of others show for whom a request waited. About 16 MB. */
const PARTS_MAX = 1 << 18
/** A request without its parts counts as so many. */
const REQUEST_PARTS = 4

/** Measures a request. `others`: requests that were worked on while it was, the last to end first. */
type Measure = (event: RequestEvent, others: () => RequestEvent[]) => void

/** Requests that are measured later, as others may have been worked on meanwhile; those that ended long ago are dropped. */
export class HeldRequests {
  private readonly rows = new RequestColumns()
  /** By row: is it measured? */
  private isDone: boolean[] = []

  add(event: RequestEvent): void {
    this.rows.add(event)
    this.isDone.push(false)
  }

  /** Too many are held: measures the older half, and drops the older half of that. */
  makeRoom(measure: Measure): void {
    const { count, parts } = this.rows
    if (count * REQUEST_PARTS + parts <= PARTS_MAX) return
    const kept = this.measure(Math.ceil(count / 2), measure)
      .subarray(Math.ceil(count / 4))
      .sort()
    this.rows.keep(kept)
    this.isDone = Array.from(kept, (row) => this.isDone[row]!)
  }

  /** Measures all. */
  finish(measure: Measure): void {
    this.measure(this.rows.count, measure)
  }

  /** Measures the first so many; returns all rows in the order of their ends. */
  private measure(count: number, measure: Measure): Uint32Array {
    const { rows, isDone } = this
    const order = Uint32Array.from({ length: rows.count }, (_, row) => row)
    order.sort((a, b) => rows.endNs(a) - rows.endNs(b) || a - b)
    const starts = new MinTree()
    for (const [place, row] of order.entries()) starts.set(place, rows.activeNs(row))
    for (const row of order.subarray(0, count)) {
      if (!isDone[row]) measure(rows.at(row), () => this.othersOf(row, order, starts))
      isDone[row] = true
    }
    return order
  }

  private othersOf(row: number, order: Uint32Array, starts: MinTree): RequestEvent[] {
    const { rows } = this
    const [activeNs, endNs] = [rows.activeNs(row), rows.endNs(row)]
    const found: RequestEvent[] = []
    const from = firstIndex(0, order.length, (place) => rows.endNs(order[place]!) > activeNs)
    for (let place = starts.firstUpTo(endNs, from); place >= 0; place = starts.firstUpTo(endNs, place + 1)) {
      const other = order[place]!
      if (other !== row && rows.activeNs(other) < endNs) found.push(rows.at(other))
    }
    return found.reverse()
  }
}
