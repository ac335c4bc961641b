import type { Fit } from './figures.ts'

/** Sums of one quantity. */
interface Sums {
  /** Subtracted from each value before it is summed up, so that sums of large values stay exact. */
  readonly shift: number
  y: number
  xy: number
  yy: number
}

/**
 * Straight lines through the same x and several quantities, by least squares, from streaming sums. As a line's slope is linear in y,
 * slopes of quantities that sum to another one sum to its slope.
 */
export class Fits {
  points = 0
  fromX = Infinity
  toX = -Infinity
  private shift = 0
  private x = 0
  private xx = 0
  private readonly sums: Sums[] = []

  /** Adds a point with the first `count` values; quantities that are new in this point were 0 in all points before. */
  add(x: number, values: ArrayLike<number>, count: number): void {
    if (this.points === 0) this.shift = x
    const { sums } = this
    while (sums.length < count) {
      const shift = this.points === 0 ? values[sums.length]! : 0
      sums.push({ shift, y: 0, xy: 0, yy: 0 })
    }
    this.points++
    this.fromX = Math.min(this.fromX, x)
    this.toX = Math.max(this.toX, x)
    const dx = x - this.shift
    this.x += dx
    this.xx += dx * dx
    for (let i = 0; i < count; i++) {
      const sum = sums[i]!
      const dy = values[i]! - sum.shift
      sum.y += dy
      sum.xy += dx * dy
      sum.yy += dy * dy
    }
  }

  /** Number of quantities so far. */
  get quantities(): number {
    return this.sums.length
  }

  /** Is a line determined, with an error? It takes three points, and two values of x. */
  get isDetermined(): boolean {
    return this.points >= 3 && this.toX > this.fromX
  }

  /** The line of a quantity in ns against x in tokens; call it only where {@link isDetermined}. */
  fit(quantity: number): Fit {
    const { points, shift, sums } = this
    const { shift: shiftY, y, xy, yy } = sums[quantity]!
    const [meanX, meanY] = [this.x / points, y / points]
    const squaresX = this.xx - this.x * meanX
    const squaresXY = xy - this.x * meanY
    const squaresY = Math.max(yy - y * meanY, 0)
    const slope = squaresXY / squaresX
    const unexplained = Math.max(squaresY - slope * squaresXY, 0)
    return {
      ms_per_1000_tokens: slope / 1000,
      standard_error_ms: Math.sqrt(unexplained / (points - 2) / squaresX) / 1000,
      at_0_ns: meanY + shiftY - slope * (meanX + shift),
      mean_ns: meanY + shiftY,
      r_squared: squaresY > 0 ? Math.min((slope * squaresXY) / squaresY, 1) : null,
    }
  }
}
