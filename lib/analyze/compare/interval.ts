import { studentQuantile } from './student.ts'

/** The ratio of the typical values of two sides, as a logarithm. */
interface LogRatio {
  readonly estimate: number
  /** The square of its standard error, and its degrees of freedom; undefined with fewer than two values on a side. */
  readonly spread: { readonly square: number; readonly df: number } | undefined
}

/**
 * The difference of the means of logarithms, and Welch's spread of it: of independent values above 0 whose logarithms are about normal,
 * with variances that may differ (B. L. Welch, Biometrika 34, 1947).
 */
export function logRatio(before: readonly number[], after: readonly number[]): LogRatio {
  const [a, b] = [logsOf(before), logsOf(after)]
  const estimate = b.mean - a.mean
  if (before.length < 2 || after.length < 2) return { estimate, spread: undefined }
  const square = a.square + b.square
  if (square === 0) return { estimate, spread: { square, df: before.length + after.length - 2 } }
  const df = square ** 2 / (a.square ** 2 / (before.length - 1) + b.square ** 2 / (after.length - 1))
  return { estimate, spread: { square, df } }
}

/** Equal values differ from their mean by the error of rounding. */
const ROUNDING = 1e-24

/** Mean of logarithms, and the square of its standard error. */
function logsOf(values: readonly number[]): { readonly mean: number; readonly square: number } {
  const logs = values.map(Math.log)
  const mean = logs.reduce((sum, value) => sum + value, 0) / logs.length
  const squares = logs.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  const square = logs.length < 2 ? 0 : squares / (logs.length - 1) / logs.length
  return { mean, square: square < ROUNDING ? 0 : square }
}

/** Fewer ratios say too little about each other's spread. */
const FAMILY_MIN = 3

/**
 * Spreads of ratios that were measured in the same runs, each moderated by all of them: five runs say little about the spread of one
 * operator, but fifty operators say how large spreads are here (G. K. Smyth, Statistical Applications in Genetics 3, 2004). Returns
 * half of the width of the interval of each ratio that holds with probability 1 − `tail`; Infinity where a side has one value. `times`: with so
 * many times the runs, of the same spread.
 */
export function margins(ratios: readonly LogRatio[]): (ratio: LogRatio, tail: number, times?: number) => number {
  const known = ratios.flatMap(({ spread }) => (spread && spread.square > 0 ? [spread] : []))
  const prior = known.length < FAMILY_MIN ? { df: 0, square: 0 } : priorOf(known)
  return ({ spread }, tail, times = 1) => {
    if (!spread) return Infinity
    if (spread.square === 0) return 0
    const df = spread.df * times + prior.df
    // Of many degrees of freedom only the ratio counts: the prior's may be Infinity.
    const share = prior.df === Infinity ? 1 : prior.df / (spread.df + prior.df)
    const square = (share * prior.square + (1 - share) * spread.square) / times
    return studentQuantile(tail, Math.min(df, DF_MAX)) * Math.sqrt(square)
  }
}

/** Student's t with more degrees of freedom is the normal distribution. */
const DF_MAX = 1e6

/** The distribution that the spreads are from, by the mean and the variance of their logarithms (Smyth 2004, section 6.2). */
function priorOf(spreads: readonly { readonly square: number; readonly df: number }[]) {
  const n = spreads.length
  const logs = spreads.map(({ square, df }) => Math.log(square) - digamma(df / 2) + Math.log(df / 2))
  const mean = logs.reduce((sum, log) => sum + log, 0) / n
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (n - 1)
  const excess = variance - spreads.reduce((sum, { df }) => sum + trigamma(df / 2), 0) / n
  if (excess <= 0) return { df: Infinity, square: Math.exp(mean) }
  const df = 2 * trigammaInverse(excess)
  return { df, square: Math.exp(mean + digamma(df / 2) - Math.log(df / 2)) }
}

/** Abramowitz & Stegun 6.3.18, after shifting x to at least 10. */
function digamma(x: number): number {
  let [z, sum] = [x, 0]
  for (; z < 10; z++) sum -= 1 / z
  const r = 1 / (z * z)
  return sum + Math.log(z) - 1 / (2 * z) - r * (1 / 12 - r * (1 / 120 - r / 252))
}

/** Abramowitz & Stegun 6.4.12, after shifting x to at least 10. */
function trigamma(x: number): number {
  let [z, sum] = [x, 0]
  for (; z < 10; z++) sum += 1 / (z * z)
  const r = 1 / (z * z)
  return sum + 1 / z + r / 2 + (r / z) * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r / 30)))
}

/** By bisection of the logarithm: trigamma falls. */
function trigammaInverse(y: number): number {
  let [from, to] = [1e-8, 1e8]
  for (let i = 0; i < 100; i++) {
    const middle = Math.sqrt(from * to)
    if (trigamma(middle) > y) from = middle
    else to = middle
  }
  return Math.sqrt(from * to)
}

/** The tail of each of `n` intervals that together hold with probability `level`, if they are independent (Šidák 1967), else more. */
export function tailOfEach(level: number, n: number): number {
  return -Math.expm1(Math.log(level) / Math.max(1, n))
}
