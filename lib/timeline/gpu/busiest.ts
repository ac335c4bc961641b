import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'

/** Pieces of work that are held of a queue; of more, neighbours become one. */
const HELD_MAX = 1 << 14
/** The smallest gap that is closed then, in ns. */
const GAP_NS_MIN = 1000

/** The work of a queue, in little memory: pieces, or stretches in which there are only short gaps. */
class Stretches {
  /** The time in which the queue worked. */
  busyNs = 0
  private pieces: Stretch[] = []
  private gapNs = GAP_NS_MIN / 4

  /** `title`: the name of the queue. */
  constructor(readonly title: string) {}

  add(startNs: number, endNs: number, name: number): void {
    this.busyNs += endNs - startNs
    this.pieces.push({ startNs, endNs, name, count: 1 })
    while (this.pieces.length > HELD_MAX) this.merge()
  }

  /** In order of time, without overlaps. */
  inOrder(): readonly Stretch[] {
    this.close(0)
    return this.pieces
  }

  private merge(): void {
    this.gapNs *= 4
    this.close(this.gapNs)
    // Half of it is to be free afterwards.
    if (this.pieces.length > HELD_MAX / 2) this.merge()
  }

  /** Makes one of neighbours between which is less than a gap. */
  private close(gapNs: number): void {
    const kept: Stretch[] = []
    for (const piece of this.pieces.sort((a, b) => a.startNs - b.startNs)) {
      const last = kept.at(-1)
      if (!last || piece.startNs >= last.endNs + gapNs) kept.push(piece)
      else {
        last.endNs = Math.max(last.endNs, piece.endNs)
        last.count += piece.count
      }
    }
    this.pieces = kept
  }
}

interface Stretch {
  readonly startNs: number
  endNs: number
  /** Of the first piece. */
  readonly name: number
  count: number
}

/** The row GPU of a run: the work of its busiest queue, where the viewer draws the work of all queues in another group. */
export class BusiestQueue {
  private readonly queues = new Map<number, Stretches>()

  constructor(private readonly context: TrackContext) {}

  add(queue: { readonly id: number; readonly name: string }, startNs: number, endNs: number, name: number): void {
    let stretches = this.queues.get(queue.id)
    if (!stretches) {
      stretches = new Stretches(queue.name)
      this.queues.set(queue.id, stretches)
    }
    stretches.add(startNs, endNs, name)
  }

  /** Draws the row. */
  finish(): void {
    const [busiest] = [...this.queues.values()].sort((a, b) => b.busyNs - a.busyNs)
    if (!busiest) return
    const { tracks, make } = this.context
    const rows = tracks.lanes('gpuWork', { queue: busiest.title })
    for (const { startNs, endNs, name, count } of busiest.inOrder()) {
      const text = count === 1 ? name : make.names.id(`${count} pieces of work`)
      rows.place(
        startNs,
        endNs,
        labelOf(text, 'gpu_busy', count === 1 ? undefined : make.shown([make.int('count', count)])),
      )
    }
  }
}
