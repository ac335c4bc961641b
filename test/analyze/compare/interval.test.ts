import { expect, test } from '@jest/globals'
import { logRatio, margins, tailOfEach } from '../../../lib/analyze/compare/interval.ts'
import { inParts, someOf } from '../../long.ts'
import { normals } from './normals.ts'

/** The share of trials in which all of `n` intervals contain the true ratio. */
function coverage(
  trials: number,
  n: number,
  runs: readonly [number, number],
  sd: readonly [number, number],
  vary = 0,
): number {
  const [a, b] = runs
  const normal = normals(trials + 31 * n + 7 * a)
  const scales = Array.from({ length: n }, () => Math.exp(vary * normal()))
  const values = (of: number, mean: number, sd: number) =>
    Array.from({ length: of }, () => Math.exp(mean + sd * normal()))
  let covered = 0
  for (let trial = 0; trial < trials; trial++) {
    const ratios = scales.map((scale) => logRatio(values(a, 10, scale * sd[0]), values(b, 10.1, scale * sd[1])))
    const margin = margins(ratios)
    if (ratios.every((of) => Math.abs(of.estimate - 0.1) <= margin(of, tailOfEach(0.95, n)))) covered++
  }
  return covered / trials
}

const SIDES = [
  [1, [5, 5], [0.02, 0.02], 0],
  [1, [5, 5], [0.01, 0.06], 0],
  [1, [3, 8], [0.03, 0.03], 0],
  [5, [5, 5], [0.02, 0.02], 0],
  [40, [5, 5], [0.02, 0.02], 0],
  [40, [5, 5], [0.01, 0.05], 0],
  [40, [10, 6], [0.02, 0.03], 0],
  [40, [5, 5], [0.02, 0.03], 1],
] as const

inParts(test).each(someOf(SIDES, 4, 3))(
  '%d intervals of %j runs a side hold in 95 ± 2 % of comparisons (spreads %j, varied by e^%d)',
  (n, runs, sd, vary) => {
    expect(Math.abs(coverage(n === 1 ? 10_000 : 1500, n, runs, sd, vary) - 0.95)).toBeLessThanOrEqual(0.02)
  },
)

test('intervals of many figures together are narrower than those of each alone', () => {
  const normal = normals(1)
  const values = () => Array.from({ length: 5 }, () => Math.exp(0.02 * normal()))
  const ratios = Array.from({ length: 40 }, () => logRatio(values(), values()))
  const [together, alone] = [margins(ratios), margins([])]
  const sum = (margin: typeof alone) => ratios.reduce((sum, ratio) => sum + margin(ratio, 0.001), 0)
  expect(sum(together)).toBeLessThan(0.8 * sum(alone))
})

test('a hand-computed interval', () => {
  const [before, after] = [[100, 110, 121].map(Number), [110, 121, 133.1]]
  const ratio = logRatio(before, after)
  expect(Math.expm1(ratio.estimate)).toBeCloseTo(0.1, 12)
  // Both: standard deviation log(1.1), so the standard error is log(1.1) · √(2/3), with 4 degrees of freedom.
  expect(margins([ratio])(ratio, 0.05)).toBeCloseTo(2.7764451051977987 * Math.log(1.1) * Math.sqrt(2 / 3), 10)
})

test('equal values have no margin; one run a side has no interval', () => {
  expect(margins([])(logRatio([5, 5], [5, 5]), 0.05)).toBe(0)
  const [three, seven] = [Array<number>(7).fill(31_871_321), Array<number>(7).fill(7 * 31_871_321)]
  expect(margins([])(logRatio(three, seven), 0.05)).toBe(0)
  expect(margins([])(logRatio([5], [5, 6]), 0.05)).toBe(Infinity)
})
