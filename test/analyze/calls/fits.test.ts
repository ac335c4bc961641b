import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Fits } from '../../../lib/analyze/calls/fits.ts'
import { Spread } from '../../../lib/analyze/calls/spread.ts'

const fitsOf = (points: readonly (readonly [x: number, ...ys: number[]])[]) => {
  const fits = new Fits()
  for (const [x, ...ys] of points) fits.add(x, ys, ys.length)
  return fits
}

/** The same as {@link Fits.fit}, from all points at once. */
function lineThrough(points: readonly (readonly [x: number, y: number])[]) {
  const n = points.length
  const mean = (of: (point: readonly [number, number]) => number) => points.reduce((sum, p) => sum + of(p), 0) / n
  const [x, y] = [mean(([x]) => x), mean(([, y]) => y)]
  const sum = (of: (dx: number, dy: number) => number) => points.reduce((all, p) => all + of(p[0] - x, p[1] - y), 0)
  const slope = sum((dx, dy) => dx * dy) / sum((dx) => dx * dx)
  const unexplained = sum((dx, dy) => (dy - slope * dx) ** 2)
  const all = sum((_, dy) => dy * dy)
  return {
    slope,
    mean: y,
    at0: y - slope * x,
    error: Math.sqrt(unexplained / (n - 2) / sum((dx) => dx * dx)),
    rSquared: all > 0 ? 1 - unexplained / all : null,
  }
}

describe('lines by least squares', () => {
  test('points on a line give it exactly', () => {
    const fits = fitsOf([0, 1, 2, 3, 4].map((i) => [100_000 + 7 * i, 5e9 + 7 * 4500 * i, 12]))
    expect(fits.fit(0)).toEqual({
      ms_per_1000_tokens: 4.5,
      standard_error_ms: 0,
      at_0_ns: 5e9 - 4500 * 100_000,
      mean_ns: 5e9 + 2 * 7 * 4500,
      r_squared: 1,
    })
    expect(fits.fit(1)).toMatchObject({ ms_per_1000_tokens: 0, r_squared: null, mean_ns: 12 })
    expect([fits.points, fits.fromX, fits.toX]).toEqual([5, 100_000, 100_028])
  })

  test('by hand: (0, 0), (1, 2), (2, 1)', () => {
    const { ms_per_1000_tokens, standard_error_ms, at_0_ns, r_squared } = fitsOf([
      [0, 0],
      [1, 2],
      [2, 1],
    ]).fit(0)
    expect(ms_per_1000_tokens * 1000).toBeCloseTo(0.5, 12)
    expect(at_0_ns).toBeCloseTo(0.5, 12)
    expect(r_squared).toBeCloseTo(0.25, 12)
    expect(standard_error_ms * 1000).toBeCloseTo(Math.sqrt(0.75), 12) // 1.5 unexplained / 1 degree of freedom / 2
  })

  test('two points, or one x, determine none', () => {
    expect(fitsOf([]).isDetermined).toBe(false)
    expect(
      fitsOf([
        [1, 1],
        [2, 2],
      ]).isDetermined,
    ).toBe(false)
    expect(fitsOf([1, 2, 3].map((y) => [5, y])).isDetermined).toBe(false)
  })

  const point = fc.tuple(fc.nat(200_000), fc.nat(1e9), fc.nat(1e8), fc.integer({ min: -1e6, max: 1e6 }))
  const lists = fc.array(point, { minLength: 3, maxLength: 200 }).filter((all) => new Set(all.map(([x]) => x)).size > 2)

  test('streaming sums give what all points at once give', () => {
    fc.assert(
      fc.property(lists, (points) => {
        const { slope, mean, at0, error, rSquared } = lineThrough(points.map(([x, y]) => [x, y]))
        const fit = fitsOf(points).fit(0)
        expect(Math.abs(fit.ms_per_1000_tokens * 1000 - slope)).toBeLessThanOrEqual(1e-6 * error + 1e-9)
        expect(fit.mean_ns).toBeCloseTo(mean, 3)
        expect(fit.at_0_ns / 1e9).toBeCloseTo(at0 / 1e9, 6)
        expect(fit.standard_error_ms * 1000).toBeCloseTo(error, 2)
        expect(fit.r_squared ?? 0).toBeCloseTo(rSquared ?? 0, 6)
      }),
    )
  })

  test('slopes and means of parts sum to those of the whole, also of parts that are new later', () => {
    fc.assert(
      fc.property(lists, fc.nat(10), (points, late) => {
        const fits = new Fits()
        for (const [i, [x, ...parts]] of points.entries()) {
          const known = i < late ? parts.slice(0, 2) : parts
          fits.add(x, [known.reduce((sum, part) => sum + part, 0), ...known], known.length + 1)
        }
        const [whole, ...parts] = Array.from({ length: fits.quantities }, (_, i) => fits.fit(i))
        const sum = (of: 'ms_per_1000_tokens' | 'mean_ns') => parts.reduce((all, part) => all + part[of], 0)
        expect(sum('ms_per_1000_tokens')).toBeCloseTo(whole!.ms_per_1000_tokens, 6)
        expect(sum('mean_ns')).toBeCloseTo(whole!.mean_ns, 4)
      }),
    )
  })
})

describe('distribution and jitter', () => {
  const calls = fc.array(
    fc.record({ tokens: fc.integer({ min: 1, max: 5 }), spent: fc.integer({ min: 1000, max: 1e9 }) }),
    {
      minLength: 1,
      maxLength: 300,
    },
  )

  test('quantiles are within 1 % of the exact ones, all else is exact', () => {
    fc.assert(
      fc.property(calls, (list) => {
        const spread = new Spread()
        for (const [i, { tokens, spent }] of list.entries()) spread.add(tokens, spent, i > 0)
        const all = list
          .flatMap(({ tokens, spent }) => Array.from({ length: tokens }, () => spent / tokens))
          .sort((a, b) => a - b)
        const distribution = spread.distribution!
        for (const [q, found] of [
          [0.5, distribution.p50_ns],
          [0.9, distribution.p90_ns],
          [0.99, distribution.p99_ns],
        ] as const) {
          const exact = all[Math.ceil(q * all.length) - 1]!
          expect(Math.abs(found - exact)).toBeLessThanOrEqual(0.01 * exact + 1)
        }
        const mean = all.reduce((sum, ns) => sum + ns, 0) / all.length
        expect(distribution).toMatchObject({ count: all.length, min_ns: all[0], max_ns: all.at(-1) })
        expect(distribution.mean_ns / mean).toBeCloseTo(1, 9)
        const deviation = Math.sqrt(all.reduce((sum, ns) => sum + (ns - mean) ** 2, 0) / all.length)
        expect(Math.abs(spread.jitter.standard_deviation_ns - deviation)).toBeLessThan(1e-6 * mean)
        const each = list.map(({ tokens, spent }) => spent / tokens)
        const differences = each.slice(1).map((ns, i) => Math.abs(ns - each[i]!))
        expect(spread.jitter.differences).toBe(differences.length)
        if (differences.length === 0) expect(spread.jitter.mean_difference_ns).toBeNull()
        else
          expect(spread.jitter.mean_difference_ns! / mean).toBeCloseTo(
            differences.reduce((sum, ns) => sum + ns, 0) / differences.length / mean,
            6,
          )
      }),
    )
  })

  test('of one value, all quantiles are that value', () => {
    const spread = new Spread()
    spread.add(1, 12_345, false)
    expect(spread.distribution).toEqual({
      count: 1,
      mean_ns: 12_345,
      min_ns: 12_345,
      p50_ns: 12_345,
      p90_ns: 12_345,
      p99_ns: 12_345,
      max_ns: 12_345,
    })
    expect(spread.jitter).toEqual({ standard_deviation_ns: 0, mean_difference_ns: null, differences: 0 })
  })
})
