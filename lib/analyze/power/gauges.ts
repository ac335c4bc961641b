import type { CappedFigures, GaugeFigures } from './figures.ts'
import type { Readings } from './readings.ts'
import type { CallSpans, Span } from './spans.ts'

/** How long a reading of each was in force, in calls: until the next one, or since the one before where it is a mean. */
export function* inCalls(
  readings: Readings,
  calls: CallSpans,
): Generator<{ readonly value: number; readonly ns: number; readonly i: number }> {
  const spans = calls.sorted()
  const { count, starts, ends, values } = readings
  for (let i = 0, first = 0; i < count; i++) {
    const isMean = starts[i]! < ends[i]!
    if (!isMean && i + 1 >= count && i > 0) return // how long it was in force is not known
    const fromNs = starts[i]!
    const toNs = isMean ? ends[i]! : i + 1 < count ? ends[i + 1]! : fromNs + 1
    while (first < spans.length && spans[first]!.endNs <= fromNs) first++
    const ns = spans.length === 0 ? toNs - fromNs : overlapNs(spans, first, fromNs, toNs)
    if (ns > 0) yield { value: values[i]!, ns, i }
  }
}

/** Time in calls from `fromNs` to `toNs`; calls at the same time count once. */
function overlapNs(spans: readonly Span[], first: number, fromNs: number, toNs: number): number {
  let [ns, untilNs] = [0, fromNs]
  for (let j = first; j < spans.length && spans[j]!.startNs < toNs; j++) {
    const { startNs, endNs, busyNs } = spans[j]!
    const [from, to] = [Math.max(startNs, untilNs), Math.min(endNs, toNs)]
    if (to <= from) continue
    ns += ((to - from) * Math.min(busyNs, endNs - startNs)) / (endNs - startNs)
    untilNs = to
  }
  return ns
}

/** A gauge over the time of calls; null without readings there. Its values are multiplied by `factor`. */
export function gaugeOf(readings: Readings | undefined, calls: CallSpans, factor = 1): GaugeFigures | null {
  if (!readings) return null
  let [sum, allNs, min, max] = [0, 0, Infinity, -Infinity]
  for (const { value, ns } of inCalls(readings, calls)) {
    sum += value * ns
    allNs += ns
    min = Math.min(min, value)
    max = Math.max(max, value)
  }
  return allNs > 0 ? { mean: (factor * sum) / allNs, min: factor * min, max: factor * max } : null
}

/** What held a clock down: of several meters, each time the one that says most. `clock`: of the same device. */
export function cappedOf(
  limits: readonly Readings[],
  clock: Readings | undefined,
  calls: CallSpans,
): CappedFigures | null {
  let best: CappedFigures | null = null
  for (const readings of limits) {
    const found = cappedBy(readings, clock, calls)
    if (found && (best === null || found.time_ns > best.time_ns)) best = found
  }
  return best
}

function cappedBy(readings: Readings, clock: Readings | undefined, calls: CallSpans): CappedFigures | null {
  let [cappedNs, allNs] = [0, 0]
  const clocks = { cappedHz: 0, cappedNs: 0, freeHz: 0 }
  let at = 0
  for (const { value, ns, i } of inCalls(readings, calls)) {
    const share = Math.min(Math.max(value, 0), 1)
    cappedNs += share * ns
    allNs += ns
    if (!clock) continue
    while (at + 1 < clock.count && clock.ends[at]! < readings.ends[i]!) at++
    const Hz = clock.values[at] ?? NaN
    if (!Number.isFinite(Hz)) continue
    clocks.cappedHz += Hz * share * ns
    clocks.cappedNs += share * ns
    if (share < 0.5) clocks.freeHz = Math.max(clocks.freeHz, Hz)
  }
  if (allNs === 0) return null
  return {
    share: cappedNs / allNs,
    time_ns: Math.round(cappedNs),
    clock_hz: clocks.cappedNs > 0 ? clocks.cappedHz / clocks.cappedNs : null,
    free_clock_hz: clocks.freeHz > 0 ? clocks.freeHz : null,
  }
}
