import { isFailed } from '../../model/calls.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { MeterEvent, MeterKind, TraceEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { energyRows, sumOf } from './energy.ts'
import type { EnergyRow, PowerDevice, PowerFigures } from './figures.ts'
import { cappedOf, gaugeOf } from './gauges.ts'
import { type Intervals, intervalsOf } from './intervals.ts'
import { Readings } from './readings.ts'
import { CallSpans } from './spans.ts'

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
