import { describe, expect, test } from '@jest/globals'
import type { Plan, ScenarioOf, Source } from '../../lib/analyze/what-if/plan.ts'
import { sampling, spreadOf, together } from '../../lib/analyze/what-if/spread.ts'

/** How uncertain parts of a prediction make it uncertain as a whole. */

const planOf = (...sources: Source[]): Plan => ({ basis: [], sources, apply: () => undefined })
/** A time whose sources multiply it by these where they are low and high. */
const totalOf = (factors: Readonly<Record<string, readonly [low: number, high: number]>>) => (scenarioOf: ScenarioOf) =>
  Object.entries(factors).reduce((total, [source, [low, high]]) => {
    const scenario = scenarioOf(source as Source)
    return total * { low, expected: 1, high }[scenario]
  }, 1000)

describe('bounds of changes', () => {
  test('of one source are its own', () => {
    const { down, up } = spreadOf([planOf('products')], totalOf({ products: [0.8, 1.1] }))
    expect([Math.exp(-down), Math.exp(up)].map((factor) => Number(factor.toFixed(9)))).toEqual([0.8, 1.1])
  })

  test('of several are the root of the sum of squares, not all at their worst at once', () => {
    const by = Math.exp(0.03)
    const other = Math.exp(0.04)
    const times = totalOf({ products: [1 / by, by], barriers: [1 / other, other] })
    const { down, up } = spreadOf([planOf('products'), planOf('barriers', 'products')], times)
    expect([down, up]).toEqual([expect.closeTo(0.05, 9), expect.closeTo(0.05, 9)])
  })

  test('of what makes a time longer where it is low are above', () => {
    const { down, up } = spreadOf([planOf('unusual')], totalOf({ unusual: [1.2, 1] }))
    expect([down, Math.exp(up)]).toEqual([0, expect.closeTo(1.2, 9)])
  })

  test('of no source are none', () => {
    expect(spreadOf([planOf()], totalOf({}))).toEqual({ down: 0, up: 0 })
  })
})

test('calls that are alike leave nothing to chance, others do; with an error all are independent', () => {
  expect(sampling([5, 5, 5, 5])).toEqual({ down: 0, up: 0 })
  const { down, up } = sampling([4, 5, 6, 5, 4, 6, 5, 5])
  expect(down).toBeGreaterThan(0.01)
  expect(up).toBeGreaterThan(0.01)
  expect(together({ down: 0.03, up: 0 }, 0.04, { down: 0, up: 0 })).toEqual({ down: 0.05, up: 0.04 })
})
