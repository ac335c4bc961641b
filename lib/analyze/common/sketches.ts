import { DDSketch } from '@datadog/sketches-js'
import type { Buckets, Distribution } from './figures.ts'

/** Of quantiles; DDSketch guarantees it (Masson et al., VLDB 2019). */
export const RELATIVE_ERROR = 0.01

/** The distribution of durations; without a sketch only their mean. */
export function distributionOf(sketch: DDSketch | undefined, count: number, sumNs: number): Distribution | null {
  if (!sketch || count === 0) return null
  return {
    count,
    mean_ns: sumNs / count,
    min_ns: sketch.min,
    p50_ns: quantileOf(sketch, 0.5),
    p90_ns: quantileOf(sketch, 0.9),
    p99_ns: quantileOf(sketch, 0.99),
    max_ns: sketch.max,
  }
}

/** The nearest-rank quantile, within the extremes, which are exact: of two values, p99 is the larger one. */
function quantileOf(sketch: DDSketch, quantile: number): number {
  const { count, min, max } = sketch
  const rank = Math.ceil(quantile * count) - 1
  // Half a rank more, so that rounding cannot end in the bucket before.
  const value = sketch.getValueAtQuantile(count > 1 ? Math.min((rank + 0.5) / (count - 1), 1) : 0)
  return Math.min(Math.max(Math.round(value), min), max)
}

/** The counts of a sketch's buckets. */
export function bucketsOf(sketch: DDSketch | undefined): Buckets | null {
  if (!sketch) return null
  const { bins, minKey, maxKey, offset } = sketch.store
  if (sketch.store.count === 0) return { first: 0, counts: [] }
  return { first: minKey, counts: bins.slice(minKey - offset, maxKey - offset + 1) }
}

/** A distribution of times. */
export class TimesNs {
  private readonly sketch = new DDSketch({ relativeAccuracy: RELATIVE_ERROR })
  sumNs = 0

  /** Adds a time, if it is known. */
  add(ns: number | null | undefined): void {
    if (ns === null || ns === undefined) return
    this.sketch.accept(ns)
    this.sumNs += ns
  }

  get count(): number {
    return this.sketch.count
  }

  figures(): Distribution | null {
    return distributionOf(this.sketch, this.count, this.sumNs)
  }
}

/** A sketch of all values of several distributions. */
export class MergedSketch {
  private readonly sketch = new DDSketch({ relativeAccuracy: RELATIVE_ERROR })
  private sumNs = 0

  /** Adds the values of one; those of 0 ns are in no bucket. */
  add({ count, mean_ns, min_ns, max_ns }: Distribution, { first, counts }: Buckets): void {
    const { sketch } = this
    let zeros = count
    for (const [i, value] of counts.entries()) {
      if (value > 0) sketch.store.add(first + i, value)
      zeros -= value
    }
    sketch.zeroCount += zeros
    sketch.count += count
    sketch.min = Math.min(sketch.min, min_ns)
    sketch.max = Math.max(sketch.max, max_ns)
    this.sumNs += mean_ns * count
  }

  finish(): Distribution | null {
    return distributionOf(this.sketch, this.sketch.count, this.sumNs)
  }
}
