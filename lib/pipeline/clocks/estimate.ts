/** An interval that contains the offset, by one observation; either end may be infinite. In ns. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** An offset and its maximum error. In ns. */
export interface Estimate {
  readonly offsetNs: number
  readonly boundNs: number
  /** Number of ranges that contain it, … */
  readonly agreeing: number
  /** … of all. */
  readonly ranges: number
}

/**
 * The middle of the interval that most ranges contain (Marzullo's algorithm, which NTP uses to select clocks): a few wrong
 * ranges, for example of a reused thread id, have no effect. Undefined if at most half of the ranges agree, or if the interval is
 * infinite.
 */
export function estimateOffset(ranges: readonly Range[]): Estimate | undefined {
  const edges = ranges
    .filter(({ from, to }) => from <= to)
    .flatMap(({ from, to }) => [
      { at: from, step: 1 },
      { at: to, step: -1 },
    ])
    .sort((a, b) => a.at - b.at || b.step - a.step)
  let [depth, best] = [0, 0]
  let [from, to] = [Number.NaN, Number.NaN]
  for (const [i, { at, step }] of edges.entries()) {
    depth += step
    if (step < 0 || depth < best) continue
    if (depth > best) from = at // of several equally deep intervals: from the first to the last
    best = depth
    to = edges[i + 1]!.at
  }
  if (best * 2 <= ranges.length || !Number.isFinite(to - from)) return undefined
  const boundNs = Math.ceil((to - from) / 2)
  return { offsetNs: Math.round(from + (to - from) / 2), boundNs, agreeing: best, ranges: ranges.length }
}

/** The offset between two sequences of times, and how many pairs of times it matches. */
interface Match {
  readonly offsetNs: number
  readonly count: number
}

/** Times of a sequence that are compared. */
const TRAIN_MAX = 600
/** Fewer matches may be chance. */
const MATCHES_MIN = 8
/** Required ratio of matches to those by chance, and to those at any other offset. */
const CLEARLY = [4, 1.5] as const

/**
 * The offset from the times of `here` to those of `there`, if both contain times of the same repeated event, each incompletely:
 * the most frequent difference, within ± `toleranceNs`. Undefined if none is clearly the most frequent.
 */
export function matchTrains(there: readonly number[], here: readonly number[], toleranceNs: number): Match | undefined {
  const [a, b] = [there.slice(0, TRAIN_MAX), here.slice(0, TRAIN_MAX)]
  if (Math.min(a.length, b.length) < MATCHES_MIN) return undefined
  const differences = Float64Array.from(
    { length: a.length * b.length },
    (_, i) => a[Math.floor(i / b.length)]! - b[i % b.length]!,
  )
  differences.sort()
  const best = densest(differences, toleranceNs, Number.NaN)
  const other = densest(differences, toleranceNs, best.offsetNs)
  const spanNs = differences[differences.length - 1]! - differences[0]!
  const chance = (differences.length * 2 * toleranceNs) / spanNs
  const isClear = best.count >= CLEARLY[0] * chance && best.count >= CLEARLY[1] * other.count
  return best.count >= MATCHES_MIN && isClear ? best : undefined
}

/** The middle of the window with the most differences, not near `away`. */
function densest(sorted: Float64Array, toleranceNs: number, away: number): Match {
  let best = { offsetNs: 0, count: 0 }
  let end = 0
  for (let start = 0; start < sorted.length; start++) {
    while (end < sorted.length && sorted[end]! - sorted[start]! <= 2 * toleranceNs) end++
    const count = end - start
    const offsetNs = sorted[(start + end - 1) >>> 1]!
    if (count > best.count && !(Math.abs(offsetNs - away) <= 4 * toleranceNs)) best = { offsetNs, count }
  }
  return best
}
