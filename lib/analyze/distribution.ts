/** A distribution. The q-quantile of n values is the one at index ⌊q · (n − 1)⌋ in order of size, with a relative error of at most 1 %. */
export interface Distribution {
  readonly count: number
  readonly mean_ns: number
  readonly min_ns: number
  readonly p50_ns: number
  readonly p90_ns: number
  readonly p99_ns: number
  readonly max_ns: number
}
