import type { TraceEvent } from '../../model/events.ts'
import type { OwnSliceEvent } from '../../model/own-events.ts'

/** Slices that are held back at most, of all rows together; and of a row whose slices have always come in order. */
const HELD_MAX = 1 << 16
const HELD_IN_ORDER_MAX = 1 << 10

/** A slice on its way. */
export interface HeldSlice extends OwnSliceEvent {
  /** Of two that look the same, the one with the lower number is the outer one. */
  readonly order: number
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** The end of an arrow, which belongs to the slice around it, or to the next one. */
export interface ArrowEnd {
  readonly atNs: number
  readonly id: number
  readonly what: 'start' | 'step' | 'end'
  /** It belongs to the slice around it, where there is one. */
  readonly isAround: boolean
}

/** Slices of one row, and arrows that end there. */
class HeldRow {
  slices: HeldSlice[] = []
  arrows: ArrowEnd[] = []
  private isInOrder = true
  private wasInOrder = true

  add(slice: HeldSlice): void {
    const last = this.slices.at(-1)
    if (last && compare(last, slice) > 0) {
      this.isInOrder = false
      this.wasInOrder = false
    }
    this.slices.push(slice)
  }

  get isFull(): boolean {
    return this.wasInOrder && this.slices.length > HELD_IN_ORDER_MAX
  }

  /** Takes the first `count` slices in order out, with their arrows. */
  take(count: number): HeldSlice[] {
    if (!this.isInOrder) this.slices.sort(compare)
    this.isInOrder = true
    const taken = count >= this.slices.length ? this.slices : this.slices.slice(0, count)
    this.slices = this.slices.slice(taken.length)
    if (this.arrows.length > 0) this.join(taken)
    return taken
  }

  private join(taken: HeldSlice[]): void {
    const rest = this.slices[0]?.startNs ?? Infinity
    const due = this.arrows.filter(({ atNs }) => atNs < rest).sort((a, b) => a.atNs - b.atNs)
    this.arrows = this.arrows.filter(({ atNs }) => atNs >= rest)
    const open: HeldSlice[] = []
    let next = 0
    for (const arrow of due) {
      for (; next < taken.length && taken[next]!.startNs <= arrow.atNs; next++) {
        closeBefore(open, taken[next]!.startNs)
        open.push(taken[next]!)
      }
      closeBefore(open, arrow.atNs)
      const around = open.at(-1)
      const slice = around && (arrow.isAround || around.startNs === arrow.atNs) ? around : (taken[next] ?? around)
      if (slice) attach(slice, arrow)
    }
  }
}

/**
 * Brings the slices of each row in order, outer before inner: tracers write them when they begin, when they end, or thread
 * by thread. So many are held back, and the earlier half of each row goes on when there are more. What comes later than
 * that is passed on as it comes.
 */
export class Nesting {
  private readonly rows = new Map<number, HeldRow>()
  private held = 0

  /** `pass` gets the slices of one row after the other. */
  constructor(private readonly pass: (slices: readonly TraceEvent[]) => void) {}

  add(slice: HeldSlice): void {
    const row = this.row(slice.track)
    row.add(slice)
    this.held++
    if (row.isFull) this.releaseRow(row, 0.5)
    else if (this.held > HELD_MAX) this.release(0.5)
  }

  /** Adds the end of an arrow on a row. */
  arrow(track: number, arrow: ArrowEnd): void {
    this.row(track).arrows.push(arrow)
    if (++this.held > HELD_MAX) this.release(0.5)
  }

  finish(): void {
    this.release(1)
  }

  private release(share: number): void {
    for (const row of this.rows.values()) this.releaseRow(row, share)
  }

  private releaseRow(row: HeldRow, share: number): void {
    this.held -= row.slices.length + row.arrows.length
    const taken = row.take(Math.ceil(row.slices.length * share))
    if (taken.length > 0) this.pass(taken)
    else row.arrows = []
    this.held += row.slices.length + row.arrows.length
  }

  private row(track: number): HeldRow {
    let row = this.rows.get(track)
    if (!row) {
      row = new HeldRow()
      this.rows.set(track, row)
    }
    return row
  }
}

function compare(a: HeldSlice, b: HeldSlice): number {
  return a.startNs - b.startNs || b.endNs - a.endNs || a.order - b.order
}

function closeBefore(open: HeldSlice[], atNs: number): void {
  while (open.length > 0 && open.at(-1)!.endNs < atNs) open.pop()
}

function attach(slice: HeldSlice, { id, what }: ArrowEnd): void {
  const key = what === 'end' ? 'flowEnds' : 'flows'
  slice[key] = [...(slice[key] ?? []), id]
}
