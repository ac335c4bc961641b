import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { orderOf } from '../../lib/node/record/runs.ts'

test('each side comes equally often, and blocks of four have both orders', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
      (n, numbers) => {
        const order = orderOf(n, () => numbers.next().value!)
        expect([order.length, order.filter((side) => side === 'a').length]).toEqual([2 * n, n])
        for (let i = 0; i + 4 <= order.length; i += 4) {
          const [first, second, third, fourth] = order.slice(i, i + 4)
          expect([first === fourth, second === third, first === second]).toEqual([true, true, false])
        }
      },
    ),
  )
  expect(orderOf(1, () => 0.9)).toEqual(['b', 'a'])
})
