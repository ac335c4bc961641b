import type { Arg } from '../../model/args.ts'
import type { OperatorEvent } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { Writer } from '../../sink/writer.ts'
import type { ArgMaker } from '../labels.ts'
import type { Lanes } from '../tracks.ts'

/** Shorter waits at barriers are not drawn, unless all are. */
export const BARRIER_NS_MIN = 1000

/** Counts waits that are not drawn. */
export class ShortWaits {
  count = 0
  sumNs = 0
  /** Arguments: of the first wait of a row, and of an operator after a pause that is as short as a wait. */
  readonly drawnFrom: readonly Arg[]
  readonly afterPause: Arg

  constructor(make: ArgMaker) {
    this.drawnFrom = [make.int('drawn_from_ns', BARRIER_NS_MIN)]
    this.afterPause = make.word('gap_before', 'pause')
  }
}

/** Draws operators and waits of one worker, in the rows that its lanes assign. */
export class WorkerRows {
  /** By track. */
  private readonly rows = new Map<number, WorkerRow>()
  /** The row of the last slice. */
  private last: WorkerRow | undefined

  /** `short` counts what is not drawn; without it, all waits are drawn. */
  constructor(
    readonly lanes: Lanes,
    private readonly writer: Writer,
    private readonly short: ShortWaits | undefined,
  ) {}

  /** The row of an operator and the wait after it; undefined where there are too many rows. */
  take({ startNs, waitEndNs }: OperatorEvent): WorkerRow | undefined {
    const track = this.lanes.take(startNs, waitEndNs)
    if (track === undefined) return undefined
    if (this.last?.track !== track) this.last = this.rowOf(track)
    return this.last
  }

  /** Draws what is held, before other slices of the rows. */
  finish(): void {
    for (const row of this.rows.values()) row.finish()
  }

  private rowOf(track: number): WorkerRow {
    const known = this.rows.get(track)
    if (known) return known
    const row = new WorkerRow(track, this.writer, this.short)
    this.rows.set(track, row)
    return row
  }
}

/**
 * A row of operators and waits. A short wait that ends where the next operator begins is not drawn: it is the gap between the two, as
 * exact as a slice. The first wait of a row is always drawn, and says so; {@link begin} finds gaps that are no wait.
 */
export class WorkerRow {
  /** The call of the last operator. */
  call = -1
  private isFirst = true
  /** The end of the last slice; -Infinity: its gap to the next one is no pause to be marked. */
  private untilNs = -Infinity
  /** A wait that is held until the next operator begins. */
  private held: Label | undefined
  private fromNs = 0
  private toNs = 0

  constructor(
    readonly track: number,
    private readonly writer: Writer,
    private readonly short: ShortWaits | undefined,
  ) {}

  /** An operator begins. Is it after a pause that has the length of a short wait? */
  begin({ startNs }: OperatorEvent): boolean {
    if (!this.held) return !this.isFirst && startNs > this.untilNs && startNs - this.untilNs < BARRIER_NS_MIN
    if (this.toNs === startNs) {
      this.held = undefined
      this.short!.count++
      this.short!.sumNs += this.toNs - this.fromNs
    } else this.finish()
    return false
  }

  /** Draws an operator, and the wait after it, if there is one. `extra`: arguments of its own, in place of the label's. */
  place({ startNs, endNs, waitEndNs }: OperatorEvent, label: Label, extra: Label['extra'], wait: Label): void {
    this.writer.slice(this.track, startNs, endNs, label, extra)
    this.untilNs = endNs
    if (waitEndNs <= endNs) return
    this.fromNs = endNs
    this.toNs = waitEndNs
    this.held = wait
    if (!this.short || this.isFirst || waitEndNs - endNs >= BARRIER_NS_MIN) this.finish()
  }

  /** Draws the wait that is held, if any. */
  finish(): void {
    if (this.held) {
      const extra = this.isFirst && this.short ? this.short.drawnFrom : this.held.extra
      this.writer.slice(this.track, this.fromNs, this.toNs, this.held, extra)
      this.held = undefined
      this.isFirst = !this.short
    }
    this.untilNs = -Infinity
  }
}
