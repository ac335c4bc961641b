import { describe, expect, test } from '@jest/globals'
import {
  ALIKE,
  ATTEMPTS,
  allowedCpus,
  areAlike,
  EXCESS_MAX,
  LIMITS,
  leastAt,
  Steady,
} from '../../scripts/what-if/steady.mjs'

/** When something counts that trials of predictions measure: by a reference that is made up here. */

const [USUAL, SLOW] = [1000, 1000 * (1 + 2 * LIMITS.compute_ns)]
/** A machine whose reference takes this in turn, then the last of it for ever. */
const machineOf = (...took: number[]) => {
  let looks = 0
  const steady = new Steady(() => ({ compute_ns: took[Math.min(looks++, took.length - 1)]!, memory_ns: 1 }), 0)
  return { steady, looks: () => looks }
}
const numbered = async (number: number) => `attempt ${number}`

describe('what is measured on a machine', () => {
  test('counts at once where the reference takes what it takes at its best', async () => {
    const { steady, looks } = machineOf(USUAL)
    expect(await steady.make(numbered)).toEqual({ made: 'attempt 0', number: 0, excess: 0 })
    expect(looks()).toBe(2)
  })

  test('begins when the reference does not take more', async () => {
    const { steady } = machineOf(USUAL, USUAL, SLOW, SLOW, USUAL)
    await steady.make(numbered)
    expect(await steady.make(numbered)).toEqual({ made: 'attempt 0', number: 0, excess: 0 })
  })

  test('is made again where the reference takes more after it', async () => {
    const { steady } = machineOf(USUAL, SLOW, USUAL)
    expect(await steady.make(numbered)).toEqual({ made: 'attempt 1', number: 1, excess: 0 })
  })

  test('is the attempt with the least disturbance where all have one; then the machine is a slower one', async () => {
    const { steady } = machineOf(USUAL, USUAL, ...Array.from({ length: 8 }, () => 2 * SLOW), SLOW)
    await steady.make(numbered)
    const worst = await steady.make(numbered)
    expect(worst.excess).toBeCloseTo(2 * EXCESS_MAX, 9)
    expect(worst.number).toBeLessThan(ATTEMPTS)
    expect(await steady.make(numbered)).toEqual({ made: 'attempt 0', number: 0, excess: 0 })
  })

  test('is disturbed by what slows down a part of the reference, too', async () => {
    const memory = [1, 1 + 2 * LIMITS.memory_ns, 1, 1 + LIMITS.memory_ns / 2]
    const steady = new Steady(() => ({ compute_ns: 1, memory_ns: memory.shift()! }), 0)
    expect((await steady.make(numbered)).number).toBe(1)
  })
})

test('turns end when the two least figures are alike', () => {
  expect(areAlike([5])).toBe(false)
  expect(areAlike([100, 300, 100 * (1 + ALIKE / 2)])).toBe(true)
  expect(areAlike([300, 100, 100 * (1 + 2 * ALIKE)])).toBe(false)
  expect(leastAt([3, 1, 2])).toBe(1)
})

test('CPUs that a process may use', () => {
  expect(allowedCpus('Name:\tx\nCpus_allowed_list:\t0-1,4,6-7\n')).toEqual([0, 1, 4, 6, 7])
})
