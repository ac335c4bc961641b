/** A bound of an offset at a time, in ns. */
export interface Bound {
  readonly atNs: number
  readonly ns: number
}

/** An offset that changes at a constant rate, with its maximum error. */
export interface LineEstimate {
  /** The offset at `fromNs`, the time of the first bound. */
  readonly offsetNs: number
  readonly drift: number
  readonly fromNs: number
  readonly toNs: number
  /** Maximum error from `fromNs` to `toNs`. */
  readonly boundNs: number
  /** Further error per ns before and after them. */
  readonly beyond: number
}

/** A line by its values at the first time and at the last one. */
type Line = readonly [first: number, last: number]

/** Offsets of the quartz clocks of two machines drift by some 0.01 %, clocks that NTP slews by 0.05 % more. */
const DRIFT_MAX = 1e-3
/** Lines further away from the first bound are not searched. 1000 s. */
const FAR_NS = 1e12

/**
 * The line between lower and upper bounds: of all lines that no bound excludes, the one in the middle at both ends. The error at the ends is half of
 * what remains there; between them no line is further away, as both are straight. Undefined: bounds of one side are missing, or exclude all.
 */
export function estimateLine(lower: readonly Bound[], upper: readonly Bound[]): LineEstimate | undefined {
  const [aLower] = lower
  if (!aLower || upper.length === 0) return undefined
  let [fromNs, toNs] = [Infinity, -Infinity]
  for (const { atNs } of [...lower, ...upper]) {
    if (atNs < fromNs) fromNs = atNs
    if (atNs > toNs) toNs = atNs
  }
  const span = Math.max(toNs - fromNs, 1)
  const spread = DRIFT_MAX * span
  let lines: Line[] = [
    [-FAR_NS, -FAR_NS - spread],
    [-FAR_NS, -FAR_NS + spread],
    [FAR_NS, FAR_NS + spread],
    [FAR_NS, FAR_NS - spread],
  ]
  const cut = (bounds: readonly Bound[], side: 1 | -1) => {
    for (const { atNs, ns } of bounds) {
      if (lines.length === 0) return
      lines = beyondOf(lines, (atNs - fromNs) / span, ns - aLower.ns, side)
    }
  }
  cut(lower, 1)
  cut(upper, -1)
  return lines.length === 0 ? undefined : middleOf(lines, aLower.ns, fromNs, toNs, span)
}

/** The part of a convex polygon of lines above a bound (side 1), or below it (-1); `share`: place of the bound between the ends. */
function beyondOf(lines: readonly Line[], share: number, bound: number, side: 1 | -1): Line[] {
  const distances = lines.map(([first, last]) => side * (first + (last - first) * share - bound))
  if (distances.every((distance) => distance >= 0)) return lines as Line[]
  const left: Line[] = []
  for (const [i, line] of lines.entries()) {
    const next = (i + 1) % lines.length
    const [here, there] = [distances[i]!, distances[next]!]
    if (here >= 0) left.push(line)
    const crosses = here >= 0 !== there >= 0
    if (!crosses) continue
    const part = here / (here - there)
    const [a, b] = [line, lines[next]!]
    left.push([a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part])
  }
  return left
}

function middleOf(lines: readonly Line[], zero: number, fromNs: number, toNs: number, span: number) {
  const range = (values: readonly number[]) => [Math.min(...values), Math.max(...values)] as const
  const [first, last] = [range(lines.map(([a]) => a)), range(lines.map(([, b]) => b))]
  const boundNs = Math.ceil(Math.max(first[1] - first[0], last[1] - last[0]) / 2)
  if (boundNs >= FAR_NS / 2) return undefined
  const [a, b] = [(first[0] + first[1]) / 2, (last[0] + last[1]) / 2]
  const drift = (b - a) / span
  const drifts = range(lines.map(([a, b]) => (b - a) / span))
  const beyond = Math.max(drifts[1] - drift, drift - drifts[0])
  return { offsetNs: zero + a, drift, fromNs, toNs, boundNs, beyond }
}
