/** A stretch that an offset lies in, as one thing that was seen says; either end may be infinite. In ns. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** An offset, and by how much it may be wrong. In ns. */
export interface Estimate {
  readonly offsetNs: number
  readonly boundNs: number
  /** Ranges that it lies in, … */
  readonly agreeing: number
  /** … of so many. */
  readonly ranges: number
}

/**
 * The offset that most ranges agree on: the middle of where they overlap most (Marzullo's algorithm, as NTP uses it to choose
 * among clocks), so that some that are wrong, such as a thread id that was used twice, do no harm. Undefined where no more than
 * half of them agree, or where they leave one side open.
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
    if (depth > best) from = at // where several places are as good, all between them is possible
    best = depth
    to = edges[i + 1]!.at
  }
  if (best * 2 <= ranges.length || !Number.isFinite(to - from)) return undefined
  const boundNs = Math.ceil((to - from) / 2)
  return { offsetNs: Math.round(from + (to - from) / 2), boundNs, agreeing: best, ranges: ranges.length }
}

/** What two trains of times have in common. */
interface Match {
  readonly offsetNs: number
  readonly count: number
}

/** Times of a train that are looked at. */
const TRAIN_MAX = 600
/** Fewer may agree by chance. */
const MATCHES_MIN = 8
/** How many times as many have to agree as would by chance, or at any other offset. */
const CLEARLY = [4, 1.5] as const

/**
 * What to add to the times of `here` so that they meet those of `there`, where both have seen the same happen again and again, but
 * not all of it: the difference that occurs most often within `toleranceNs` to either side. Undefined where none stands out.
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

/** The middle of the window that holds most, away from a place that is known. */
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
