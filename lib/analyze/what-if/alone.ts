import type { Factor } from './plan.ts'

/** Products of a run take so many times what was measured of them alone. */
export const IN_RUN = 1.1
/** More than this is no chance. */
export const UNUSUAL = 1.3
/** What is added may become this part of it, or so many times as much. */
const ADDED = { low: 0.5, high: 1.5 }

/** Times of a step, in ns: in the run, and as measured alone before and after a change. */
export interface Alone {
  readonly run: number
  readonly before: number
  readonly after: number
}

/** What remains of what products take in addition, if a run takes so many times what was measured alone: other programs may have taken what is unusual. */
export function keptOf(ratio: number): Factor {
  const share = (limit: number) => (ratio > limit ? (limit - 1) / (ratio - 1) : 1)
  return { low: ADDED.low * share(IN_RUN), expected: Math.sqrt(share(UNUSUAL)), high: ADDED.high }
}

/** The same with so many times as many inputs and results: what is added is between as much and as many times as much, and their root is expected. */
export function ofSequences({ low, expected, high }: Factor, times: number): Factor {
  return {
    low: low * Math.min(times, 1),
    expected: expected * Math.sqrt(times),
    high: high * Math.max(times, 1),
  }
}

/**
 * The time of a step after a change, by that in the run. What is measured alone has its inputs, its code and its results in caches, and its pages in memory. In a model a step begins
 * without them, which takes about as long whatever the step computes then: it is added, and no factor. `kept`: what remains of it. `times`: it is so many times as much, as of more tokens.
 * A run that takes less than what was measured is no slower: the measurement was disturbed, by what is of the same share afterwards, or not at all.
 */
export function afterAlone({ run, before, after }: Alone, kept: Factor, times = 1): Factor {
  if (run < before) {
    const ratio = run / before
    return { low: after / before, expected: (after * Math.sqrt(ratio)) / run, high: after / run }
  }
  const withAdded = (share: number) => (after + share * times * (run - before)) / run
  return { low: withAdded(kept.low), expected: withAdded(kept.expected), high: withAdded(kept.high) }
}
