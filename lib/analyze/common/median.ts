/** Values that are kept. */
const KEPT = 512

/** The median of values: exact up to {@link KEPT} of them; of more, of every second, fourth, … of them. */
export class Median {
  count = 0
  private readonly kept: number[] = []
  private every = 1

  add(value: number): void {
    if (this.count++ % this.every > 0) return
    if (this.kept.length === KEPT) {
      for (let i = 0; i < KEPT / 2; i++) this.kept[i] = this.kept[2 * i]!
      this.kept.length = KEPT / 2
      this.every *= 2
      if ((this.count - 1) % this.every > 0) return
    }
    this.kept.push(value)
  }

  /** Null without values. */
  get value(): number | null {
    return this.kept.toSorted((a, b) => a - b)[this.kept.length >> 1] ?? null
  }
}
