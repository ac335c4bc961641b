import { MinTree } from '../bytes/min-tree.ts'

/** Rows that are searched one by one for free time; those after them are {@link FurtherRows}. */
export const SEARCHED_ROWS_MAX = 64
/** Rows of one track at most: no viewer shows more, and each takes memory of its own. */
export const ROWS_MAX = 2048

/** Rows of slices after so many others that looking at each of them takes too long: of a row, only its last end is known. */
export class FurtherRows {
  private readonly ends = new MinTree()
  private readonly tracks: number[] = []

  /** `add` defines the n-th row (from 0, of all rows) and returns its track; `leaveOut` counts a slice that overlaps {@link ROWS_MAX} others. */
  constructor(
    private readonly add: (row: number) => number,
    private readonly leaveOut: () => void,
  ) {}

  /** Reserves the time in the first row that is free from `startNs` on; returns its track, or undefined where there is none. */
  place(startNs: number, endNs: number): number | undefined {
    const { tracks } = this
    const found = this.ends.firstUpTo(startNs)
    const row = found < 0 ? tracks.length : found
    if (SEARCHED_ROWS_MAX + row >= ROWS_MAX) {
      this.leaveOut()
      return undefined
    }
    if (found < 0) tracks.push(this.add(SEARCHED_ROWS_MAX + row))
    this.ends.set(row, endNs)
    return tracks[row]
  }
}
