import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { studentQuantile, studentTail } from '../../../lib/analyze/compare/student.ts'

/** Two-sided tables of Student's t, as any book has them. */
const TABLE = [
  [0.05, 1, 12.706204736174698],
  [0.05, 2, 4.302652729749464],
  [0.05, 8, 2.306004135204165],
  [0.05, 30, 2.0422724563012373],
  [0.01, 4, 4.604094871349993],
  [0.001, 10, 4.586893858702636],
  [0.5, 5, 0.7266868438004229],
] as const

test.each(TABLE)('t of a tail of %d with %d degrees of freedom', (tail, df, t) => {
  expect(studentQuantile(tail, df)).toBeCloseTo(t, 9)
})

test('closed forms: 1 and 2 degrees of freedom, and the normal distribution as the limit', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.001, max: 50, noNaN: true }), (t) => {
      expect(studentTail(t, 1)).toBeCloseTo(1 - (2 / Math.PI) * Math.atan(t), 12)
      expect(studentTail(t, 2)).toBeCloseTo(1 - t / Math.sqrt(2 + t * t), 12)
    }),
  )
  expect(studentQuantile(0.05, 1e7)).toBeCloseTo(1.959964, 5)
})

test('the quantile inverts the tail, also for fractional degrees of freedom', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1e-6, max: 0.999, noNaN: true }),
      fc.double({ min: 1, max: 200, noNaN: true }),
      (p, df) => {
        expect(studentTail(studentQuantile(p, df), df) / p).toBeCloseTo(1, 8)
      },
    ),
  )
})
