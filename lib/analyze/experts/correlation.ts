import type { Correlation } from './figures.ts'

/** Pairs that a correlation takes at least. */
const PAIRS_MIN = 3

/** Correlation of figures of the same things; null for fewer than 3, and where one does not change. */
export function correlationOf(xs: readonly number[], ys: readonly number[]): Correlation | null {
  if (xs.length < PAIRS_MIN) return null
  const pearson = pearsonOf(xs, ys)
  return pearson === null ? null : { pearson, spearman: pearsonOf(ranksOf(xs), ranksOf(ys))! }
}

function pearsonOf(xs: readonly number[], ys: readonly number[]): number | null {
  const n = xs.length
  const [x, y] = [xs, ys].map((values) => values.reduce((sum, value) => sum + value, 0) / n) as [number, number]
  let [xx, yy, xy] = [0, 0, 0]
  for (let i = 0; i < n; i++) {
    const [dx, dy] = [xs[i]! - x, ys[i]! - y]
    xx += dx * dx
    yy += dy * dy
    xy += dx * dy
  }
  if (isConstant(xs) || isConstant(ys) || xx * yy === 0) return null
  return Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)))
}

/** Means round: differences to them can be above 0 where nothing differs. */
const isConstant = (values: readonly number[]) => values.every((value) => value === values[0])

/** Ranks from 1; equal values have the mean of theirs. */
function ranksOf(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a]! - values[b]!)
  const ranks = values.map(() => 0)
  for (let from = 0, to = 0; from < order.length; from = to) {
    while (to < order.length && values[order[to]!] === values[order[from]!]) to++
    for (let at = from; at < to; at++) ranks[order[at]!] = (from + to + 1) / 2
  }
  return ranks
}
