import { sumOf } from './calls.ts'
import { LEVEL, resampled } from './intervals.ts'
import type { Plan, ScenarioOf, Source } from './plan.ts'

/** How far a time may be below and above what is expected: logarithms of factors, at least 0. */
export interface Spread {
  readonly down: number
  readonly up: number
}

/** What is certain. */
export const NO_SPREAD: Spread = { down: 0, up: 0 }
/** Time cannot vanish. */
const LEAST = 1e-3

/**
 * What changes leave uncertain. Each source is put to its bounds by itself, all others as expected; sources know nothing of each other, so that they are
 * added as independent ones are: the root of the sum of their squares. `totalOf`: the time of all calls.
 */
export function spreadOf(plans: readonly Plan[], totalOf: (scenarioOf: ScenarioOf) => number): Spread {
  const expected = totalOf(() => 'expected')
  const sources = [...new Set(plans.flatMap((plan) => plan.sources))]
  const by = (source: Source, scenario: 'low' | 'high') =>
    Math.log(Math.max(totalOf((one) => (one === source ? scenario : 'expected')) / expected, LEAST))
  const spreads = sources.map((source) => {
    const both = [by(source, 'low'), by(source, 'high')]
    return { down: Math.max(-Math.min(...both), 0), up: Math.max(...both, 0) }
  })
  return rootOfSquares(spreads)
}

/** What the mean of these varies by, if others of the same calls had been recorded. */
export function sampling(ns: readonly number[]): Spread {
  const tail = (1 - LEVEL) / 2
  const mean = sumOf(ns) / ns.length
  const [low, high] = [tail, 1 - tail].map((quantile) => Math.log(resampled(ns, quantile) / mean)) as [number, number]
  return { down: Math.max(-low, 0), up: Math.max(high, 0) }
}

/** Independent ones, and an error to both sides. */
export const together = (changes: Spread, error: number, samples: Spread): Spread =>
  rootOfSquares([changes, { down: error, up: error }, samples])

const rootOfSquares = (spreads: readonly Spread[]): Spread => ({
  down: Math.hypot(...spreads.map(({ down }) => down)),
  up: Math.hypot(...spreads.map(({ up }) => up)),
})
