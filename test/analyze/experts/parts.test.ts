import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { balanceOf } from '../../../lib/analyze/experts/balance.ts'
import { correlationOf } from '../../../lib/analyze/experts/correlation.ts'
import { LfuCaches } from '../../../lib/analyze/experts/lfu-caches.ts'
import { ReusePairs } from '../../../lib/analyze/experts/reuse-pairs.ts'
import { StackDistances } from '../../../lib/analyze/experts/stack-distances.ts'
import { hitsOf, leastRecent, leastUsed, mean, pearson, ranks } from './brute.ts'

/** Parts of the statistics of experts, each against its definition. */

const items = fc.array(fc.nat(12), { maxLength: 120 })

describe('stack distances', () => {
  test('are the numbers of different items since the last use', () => {
    fc.assert(
      fc.property(items, (items) => {
        const stack = new StackDistances()
        const expected = items.map((item, at) => {
          const before = items.lastIndexOf(item, at - 1)
          return at === 0 || before < 0 ? -1 : new Set(items.slice(before + 1, at)).size
        })
        expect(items.map((item) => stack.use(item))).toEqual(expected)
      }),
    )
  })

  test('a cache (LRU) hits exactly those with a distance below its size', () => {
    fc.assert(
      fc.property(items, fc.nat(8), (items, capacity) => {
        const stack = new StackDistances()
        const found = items.map((item) => {
          const distance = stack.use(item)
          return distance >= 0 && distance < capacity
        })
        expect(found).toEqual(hitsOf(items, capacity, leastRecent))
      }),
    )
  })

  test('slots are used again: distances of a cycle stay the same for many uses', () => {
    const stack = new StackDistances()
    const size = 1000
    const distances = Array.from({ length: 20 * size }, (_, i) => stack.use((i * 7) % size))
    expect(distances.slice(0, size)).toEqual(Array(size).fill(-1))
    expect(new Set(distances.slice(size))).toEqual(new Set([size - 1]))
  })
})

test('LFU caches of several sizes hit as a search for the least used one says', () => {
  fc.assert(
    fc.property(items, fc.uniqueArray(fc.nat(14), { minLength: 1, maxLength: 4 }), (items, capacities) => {
      const caches = new LfuCaches(capacities)
      const hits = new Float64Array(capacities.length)
      for (const item of items) caches.use(item, hits)
      const expected = capacities.map((capacity) => hitsOf(items, capacity, leastUsed).filter((isHit) => isHit).length)
      expect([...hits]).toEqual(expected)
    }),
  )
})

describe('balance', () => {
  test('of an even choice, and of one that has only some experts', () => {
    expect(balanceOf(Array(8).fill(5), 2)).toEqual({
      ...{ entropy_bits: 3, entropy_share: 1, max_to_mean: 1, gini: 0, variation: 0, unused: 0, most_used: 0 },
      ...{ top_experts: 2, top_share: 0.25 },
    })
    const two = balanceOf([0, 7, 0, 7, 0, 0, 0, 0], 1)
    expect(two).toMatchObject({ entropy_bits: 1, max_to_mean: 4, gini: 0.75, unused: 6, most_used: 1 })
    expect(two).toMatchObject({ variation: Math.sqrt(3), top_experts: 1, top_share: 0.5 })
  })

  test('entropy, Gini and variation are those of their definitions', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 2, maxLength: 40 }), (counts) => {
        fc.pre(counts.some((count) => count > 0))
        const all = counts.reduce((sum, count) => sum + count, 0)
        const entropy = counts.reduce((sum, count) => sum + (count > 0 ? (count / all) * Math.log2(all / count) : 0), 0)
        const differences = counts.flatMap((a) => counts.map((b) => Math.abs(a - b)))
        const gini = mean(differences) / (2 * mean(counts))
        const deviation = Math.sqrt(mean(counts.map((count) => (count - mean(counts)) ** 2)))
        const found = balanceOf(counts, 1)
        expect(found.entropy_bits).toBeCloseTo(entropy, 9)
        expect(found.gini).toBeCloseTo(gini, 9)
        expect(found.variation).toBeCloseTo(deviation / mean(counts), 9)
      }),
    )
  })
})

describe('correlation', () => {
  test('is 1 where one figure is proportional to the other, -1 where it falls', () => {
    const xs = [1, 5, 2, 9]
    for (const [factor, r] of [
      [3, 1],
      [-2, -1],
    ] as const) {
      const { pearson, spearman } = correlationOf(
        xs,
        xs.map((x) => 7 + factor * x),
      )!
      expect(pearson).toBeCloseTo(r, 12)
      expect(spearman).toBeCloseTo(r, 12)
    }
    // Monotonic, but not linear.
    expect(
      correlationOf(
        xs,
        xs.map((x) => x ** 5),
      )!.spearman,
    ).toBeCloseTo(1, 12)
  })

  test('is not known of two pairs, or where one does not change', () => {
    expect(correlationOf([1, 2], [1, 2])).toBeNull()
    expect(correlationOf([1, 2, 3], [0.1, 0.1, 0.1])).toBeNull()
  })

  test('is that of the definitions, with ties', () => {
    const pairs = fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { minLength: 3, maxLength: 40 })
    fc.assert(
      fc.property(pairs, (pairs) => {
        const [xs, ys] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)]
        fc.pre(new Set(xs).size > 1 && new Set(ys).size > 1)
        const found = correlationOf(xs, ys)!
        expect(found.pearson).toBeCloseTo(pearson(xs, ys), 9)
        expect(found.spearman).toBeCloseTo(pearson(ranks(xs), ranks(ys)), 9)
      }),
    )
  })
})

test('of very many pairs every second one is kept, and the quarters are those of the kept ones', () => {
  const pairs = new ReusePairs()
  for (let i = 0; i < 10_000; i++) pairs.add(1 + (i % 100), 1000 * (1 + (i % 100)), 0)
  const { count, every, fault_counter, time_with_reuse, faults_with_reuse, quarters } = pairs.finish(null)!
  expect([every, count]).toEqual([4, 2500])
  expect([fault_counter, faults_with_reuse]).toEqual([null, null])
  expect(time_with_reuse!.pearson).toBeCloseTo(1, 9)
  expect(quarters.map(({ pairs }) => pairs)).toEqual([625, 625, 625, 625])
  for (const { mean_reuse_tokens, mean_time_ns, mean_faults } of quarters) {
    expect(mean_time_ns).toBeCloseTo(1000 * mean_reuse_tokens, 6)
    expect(mean_faults).toBeNull()
  }
})
