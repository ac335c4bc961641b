import type { Label } from '../sink/label.ts'
import type { Writer } from '../sink/writer.ts'
import { FurtherRows, SEARCHED_ROWS_MAX } from './further-rows.ts'

interface Row {
  readonly track: number
  /** Ends of the open slices, the innermost last. */
  readonly ends: number[]
  lastNs: number
}

/**
 * Rows of slices that come in order of their starts, outer before inner, and nest by time. A slice that would cross another one,
 * or comes late, is placed in a further row: none is cut. In rows after the first {@link SEARCHED_ROWS_MAX}, slices do not nest.
 */
export class NestedRows {
  private readonly rows: Row[] = []
  private further: FurtherRows | undefined

  /** `add` defines the n-th row (from 0) and returns its track. */
  constructor(
    private readonly writer: Writer,
    private readonly add: (row: number) => number,
  ) {}

  place(startNs: number, endNs: number, label: Label): void {
    const row = this.rowFor(startNs, endNs)
    if (row) {
      this.writer.begin(row.track, startNs, label)
      row.ends.push(endNs)
      return
    }
    const track = this.further!.place(startNs, endNs)
    this.writer.begin(track, startNs, label)
    this.writer.end(track, endNs)
  }

  instant(atNs: number, label: Label): void {
    this.writer.instant(this.rowFor(atNs, atNs)?.track ?? this.further!.place(atNs, atNs), atNs, label)
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
      if (endNs > (row.ends.at(-1) ?? Infinity)) continue
      row.lastNs = startNs
      return row
    }
    if (this.rows.length === SEARCHED_ROWS_MAX) {
      this.further ??= new FurtherRows(this.add)
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
