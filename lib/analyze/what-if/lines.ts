import { sumOf } from './calls.ts'

/** Points this many median deviations away are left out of a line: a call that something disturbed unseen. */
const OUTLIER = 6
/** A median absolute deviation, as a standard deviation of normal errors. */
const OF_MEDIAN = 1.4826
/** Correlation of successive residuals counts up to this. */
const CORRELATION_MAX = 0.9

/** A straight line through points. */
export interface Line {
  readonly meanX: number
  readonly meanY: number
  readonly slope: number
  /** Standard error of the slope; successive residuals may be correlated. */
  readonly slopeError: number
  /** Sum of squared residuals, of the points that count. */
  readonly squares: number
  /** Different x. */
  readonly steps: number
}

/** The line by least squares, without outliers of a first one. Of a single x: slope 0. */
export function lineOf(xs: readonly number[], ys: readonly number[]): Line {
  const all = xs.map((_, i) => i)
  const first = fitted(xs, ys, all)
  const deviations = all.map((i) => Math.abs(residual(first, xs[i]!, ys[i]!)))
  const limit = OUTLIER * OF_MEDIAN * medianOf(deviations)
  const kept = all.filter((i) => deviations[i]! <= limit)
  return kept.length === all.length || kept.length < 3 ? first : fitted(xs, ys, kept)
}

/** The height of a line at x. */
export const at = ({ meanX, meanY, slope }: Line, x: number): number => meanY + slope * (x - meanX)

const residual = (line: Line, x: number, y: number) => y - at(line, x)

/** The upper median; 0 without values. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}

function fitted(xs: readonly number[], ys: readonly number[], used: readonly number[]): Line {
  const n = used.length
  const meanX = sumOf(used.map((i) => xs[i]!)) / n
  const meanY = sumOf(used.map((i) => ys[i]!)) / n
  const spread = sumOf(used.map((i) => (xs[i]! - meanX) ** 2))
  const shared = sumOf(used.map((i) => (xs[i]! - meanX) * (ys[i]! - meanY)))
  const slope = spread > 0 ? shared / spread : 0
  const residuals = used.map((i) => ys[i]! - meanY - slope * (xs[i]! - meanX))
  const squares = sumOf(residuals.map((r) => r * r))
  const products = sumOf(residuals.slice(1).map((r, i) => r * residuals[i]!))
  const correlation = squares > 0 ? Math.min(Math.max(products / squares, 0), CORRELATION_MAX) : 0
  const variance = n > 2 ? squares / (n - 2) : 0
  const inflated = (variance * (1 + correlation)) / (1 - correlation)
  const slopeError = spread > 0 ? Math.sqrt(inflated / spread) : 0
  return { meanX, meanY, slope, slopeError, squares, steps: new Set(used.map((i) => xs[i]!)).size }
}
