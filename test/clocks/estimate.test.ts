import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { estimateOffset, matchTrains } from '../../lib/pipeline/clocks/estimate.ts'

describe('an offset that most agree on', () => {
  test('lies in the overlap, in its middle, and is bound by it', () => {
    const ranges = [
      { from: 0, to: 100 },
      { from: 60, to: 200 },
      { from: -Infinity, to: 80 },
    ]
    expect(estimateOffset(ranges)).toEqual({ offsetNs: 70, boundNs: 10, agreeing: 3, ranges: 3 })
  })

  test('is none where sights are few, one-sided, or at odds', () => {
    expect(estimateOffset([])).toBeUndefined()
    expect(estimateOffset([{ from: 5, to: Infinity }])).toBeUndefined()
    expect(estimateOffset([{ from: 5, to: 4 }])).toBeUndefined()
    expect(
      estimateOffset([
        { from: 0, to: 1 },
        { from: 5, to: 6 },
      ]),
    ).toBeUndefined()
  })

  test('spans all places that are as good as each other', () => {
    const ranges = [
      { from: 0, to: 100 },
      { from: 10, to: 20 },
      { from: 70, to: 80 },
    ]
    expect(estimateOffset(ranges)).toEqual({ offsetNs: 45, boundNs: 35, agreeing: 2, ranges: 3 })
  })

  test('is right within its bound, though less than half of what was seen is wrong', () => {
    const width = fc.integer({ min: 1, max: 1e9 })
    const right = fc.array(fc.tuple(width, width), { minLength: 3, maxLength: 30 })
    const wrong = fc.array(fc.tuple(fc.integer({ min: -1e12, max: 1e12 }), width), { maxLength: 30 })
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), right, wrong, (offset, good, bad) => {
        const few = bad.slice(0, good.length - 2).map(([from, length]) => ({ from, to: from + length }))
        const ranges = [...few, ...good.map(([below, above]) => ({ from: offset - below, to: offset + above }))]
        const found = estimateOffset(ranges)
        // Wrong ones may agree with right ones by chance, and take the place with them: then all of these agree there.
        if (found!.agreeing === good.length)
          expect(Math.abs(found!.offsetNs - offset)).toBeLessThanOrEqual(found!.boundNs)
        else expect(found!.agreeing).toBeGreaterThan(good.length)
      }),
    )
  })
})

describe('trains of times', () => {
  const random = (seed: number) => () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
    return seed / 2 ** 32
  }

  test('are matched, though each lacks some, and both jitter', () => {
    const next = random(7)
    let at = 0
    const all = Array.from({ length: 400 }, () => {
      at += 100_000 + next() * 2e6
      return at
    })
    const here = all.slice(100).filter(() => next() < 0.8)
    const there = all
      .slice(0, 300)
      .filter(() => next() < 0.8)
      .map((ns) => ns + 123_456_789 + next() * 5000)
    const match = matchTrains(there, here, 20_000)
    expect(Math.abs(match!.offsetNs - 123_456_789)).toBeLessThan(20_000)
  })

  test('are not where they are too short, of chance, or the same at many offsets', () => {
    const next = random(3)
    const train = () => {
      let at = 0
      return Array.from({ length: 300 }, () => {
        at += next() * 2e6
        return at
      })
    }
    expect(matchTrains(train(), train(), 20_000)).toBeUndefined()
    expect(matchTrains([1, 2, 3], [1, 2, 3], 20_000)).toBeUndefined()
    const regular = Array.from({ length: 300 }, (_, i) => i * 4e6)
    expect(matchTrains(regular, regular, 20_000)).toBeUndefined()
  })
})
