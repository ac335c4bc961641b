import type { GpuQueue } from '../../sink/writer.ts'
import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'

/** Pieces of work that are held of a queue; of more, neighbours become one. */
const HELD_MAX = 1 << 14
/** The smallest gap that is closed then, in ns. */
const GAP_NS_MIN = 1000

type Queue = Pick<GpuQueue, 'id' | 'name' | 'gpu'>

/** The work of a queue, in little memory: pieces, or stretches in which there are only short gaps. */
class Stretches {
  /** The time in which the queue worked. */
  busyNs = 0
  private pieces: Stretch[] = []
  private gapNs = GAP_NS_MIN / 4

  constructor(readonly queue: Queue) {}

  add(startNs: number, endNs: number, name: number): void {
    this.busyNs += endNs - startNs
    this.pieces.push({ startNs, endNs, name, count: 1 })
    // Half of it is to be free afterwards.
    if (this.pieces.length > HELD_MAX) this.merge(HELD_MAX / 2)
  }

  /** In order of time, without overlaps, at most `max`. */
  inOrder(max: number): readonly Stretch[] {
    this.close(0)
    if (this.pieces.length > max) this.merge(max)
    return this.pieces
  }

  private merge(max: number): void {
    this.gapNs *= 4
    this.close(this.gapNs)
    if (this.pieces.length > max) this.merge(max)
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

/** Queues with a row, if they worked for at least this share of the time of the busiest one. */
const ROWS_MAX = 4
const SHARE_MIN = 0.01
/** Pieces of each further row: as many as a page has pixels. */
const FURTHER_MAX = 1 << 10

/** The rows GPU of a run: the work of its busiest queues, where the viewer draws the work of all queues in another group. */
export class BusiestQueues {
  private readonly queues = new Map<number, Stretches>()

  constructor(private readonly context: TrackContext) {}

  add(queue: Queue, startNs: number, endNs: number, name: number): void {
    let stretches = this.queues.get(queue.id)
    if (!stretches) {
      stretches = new Stretches(queue)
      this.queues.set(queue.id, stretches)
    }
    stretches.add(startNs, endNs, name)
  }

  /** Draws the rows. */
  finish(): void {
    const queues = [...this.queues.values()].sort((a, b) => b.busyNs - a.busyNs)
    const leastNs = SHARE_MIN * (queues[0]?.busyNs ?? 0)
    const shown = queues.filter(({ busyNs }) => busyNs >= leastNs).slice(0, ROWS_MAX)
    for (const [nth, stretches] of shown.entries()) this.draw(stretches, nth)
  }

  private draw(stretches: Stretches, nth: number): void {
    const { tracks, make } = this.context
    const { name, gpu } = stretches.queue
    const rows = tracks.lanes('gpuWork', { device: gpu, stream: name, nth })
    for (const { startNs, endNs, name, count } of stretches.inOrder(nth === 0 ? HELD_MAX : FURTHER_MAX)) {
      const text = count === 1 ? name : make.names.id(`${count} pieces of work`)
      const extra = count === 1 ? undefined : make.shown([make.int('count', count)])
      rows.place(startNs, endNs, labelOf(text, 'gpu_busy', extra))
    }
  }
}
