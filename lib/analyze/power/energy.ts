import { PHASES } from '../../model/call-events.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { EnergyRow } from './figures.ts'
import type { Intervals } from './intervals.ts'
import type { CallSpans, Span } from './spans.ts'

/** Energy and its error of one part of a run. */
class Part {
  measuredNs = 0
  energyJ = 0
  errorJ = 0

  /** `ns` of an interval are of this part, with `joules` by the readings. */
  add(intervals: Intervals, i: number, ns: number, joules: number): void {
    if (ns <= 0) return
    const seconds = ns / 1e9
    this.measuredNs += ns
    this.energyJ += joules
    if (intervals.bounds) {
      this.errorJ += Math.max(
        intervals.bounds.high[i]! * seconds - joules,
        joules - intervals.bounds.low[i]! * seconds,
        0,
      )
      return
    }
    // What this part has more or less than its share by time, the rest of the interval has less or more.
    const restS = Math.max((intervals.ends[i]! - intervals.starts[i]!) / 1e9 - seconds, 0)
    this.errorJ += intervals.spread * Math.min(seconds, restS)
  }
}

/** Energy by phase, between calls and of the run, from one meter. Without calls, of all intervals. In ns, J and W. */
export function energyRows(intervals: Intervals, calls: CallSpans): EnergyRow[] {
  const spans = calls.sorted()
  const parts = PHASES.map(() => new Part())
  const [between, all] = [new Part(), new Part()]
  const fromNs = spans[0]?.startNs ?? -Infinity
  const toNs = spans.reduce((end, span) => Math.max(end, span.endNs), spans.length > 0 ? -Infinity : Infinity)
  let first = 0
  for (let i = 0; i < intervals.count; i++) {
    const [startNs, endNs] = [Math.max(intervals.starts[i]!, fromNs), Math.min(intervals.ends[i]!, toNs)]
    if (endNs <= startNs) continue
    while (first < spans.length && spans[first]!.endNs <= startNs) first++
    const inCalls = phasesIn(intervals, i, startNs, endNs, spans, first)
    const wholeJ = joulesIn(intervals, i, startNs, endNs)
    for (const [phase, { ns, joules }] of inCalls.phases.entries()) parts[phase]!.add(intervals, i, ns, joules)
    between.add(intervals, i, endNs - startNs - inCalls.ns, Math.max(wholeJ - inCalls.joules, 0))
    all.add(intervals, i, endNs - startNs, wholeJ)
  }
  const rows = PHASES.flatMap((phase, n) =>
    calls.calls[n] === 0 ? [] : [rowOf(phase, parts[n]!, calls.calls[n]!, calls.tokens[n]!, calls.timeNs[n]!)],
  )
  if (rows.length === 0) return [rowOf('all', all, 0, 0, all.measuredNs)]
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)
  const inCallsNs = unionNs(spans)
  return [
    ...rows,
    rowOf('between calls', between, 0, 0, Math.max(toNs - fromNs - inCallsNs, 0)),
    rowOf('all', all, sum(calls.calls), sum(calls.tokens), toNs - fromNs),
  ]
}

/** Energy of an interval from `startNs` to `endNs`, within it. */
function joulesIn(intervals: Intervals, i: number, startNs: number, endNs: number): number {
  const lengthNs = intervals.ends[i]! - intervals.starts[i]!
  const at = (ns: number) =>
    intervals.from[i]! + ((intervals.to[i]! - intervals.from[i]!) * (ns - intervals.starts[i]!)) / lengthNs
  return ((at(startNs) + at(endNs)) / 2) * ((endNs - startNs) / 1e9)
}

/** Time and energy of each phase in a part of an interval, and of all calls; calls at the same time count once in the latter. */
function phasesIn(
  intervals: Intervals,
  i: number,
  startNs: number,
  endNs: number,
  spans: readonly Span[],
  first: number,
) {
  const phases = new Map<number, { ns: number; joules: number }>()
  let [ns, joules, untilNs] = [0, 0, startNs]
  for (let j = first; j < spans.length && spans[j]!.startNs < endNs; j++) {
    const span = spans[j]!
    const [from, to] = [Math.max(span.startNs, startNs), Math.min(span.endNs, endNs)]
    if (to <= from) continue
    const busy = span.busyNs < span.endNs - span.startNs ? span.busyNs / (span.endNs - span.startNs) : 1
    const known = getOrMake(phases, span.phase, () => ({ ns: 0, joules: 0 }))
    known.ns += (to - from) * busy
    known.joules += joulesIn(intervals, i, from, to) * busy
    const since = Math.max(from, untilNs)
    if (to <= since) continue
    ns += (to - since) * busy
    joules += joulesIn(intervals, i, since, to) * busy
    untilNs = to
  }
  return { phases, ns, joules }
}

/** Time in which there is a call, of sorted spans. */
function unionNs(spans: readonly Span[]): number {
  let [ns, untilNs] = [0, -Infinity]
  for (const { startNs, endNs, busyNs } of spans) {
    const since = Math.max(startNs, untilNs)
    if (endNs <= since) continue
    ns += ((endNs - since) * Math.min(busyNs, endNs - startNs)) / (endNs - startNs)
    untilNs = endNs
  }
  return ns
}

/** Less of the time was measured: energy per call and token would be a guess. */
const MEASURED_MIN = 0.5

function rowOf(phase: EnergyRow['phase'], part: Part, calls: number, tokens: number, timeNs: number): EnergyRow {
  const { measuredNs, energyJ, errorJ } = part
  const share = timeNs > 0 ? Math.min(measuredNs / timeNs, 1) : 0
  const per = (joules: number, count: number) =>
    phase !== 'between calls' && count > 0 && share >= MEASURED_MIN ? joules / (count * share) : null
  return {
    phase,
    calls,
    tokens,
    time_ns: Math.round(timeNs),
    measured_ns: Math.round(measuredNs),
    energy_j: energyJ,
    error_j: errorJ,
    mean_w: measuredNs > 0 ? (energyJ * 1e9) / measuredNs : null,
    j_per_call: per(energyJ, calls),
    j_per_token: per(energyJ, tokens),
    j_per_token_error: per(errorJ, tokens),
  }
}

/** The sum of several meters, row by row. */
export function sumOf(rows: readonly (readonly EnergyRow[])[]): EnergyRow[] {
  const [first, ...others] = rows
  if (!first || others.length === 0) return first ? [...first] : []
  return first.map((row, i) => {
    const same = rows.map((row) => row[i]!)
    const sum = (key: 'energy_j' | 'error_j') => same.reduce((total, row) => total + row[key], 0)
    const part = new Part()
    part.measuredNs = Math.min(...same.map(({ measured_ns }) => measured_ns))
    part.energyJ = sum('energy_j')
    part.errorJ = sum('error_j')
    return rowOf(row.phase, part, row.calls, row.tokens, row.time_ns)
  })
}
