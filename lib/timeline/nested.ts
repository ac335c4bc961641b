import type { Label } from '../sink/label.ts'
import type { Writer } from '../sink/writer.ts'
import { FurtherRows, SEARCHED_ROWS_MAX } from './further-rows.ts'

/** Perfetto never ends slices that are nested deeper on a track. */
export const DEPTH_MAX = 512

interface Row {
  readonly track: number
  /** Ends of the open slices, the innermost last. */
  readonly ends: number[]
  lastNs: number
}

/**
 * Rows of slices that come in order of their starts, outer before inner, and nest by time. A slice that would cross another one,
 * comes late, or is nested too deep, is placed in a further row: none is cut; see {@link FurtherRows}. In rows after the first {@link SEARCHED_ROWS_MAX}, slices do
 * not nest.
 */
export class NestedRows {
  private readonly rows: Row[] = []
  private further: FurtherRows | undefined

  /** `add` defines the n-th row (from 0) and returns its track; `leaveOut`: see {@link FurtherRows}. */
  constructor(
    private readonly writer: Writer,
    private readonly add: (row: number) => number,
    private readonly leaveOut: () => void,
  ) {}

  place(startNs: number, endNs: number, label: Label): void {
    const row = this.rowFor(startNs, endNs)
    if (row) {
      this.writer.begin(row.track, startNs, label)
      row.ends.push(endNs)
      return
    }
    const track = this.further!.place(startNs, endNs)
    if (track === undefined) return
    this.writer.slice(track, startNs, endNs, label)
  }

  instant(atNs: number, label: Label): void {
    const track = this.rowFor(atNs, atNs)?.track ?? this.further!.place(atNs, atNs)
    if (track !== undefined) this.writer.instant(track, atNs, label)
  }

  /** Ends all open slices. */
  finish(): void {
    for (const row of this.rows) this.close(row, Infinity)
  }

  /** Undefined: it is for a further row. */
  private rowFor(startNs: number, endNs: number): Row | undefined {
    for (const row of this.rows) {
      if (startNs < row.lastNs) continue
      this.close(row, startNs)
      if (endNs > (row.ends.at(-1) ?? Infinity) || row.ends.length >= DEPTH_MAX) continue
      row.lastNs = startNs
      return row
    }
    if (this.rows.length === SEARCHED_ROWS_MAX) {
      this.further ??= new FurtherRows(this.add, this.leaveOut)
      return undefined
    }
    const row = { track: this.add(this.rows.length), ends: [], lastNs: startNs }
    this.rows.push(row)
    return row
  }

  private close(row: Row, untilNs: number): void {
    for (let end = row.ends.at(-1); end !== undefined && end <= untilNs; end = row.ends.at(-1)) {
      this.writer.end(row.track, end)
      row.ends.pop()
    }
  }
}

/** The open slices of a thread, which begin and end one by one. Those that are nested too deep for a track are in a further row. */
export class OpenSlices {
  depth = 0
  private readonly tracks: number[] = []

  /** `add` defines the n-th row (from 0) and returns its track. */
  constructor(
    private readonly writer: Writer,
    private readonly add: (row: number) => number,
  ) {}

  begin(atNs: number, label: Label): void {
    this.writer.begin(this.trackAt(this.depth++), atNs, label)
  }

  /** Ends the innermost slice; there must be one. */
  end(atNs: number): void {
    this.writer.end(this.trackAt(--this.depth), atNs)
  }

  instant(atNs: number, label: Label): void {
    this.writer.instant(this.trackAt(this.depth), atNs, label)
  }

  private trackAt(depth: number): number {
    const row = Math.floor(depth / DEPTH_MAX)
    this.tracks[row] ??= this.add(row)
    return this.tracks[row]
  }
}
