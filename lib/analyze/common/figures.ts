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

/** A figure that the inputs do not contain. */
export interface Undetermined {
  /** The field, such as `calls.ttft_ns`. */
  readonly what: string
  readonly why: string
  /** How to get it, such as an option of `record`. */
  readonly hint?: string | undefined
}

/** Bucket `first + i` counts the values v with γ^(n−1) < v ≤ γ^n in ns, n = first + i, γ = 1.01 / 0.99. Values of 0 are in no bucket. */
export interface Buckets {
  readonly first: number
  readonly counts: readonly number[]
}

/** A sentence of the diagnosis. */
export interface Finding {
  readonly rule: string
  readonly sentence: string
  /** Time that it explains, in ns: findings are ranked by it. */
  readonly time_ns: number
  readonly confidence: 'high' | 'medium' | 'low'
  readonly confidence_reason: string
  /** The figures behind it, by name and unit. */
  readonly evidence: Readonly<Record<string, string | number>>
  /** How to see it. */
  readonly check: FindingCheck
  /** What to do about it. */
  readonly advice: string
}

/** Shows the figure of the evidence with this key: as the first column of the first row of a query, or in the output of a command. */
export interface FindingCheck {
  readonly evidence: string
  /** An SQL query on the converted trace. */
  readonly sql?: string | undefined
  readonly command?: string | undefined
}
