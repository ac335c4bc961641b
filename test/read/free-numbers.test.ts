import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { FreeNumbers } from '../../lib/read/common/free-numbers.ts'

test('always the wanted number that was used before, or the smallest free one', () => {
  const step = fc.record({ isTake: fc.boolean(), number: fc.integer({ min: 1, max: 10 }), isWanted: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const numbers = new FreeNumbers(1)
      const [taken, seen] = [new Set<number>(), new Set<number>()]
      for (const { isTake, number, isWanted } of steps) {
        if (!isTake) {
          taken.delete(number)
          numbers.release(number)
          continue
        }
        let expected = 1
        while (taken.has(expected)) expected++
        if (isWanted && seen.has(number) && !taken.has(number)) expected = number
        expect(isWanted ? numbers.take(number) : numbers.take()).toBe(expected)
        taken.add(expected)
        seen.add(expected)
      }
    }),
  )
})
