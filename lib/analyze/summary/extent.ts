/** From the earliest of some times to the latest, in ns; 0 without any. */
export class Extent {
  private beginNs = Infinity
  private endNs = -Infinity

  /** Adds an interval. */
  add(startNs: number, endNs: number): void {
    if (startNs < this.beginNs) this.beginNs = startNs
    if (endNs > this.endNs) this.endNs = endNs
  }

  get isEmpty(): boolean {
    return this.beginNs === Infinity
  }

  get firstNs(): number {
    return this.isEmpty ? 0 : this.beginNs
  }

  get lastNs(): number {
    return Math.max(this.firstNs, this.endNs)
  }
}
