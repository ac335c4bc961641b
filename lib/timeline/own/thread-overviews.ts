import { DefaultMap } from '../../model/default-map.ts'
import type { OwnThread } from '../../model/own-events.ts'
import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'

/** Levels of a thread's slices that are drawn. */
const LEVELS = 3
/** Slices that are held of a thread; of more, the longest. */
const HELD_MAX = 1 << 12
/** Threads with a row: those that were in a slice longest. */
const ROWS_MAX = 4
/** The shortest slice that is held, in ns, where there are more. */
const SHORTEST_NS = 1000

interface Held {
  readonly startNs: number
  readonly endNs: number
  readonly name: number
}

/** The outer slices of a thread, in little memory. */
class Outer {
  /** Time in outermost slices. */
  busyNs = 0
  thread: OwnThread | undefined
  private slices: Held[] = []
  /** Ends of the open slices, the innermost last. */
  private readonly ends: number[] = []
  private lastNs = -Infinity
  private shortestNs = 0

  /** Slices come in order of their starts, outer before inner. Those that cross others, or come late, are not held. */
  add(slice: Held): void {
    const { startNs, endNs } = slice
    if (startNs < this.lastNs) return
    this.lastNs = startNs
    const { ends } = this
    while (ends.length > 0 && ends.at(-1)! <= startNs) ends.pop()
    if (endNs > (ends.at(-1) ?? Infinity)) return
    ends.push(endNs)
    if (ends.length === 1) this.busyNs += endNs - startNs
    if (ends.length > LEVELS || endNs - startNs < this.shortestNs) return
    this.slices.push(slice)
    while (this.slices.length > HELD_MAX) this.thin()
  }

  get held(): readonly Held[] {
    return this.slices
  }

  private thin(): void {
    this.shortestNs = Math.max(SHORTEST_NS, 2 * this.shortestNs)
    this.slices = this.slices.filter(({ startNs, endNs }) => endNs - startNs >= this.shortestNs)
  }
}

/**
 * What threads did, in rows of the run. Viewers draw the tracks of threads in the groups of their processes, and close these where there is
 * any other group.
 */
export class ThreadOverviews {
  private readonly threads = new DefaultMap<number, Outer>(() => new Outer())

  constructor(private readonly context: TrackContext) {}

  /** A slice of a thread's track. */
  add(track: number, thread: OwnThread, slice: Held): void {
    if (!this.context.tracks.isOpen) return
    const outer = this.threads.of(track)
    outer.thread = thread
    outer.add(slice)
  }

  /** Draws the rows, unless the viewer opens the only group of the trace. */
  finish(): void {
    const { tracks, tree } = this.context
    if (tree.roots < 2) return
    const busiest = [...this.threads.values()].sort((a, b) => b.busyNs - a.busyNs).slice(0, ROWS_MAX)
    for (const [nth, { thread, held }] of busiest.entries()) {
      const rows = tracks.nested('threadOverview', { thread: thread!.name, tid: thread!.tid, nth })
      for (const { startNs, endNs, name } of held) rows.place(startNs, endNs, labelOf(name, 'thread_overview'))
      rows.finish()
    }
  }
}
