/** Gaps that are remembered: a block of a log holds about as many calls. */
const GAPS_MAX = 4096

/** The free stretches of a row before its end, where what comes late may have its place. */
export class Gaps {
  /** In order, apart from each other. */
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  /** Adds a gap behind all others. */
  add(startNs: number, endNs: number): void {
    if (this.starts.length === GAPS_MAX) {
      this.starts.splice(0, GAPS_MAX / 2)
      this.ends.splice(0, GAPS_MAX / 2)
    }
    this.starts.push(startNs)
    this.ends.push(endNs)
  }

  /**
   * Takes a stretch out of the gap that it lies in; false if it lies in none. The gap's end itself is not free: what begins
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
