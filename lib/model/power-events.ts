import { type Bounds, wrongAmount, wrongNumber, wrongSpan, wrongValue } from './bounds.ts'
import { METER_MAX } from './limits.ts'

/** Name of the log that `record --power` writes, with its version: the first key of its first line. */
export const POWER_SCHEMA = 'ggml2perfetto.power/1'

/** What a meter measures. `power-capped`, `thermal-capped` and `slowed` are shares of time, from 0 to 1, in which a clock was held down. */
export type MeterKind =
  | 'power'
  | 'energy'
  | 'power-limit'
  | 'clock'
  | 'max-clock'
  | 'utilization'
  | 'temperature'
  | 'memory'
  | 'power-capped'
  | 'thermal-capped'
  | 'slowed'
  | 'other'

/** Units of meters. Shares are from 0 to 1, percentages from 0 to 100. */
export type MeterUnit = 'W' | 'J' | 'Hz' | '%' | '°C' | 'bytes' | 'B/s' | 'share' | 'count'

/** A meter of power, clocks or utilization: defined once, before its first reading. */
export interface MeterEvent {
  readonly kind: 'meter'
  /** Small integer, unique in the input. */
  readonly id: number
  /** Name of the device: `GPU 0`, `package-0`. */
  readonly device: number
  /** Name of the figure, as the tool or the kernel writes it: `power.draw`, `PkgWatt`, `energy_uj`. */
  readonly name: number
  readonly what: MeterKind
  readonly unit: MeterUnit
  /**
   * A value is a mean over so many ns before its reading, or the time of the reading is known only to so many ns; 0: neither. Means since
   * the reading before have a start instead ({@link ReadingEvent.startNs}).
   */
  readonly windowNs: number
  /** Another meter of the input contains what it measures: cores of a package, a rail of a board. */
  readonly isPart: boolean
}

/** A reading of a meter. Readings of a meter are in order of time. */
export interface ReadingEvent {
  readonly kind: 'reading'
  /** Id of the {@link MeterEvent}. */
  readonly meter: number
  /** Before `endNs` where the value is a mean since then; else the same. */
  readonly startNs: number
  readonly endNs: number
  /** In the meter's unit; of an energy, a total since any time, which does not decrease. */
  readonly value: number
}

/** Events of logs of power, clocks and utilization. */
export type PowerEvent = MeterEvent | ReadingEvent

/** Their ranges. */
export const POWER_BOUNDS: Bounds<PowerEvent> = {
  meter: (event) => wrongNumber('id', event.id, METER_MAX) ?? wrongAmount(event),
  reading: (event) =>
    wrongNumber('meter', event.meter, METER_MAX) ??
    wrongSpan(event.startNs, event.endNs) ??
    wrongValue('value', event.value),
}
