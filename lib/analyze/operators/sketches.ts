import type { DDSketch } from '@datadog/sketches-js'
import type { Buckets } from '../analysis.ts'
import type { Distribution } from '../distribution.ts'

/** Of quantiles; DDSketch guarantees it (Masson et al., VLDB 2019). */
export const RELATIVE_ERROR = 0.01

/** The distribution of durations; without a sketch only their mean. */
export function distributionOf(sketch: DDSketch | undefined, count: number, sumNs: number): Distribution | null {
  if (!sketch || count === 0) return null
  const { min, max } = sketch
  const at = (quantile: number) => Math.min(Math.max(Math.round(sketch.getValueAtQuantile(quantile)), min), max)
  return {
    count,
    mean_ns: sumNs / count,
    min_ns: min,
    p50_ns: at(0.5),
    p90_ns: at(0.9),
    p99_ns: at(0.99),
    max_ns: max,
  }
}

/** The counts of a sketch's buckets. */
export function bucketsOf(sketch: DDSketch | undefined): Buckets | null {
  if (!sketch) return null
  const { bins, minKey, maxKey, offset } = sketch.store
  if (sketch.store.count === 0) return { first: 0, counts: [] }
  return { first: minKey, counts: bins.slice(minKey - offset, maxKey - offset + 1) }
}
