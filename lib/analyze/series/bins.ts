/** Bins along an axis at most; a power of two. */
export const BINS_MAX = 512

/** Positions in equal bins, which are doubled until they cover all positions. */
class Axis {
  /** Numbers of the first and the last bin that are in use. */
  first = Infinity
  last = -Infinity

  constructor(public width: number) {}

  /** Does it cover a bin, too? */
  covers(bin: number): boolean {
    return Math.max(this.last, bin) - Math.min(this.first, bin) < BINS_MAX
  }

  use(bin: number): void {
    this.first = Math.min(this.first, bin)
    this.last = Math.max(this.last, bin)
  }

  /** Half as many bins. */
  double(): void {
    this.width *= 2
    this.first = Math.floor(this.first / 2)
    this.last = Math.floor(this.last / 2)
  }
}

/** The place of a bin in a row of the table: bins in use are at most as many as places. */
const placeOf = (bin: number) => bin & (BINS_MAX - 1)

/** Sums in bins of two axes. Bins begin at multiples of their widths; the widths are the smallest powers of two that suffice. */
export class Bins {
  readonly x: Axis
  readonly y: Axis
  private sums = new Float64Array(BINS_MAX * BINS_MAX)

  /** The smallest widths; powers of two. */
  constructor(xWidth: number, yWidth: number) {
    this.x = new Axis(xWidth)
    this.y = new Axis(yWidth)
  }

  /** Spreads a value evenly over positions of y. */
  add(x: number, fromY: number, toY: number, value: number): void {
    while (!this.x.covers(Math.floor(x / this.x.width))) this.doubleX()
    this.x.use(Math.floor(x / this.x.width))
    const { y } = this
    const lastOf = () => Math.max(Math.ceil(toY / y.width) - 1, Math.floor(fromY / y.width))
    while (
      !(
        y.covers(Math.floor(fromY / y.width)) &&
        y.covers(lastOf()) &&
        lastOf() - Math.floor(fromY / y.width) < BINS_MAX
      )
    )
      this.doubleY()
    const [first, last] = [Math.floor(fromY / y.width), lastOf()]
    y.use(first)
    y.use(last)
    const row = placeOf(Math.floor(x / this.x.width)) * BINS_MAX
    for (let bin = first; bin <= last; bin++) {
      const inside = Math.min(toY, (bin + 1) * y.width) - Math.max(fromY, bin * y.width)
      this.sums[row + placeOf(bin)]! += first === last ? value : (value * inside) / (toY - fromY)
    }
  }

  /** Cells with a value, by x, then by y. */
  *cells(): Generator<readonly [x: number, y: number, value: number]> {
    const { x, y } = this
    for (let i = x.first; i <= x.last; i++) {
      for (let j = y.first; j <= y.last; j++) {
        const value = this.sums[placeOf(i) * BINS_MAX + placeOf(j)]!
        if (value > 0) yield [i - x.first, j - y.first, value]
      }
    }
  }

  private doubleX(): void {
    this.merge((i, j) => placeOf(Math.floor(i / 2)) * BINS_MAX + placeOf(j))
    this.x.double()
  }

  private doubleY(): void {
    this.merge((i, j) => placeOf(i) * BINS_MAX + placeOf(Math.floor(j / 2)))
    this.y.double()
  }

  private merge(to: (i: number, j: number) => number): void {
    const { x, y, sums } = this
    const merged = new Float64Array(sums.length)
    for (let i = x.first; i <= x.last; i++)
      for (let j = y.first; j <= y.last; j++) merged[to(i, j)]! += sums[placeOf(i) * BINS_MAX + placeOf(j)]!
    this.sums = merged
  }
}
