/** Gaps that are kept: about the number of calls in a block of a log. */
const GAPS_MAX = 4096

/** Free intervals of a row before its end, for late slices. */
export class Gaps {
  /** In order, not overlapping. */
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  /** Adds a gap after all others. */
  add(startNs: number, endNs: number): void {
    if (this.starts.length === GAPS_MAX) {
      this.starts.splice(0, GAPS_MAX / 2)
      this.ends.splice(0, GAPS_MAX / 2)
    }
    this.starts.push(startNs)
    this.ends.push(endNs)
  }

  /**
   * Takes an interval out of the gap that contains it; false if none does. The gap's end is not free: the slice that begins
   * there was written before, and would come first.
   */
  take(startNs: number, endNs: number): boolean {
    const { starts, ends } = this
    const at = starts.findLastIndex((gapStart) => gapStart <= startNs)
    if (at < 0 || endNs >= ends[at]!) return false
    const gapEnd = ends[at]!
    ends[at] = startNs
    starts.splice(at + 1, 0, endNs)
    ends.splice(at + 1, 0, gapEnd)
    return true
  }
}
