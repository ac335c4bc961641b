import type { ScalingFit } from './figures.ts'

interface Point {
  readonly n: number
  readonly x: number
}

/** λ, σ and κ. */
export const USL_PARAMETERS = 3

/**
 * Least squares of the speeds, by n / X = a + b (n − 1) + c n (n − 1), which is linear, with the weights (X² / n)² that make an error of n / X
 * one of X. Parameters are not negative: of all sets of those that are 0, the best fit whose others are positive. Null for as many points as parameters, or fewer: any
 * speeds fit them.
 */
export function fitUsl(points: readonly Point[]): ScalingFit | null {
  if (points.length <= USL_PARAMETERS) return null
  const rows = points.map(({ n, x }) => ({ terms: [1, n - 1, n * (n - 1)], y: n / x, weight: (x * x) / n }))
  let best: ScalingFit | undefined
  for (const used of [[0], [0, 1], [0, 2], [0, 1, 2]]) {
    const solved = solve(rows, used)
    if (!solved) continue
    const [a = 0, b = 0, c = 0] = [0, 1, 2].map((i) => (used.includes(i) ? solved[used.indexOf(i)]! : 0))
    if (a <= 0 || b < 0 || c < 0) continue
    const fit = fitOf(points, 1 / a, b / a, c / a)
    if (!best || fit.r2 > best.r2) best = fit
  }
  return best ?? null
}

function fitOf(points: readonly Point[], lambda: number, sigma: number, kappa: number): ScalingFit {
  const mean = points.reduce((sum, { x }) => sum + x, 0) / points.length
  let [residual, total] = [0, 0]
  for (const { n, x } of points) {
    residual += (x - (lambda * n) / (1 + sigma * (n - 1) + kappa * n * (n - 1))) ** 2
    total += (x - mean) ** 2
  }
  return {
    model: 'usl',
    tokens_per_s_of_one: lambda,
    contention: sigma,
    coherency: kappa,
    r2: total > 0 ? 1 - residual / total : 1,
    workers_of_peak: kappa > 0 ? Math.sqrt(Math.max((1 - sigma) / kappa, 1)) : null,
  }
}

/** Weighted least squares with the terms of these indexes, by the normal equations. */
function solve(
  rows: readonly { readonly terms: readonly number[]; readonly y: number; readonly weight: number }[],
  used: readonly number[],
): number[] | undefined {
  const matrix = used.map((i) => [
    ...used.map((j) => rows.reduce((sum, { terms, weight }) => sum + weight * terms[i]! * (weight * terms[j]!), 0)),
    rows.reduce((sum, { terms, weight, y }) => sum + weight * terms[i]! * (weight * y), 0),
  ])
  const size = used.length
  for (let at = 0; at < size; at++) {
    let pivot = at
    for (let row = at; row < size; row++) if (Math.abs(matrix[row]![at]!) > Math.abs(matrix[pivot]![at]!)) pivot = row
    ;[matrix[at], matrix[pivot]] = [matrix[pivot]!, matrix[at]!]
    const scale = matrix[at]![at]!
    if (Math.abs(scale) < 1e-30) return undefined
    matrix[at] = matrix[at]!.map((value) => value / scale)
    for (let row = 0; row < size; row++) {
      const factor = matrix[row]![at]!
      if (row !== at && factor !== 0) matrix[row] = matrix[row]!.map((value, i) => value - factor * matrix[at]![i]!)
    }
  }
  return matrix.map((row) => row[size]!)
}
