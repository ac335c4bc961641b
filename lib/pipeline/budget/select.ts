import { type CallColumns, CallKind } from './call-columns.ts'

/** A pause between calls from which on they are not summed up together: as long as one that is drawn as idle. */
const PAUSE_NS = 100e6
/** Units whose median time is what a call takes there: it grows with the context. */
const NEIGHBOURS = 256

/**
 * The slowest units first, by turns: the longest, and those that took the longest compared with the median of their neighbours of the
 * same kind.
 */
export function slowest(units: readonly number[], columns: CallColumns): number[] {
  const { slowestNs } = columns
  const ratios = ratiosOf(units, columns)
  const timed = units.filter((unit) => slowestNs[unit]! > 0)
  const longest = [...timed].sort((a, b) => slowestNs[b]! - slowestNs[a]!)
  const outliers = [...timed].sort((a, b) => ratios.get(b)! - ratios.get(a)!)
  return outliers.flatMap((unit, i) => [unit, longest[i]!])
}

function ratiosOf(units: readonly number[], { slowestNs, kinds }: CallColumns): Map<number, number> {
  const ratios = new Map<number, number>()
  for (const kind of [CallKind.Decode, CallKind.Other]) {
    const ofKind = units.filter((unit) => (kinds[unit]! & CallKind.Decode) === (kind & CallKind.Decode))
    for (let from = 0; from < ofKind.length; from += NEIGHBOURS) {
      const neighbours = ofKind.slice(from, from + NEIGHBOURS)
      const times = Float64Array.from(neighbours, (unit) => slowestNs[unit]!).sort()
      const median = times[times.length >> 1]!
      for (const unit of neighbours) ratios.set(unit, slowestNs[unit]! / Math.max(median, 1))
    }
  }
  return ratios
}

/** Units whose costs are at most `bytes` in all, evenly spread over all of them. */
export function spread(units: readonly number[], costOf: (unit: number) => number, bytes: number): number[] {
  const allBytes = units.reduce((sum, unit) => sum + costOf(unit), 0)
  const rate = Math.min(bytes / Math.max(allBytes, 1), 1)
  let credit = 0
  return units.filter((unit) => {
    const cost = costOf(unit)
    credit += rate * cost
    if (credit < cost && rate < 1) return false
    credit -= cost
    return true
  })
}

/** Units that must not be summed up with the one before: of another kind, or after a pause. */
export function kindBreaks({ kinds, startNs, endNs, count }: CallColumns): Uint8Array {
  const breaks = new Uint8Array(count)
  for (let unit = 1; unit < count; unit++) {
    const isPause = startNs[unit]! - endNs[unit - 1]! >= PAUSE_NS
    if (isPause || kinds[unit] !== kinds[unit - 1]) breaks[unit] = 1
  }
  return breaks
}
