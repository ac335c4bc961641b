import { PHASES } from '../../model/call-events.ts'
import { isFailed } from '../../model/calls.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { MeterEvent, MeterKind, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { CappedFigures, EnergyRow, GaugeFigures, PowerDevice, PowerFigures } from './figures.ts'
import { type Intervals, intervalsOf } from './intervals.ts'
import { Readings } from './readings.ts'
import { CallSpans, type Span } from './spans.ts'

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
function energyRows(intervals: Intervals, calls: CallSpans): EnergyRow[] {
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
function sumOf(rows: readonly (readonly EnergyRow[])[]): EnergyRow[] {
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

/** How long a reading of each was in force, in calls: until the next one, or since the one before where it is a mean. */
function* inCalls(
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
function gaugeOf(readings: Readings | undefined, calls: CallSpans, factor = 1): GaugeFigures | null {
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
function cappedOf(limits: readonly Readings[], clock: Readings | undefined, calls: CallSpans): CappedFigures | null {
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

/** Kinds of meters of which readings are held. */
const USED: ReadonlySet<MeterKind> = new Set([
  ...(['power', 'energy', 'power-limit', 'clock', 'max-clock', 'utilization', 'temperature'] as const),
  ...(['power-capped', 'thermal-capped', 'slowed'] as const),
])

/**
 * Collects calls and readings of all inputs, in any order and in times of the trace: energy needs both. Memory grows with readings up to 24 MiB a
 * meter, then their rate is halved.
 */
export class PowerPass {
  private readonly calls = new CallSpans()
  /** By name of the input, then by id. */
  private readonly meters = new DefaultMap<string, Readings[]>(() => [])

  constructor(private readonly names: Names) {}

  /** Takes a batch of an input. */
  take(batch: readonly TraceEvent[], input: string): void {
    for (const event of batch) {
      if (event.kind === 'reading') this.meters.get(input)?.[event.meter]?.add(event.startNs, event.endNs, event.value)
      else if (event.kind === 'meter') this.define(event, input)
      else if (event.kind === 'token' && !isFailed(event)) {
        this.calls.add(event.phase, event.tokens, event.startNs, event.endNs)
      }
    }
  }

  /** Null where no meter was read. */
  finish(): PowerFigures | null {
    const byDevice = new DefaultMap<string, Readings[]>(() => [])
    for (const [, meters] of this.meters)
      for (const meter of meters) if (meter !== undefined && meter.count > 0) byDevice.of(meter.device).push(meter)
    const devices = [...byDevice].map(([, readings]) => this.device(readings))
    if (devices.length === 0) return null
    return { devices, energy: sumOf(devices.map(({ energy }) => energy).filter((rows) => rows.length > 0)) }
  }

  private define(meter: MeterEvent, input: string): void {
    if (!USED.has(meter.what)) return
    this.meters.of(input)[meter.id] = new Readings(
      meter,
      this.names.text(meter.device),
      this.names.text(meter.name),
      input,
    )
  }

  /** A device, by the input that measures its energy best: as a total, else most often. */
  private device(meters: readonly Readings[]): PowerDevice {
    const { calls } = this
    const rank = ({ meter, count }: Readings) =>
      meter.isPart ? 0 : meter.what === 'energy' ? 2 ** 32 : meter.what === 'power' ? count : 0
    const best = meters.reduce((a, b) => (rank(b) > rank(a) ? b : a))
    const own = meters.filter(({ input }) => input === best.input)
    const energy = own.filter((readings) => readings.meter.what === best.meter.what && rank(readings) > 0)
    const intervals = energy.map(intervalsOf).filter(({ count }) => count > 0)
    const readingsOf = (what: MeterKind) => own.filter(({ meter }) => meter.what === what)
    const [clock] = readingsOf('clock')
    const limits = readingsOf('power-limit').map((limit) => gaugeOf(limit, calls)?.min ?? null)
    return {
      device: best.device,
      input: best.input,
      meters: energy.map(({ name }) => name),
      method: intervals[0]?.method ?? null,
      interval_ns: intervals[0]?.medianNs ?? null,
      window_ns: Math.max(0, ...energy.map(({ meter }) => meter.windowNs)),
      energy: this.energyOf(intervals),
      power_limit_w: limits.reduce((a, b) => (a === null || (b !== null && b < a) ? b : a), null),
      power_w: powerOf(energy, calls),
      clock_hz: gaugeOf(clock, calls),
      max_clock_hz: gaugeOf(readingsOf('max-clock')[0], calls)?.max ?? null,
      utilization_share: gaugeOf(readingsOf('utilization')[0], calls, 0.01),
      temperature_c: hottest(readingsOf('temperature'), calls),
      power_capped: cappedOf(readingsOf('power-capped'), clock, calls),
      thermal_capped: cappedOf(readingsOf('thermal-capped'), clock, calls),
      slowed: cappedOf(readingsOf('slowed'), clock, calls),
    }
  }

  private energyOf(intervals: readonly Intervals[]): EnergyRow[] {
    return sumOf(intervals.map((interval) => energyRows(interval, this.calls)))
  }
}

/** Of samples and means as they are; of totals there is only the energy. */
function powerOf(meters: readonly Readings[], calls: CallSpans) {
  const [only, ...others] = meters
  return only?.meter.what === 'power' && others.length === 0 ? gaugeOf(only, calls) : null
}

function hottest(sensors: readonly Readings[], calls: CallSpans) {
  const all = sensors.flatMap((sensor) => gaugeOf(sensor, calls) ?? [])
  return all.reduce<(typeof all)[0] | null>((a, b) => (a === null || b.max > a.max ? b : a), null)
}
