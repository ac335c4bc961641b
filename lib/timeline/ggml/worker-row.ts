import type { GraphRun, StepOfRun } from '../../analyze/graph/runs.ts'
import type { OperatorEvent } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { Writer } from '../../sink/writer.ts'
import type { Lanes } from '../tracks.ts'
import { BARRIER_NS_MIN, type Barriers, FIRST, TIED } from './barriers.ts'
import type { LateWaits } from './late-waits.ts'
import type { Wait } from './waits.ts'

/** How waits of all workers are drawn. */
export interface WaitDrawing {
  readonly barriers: Barriers
  /** Waits whose last arrival is not known yet. */
  readonly late: LateWaits
  /** Counts waits that are too short to be drawn; undefined: all are drawn. */
  readonly short: { count: number; sumNs: number } | undefined
}

/** Draws operators and waits of one worker, in the rows that its lanes assign. */
export class WorkerRows {
  /** By track. */
  private readonly rows = new Map<number, WorkerRow>()
  /** The row of the last slice. */
  private last: WorkerRow | undefined

  /** `tid`: the thread of the first operator. */
  constructor(
    readonly lanes: Lanes,
    readonly tid: number,
    private readonly writer: Writer,
    private readonly waits: WaitDrawing,
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
    const row = new WorkerRow(track, this.writer, this.waits)
    this.rows.set(track, row)
    return row
  }
}

/**
 * A row of operators and waits. A short wait that ends where the next operator begins is not drawn: it is the gap between the two, as
 * exact as a slice. The first wait of a row is always drawn, and says so; {@link begin} finds gaps that are no wait.
 */
class WorkerRow {
  /** The call of the last operator, and its thread. */
  call = -1
  tid = -1
  private isFirst = true
  /** The end of the last slice; -Infinity: its gap to the next one is no pause to be marked. */
  private untilNs = -Infinity
  /** The wait after the last operator, until the next one begins. */
  private isHeld = false
  private fromNs = 0
  private toNs = 0
  private inferred = 0
  private wait: Wait | undefined
  /** The step of the operator; valid while the run has this serial. */
  private run: GraphRun | undefined
  private serial = -1
  private step = 0

  constructor(
    readonly track: number,
    private readonly writer: Writer,
    private readonly waits: WaitDrawing,
  ) {}

  /** An operator begins. Is it after a pause that has the length of a short wait? */
  begin({ startNs }: OperatorEvent): boolean {
    const { short } = this.waits
    if (this.isHeld) {
      if (this.toNs !== startNs) this.finish()
      else if (short && !this.isFirst && this.toNs - this.fromNs < BARRIER_NS_MIN) {
        this.isHeld = false
        short.count++
        short.sumNs += this.toNs - this.fromNs
        return false
      } else this.draw(true)
    }
    return !!short && !this.isFirst && startNs > this.untilNs && startNs - this.untilNs < BARRIER_NS_MIN
  }

  /**
   * Draws an operator, and holds the wait after it, if there is one. `extra`: arguments of its own, in place of the label's; `at`: its step, by
   * which the last arrival is found later.
   */
  place(event: OperatorEvent, label: Label, extra: Label['extra'], wait: Wait | undefined, at?: StepOfRun): void {
    const { startNs, endNs, waitEndNs } = event
    this.writer.slice(this.track, startNs, endNs, label, extra)
    this.untilNs = endNs
    if (waitEndNs <= endNs) return
    if (at && at.run.serial !== this.serial) this.waits.late.reach(event.worker, at.run)
    this.isHeld = true
    this.fromNs = endNs
    this.toNs = waitEndNs
    this.inferred = event.inferred
    this.wait = wait
    this.run = at?.run
    if (at) {
      this.serial = at.run.serial
      this.step = at.step
    }
  }

  /** Draws the wait that is held, if any. */
  finish(): void {
    if (this.isHeld) this.draw(false)
  }

  private draw(isTied: boolean): void {
    const { track, fromNs, toNs, inferred, run, wait } = this
    const { barriers, late, short } = this.waits
    const flags = (isTied ? TIED : 0) | (this.isFirst && short ? FIRST : 0)
    if (run && run.serial === this.serial) late.hold(track, fromNs, toNs, inferred, flags, run, this.step)
    else barriers.place(track, fromNs, toNs, inferred, flags, wait?.worker ?? -1, wait?.lastNs ?? -1, wait?.arrowsIn)
    this.isHeld = false
    this.isFirst = !short
    this.untilNs = toNs
  }
}
