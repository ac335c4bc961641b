import type { ExpertBalance } from './figures.ts'

/** Part of the experts whose share of activations is a figure. */
const TOP_PART = 1 / 8

/** How evenly activations are spread. `k`: experts of a token. */
export function balanceOf(counts: readonly number[], k: number): ExpertBalance {
  const n = counts.length
  const sorted = counts.toSorted((a, b) => b - a)
  const all = sorted.reduce((sum, count) => sum + count, 0)
  const mean = all / n
  let [bits, squares, weighted] = [0, 0, 0]
  for (const [i, count] of sorted.entries()) {
    if (count > 0) bits -= (count / all) * Math.log2(count / all)
    squares += (count - mean) ** 2
    weighted += (n - i) * count
  }
  const top = Math.min(n, Math.max(k, Math.ceil(n * TOP_PART)))
  return {
    entropy_bits: bits,
    entropy_share: n > 1 ? bits / Math.log2(n) : 1,
    max_to_mean: all > 0 ? sorted[0]! / mean : 0,
    gini: all > 0 ? Math.max((2 * weighted) / (n * all) - (n + 1) / n, 0) : 0,
    variation: all > 0 ? Math.sqrt(squares / n) / mean : 0,
    unused: counts.filter((count) => count === 0).length,
    most_used: counts.indexOf(sorted[0]!),
    top_experts: top,
    top_share: all > 0 ? sorted.slice(0, top).reduce((sum, count) => sum + count, 0) / all : 0,
  }
}
