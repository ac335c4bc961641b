/** A distribution. Quantiles are nearest-rank (the ⌈q · n⌉-th of n values), with a relative error of at most 1 %; the other figures are exact. */
export interface Distribution {
  readonly count: number
  readonly mean_ns: number
  readonly min_ns: number
  readonly p50_ns: number
  readonly p90_ns: number
  readonly p99_ns: number
  readonly max_ns: number
}
