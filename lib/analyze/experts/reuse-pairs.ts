import { correlationOf } from './correlation.ts'
import type { ReuseAndTime, ReuseQuarter } from './figures.ts'

/** Pairs that are kept; of more, every second one, or every fourth …. */
const PAIRS_MAX = 4096
const QUARTERS = 4

interface Pair {
  readonly reuse: number
  readonly timeNs: number
  readonly faults: number
}

/** Pairs of reuse distances and times. */
export class ReusePairs {
  private pairs: Pair[] = []
  private every = 1
  private seen = 0

  /** `reuse`: mean distance, in tokens. */
  add(reuse: number, timeNs: number, faults: number): void {
    if (this.seen++ % this.every !== 0) return
    this.pairs.push({ reuse, timeNs, faults })
    if (this.pairs.length < PAIRS_MAX) return
    this.pairs = this.pairs.filter((_, i) => i % 2 === 0)
    this.every *= 2
  }

  /** Null without any. `faultCounter`: name of the counter of page faults. */
  finish(faultCounter: string | null): ReuseAndTime | null {
    const { pairs, every } = this
    if (pairs.length === 0) return null
    const [reuse, time, faults] = [
      pairs.map(({ reuse }) => reuse),
      pairs.map(({ timeNs }) => timeNs),
      pairs.map(({ faults }) => faults),
    ] as const
    return {
      count: pairs.length,
      every,
      fault_counter: faultCounter,
      time_with_reuse: correlationOf(reuse, time),
      faults_with_reuse: faultCounter === null ? null : correlationOf(reuse, faults),
      time_with_faults: faultCounter === null ? null : correlationOf(faults, time),
      quarters: quartersOf(pairs, faultCounter !== null),
    }
  }
}

function quartersOf(pairs: readonly Pair[], hasFaults: boolean): ReuseQuarter[] {
  if (pairs.length < QUARTERS) return []
  const sorted = pairs.toSorted((a, b) => a.reuse - b.reuse)
  return Array.from({ length: QUARTERS }, (_, i) => {
    const pairs = sorted.slice((i * sorted.length) / QUARTERS, ((i + 1) * sorted.length) / QUARTERS)
    const mean = (value: (pair: Pair) => number) => pairs.reduce((sum, pair) => sum + value(pair), 0) / pairs.length
    return {
      pairs: pairs.length,
      mean_reuse_tokens: mean(({ reuse }) => reuse),
      mean_time_ns: mean(({ timeNs }) => timeNs),
      mean_faults: hasFaults ? mean(({ faults }) => faults) : null,
    }
  })
}
