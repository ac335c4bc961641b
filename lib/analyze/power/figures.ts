import type { Phase } from '../../model/events.ts'

/** Energy, clocks and what held them down, by the meters of the inputs. */
export interface PowerFigures {
  /** In order of their first reading. */
  readonly devices: readonly PowerDevice[]
  /** All devices with known energy together, by phase; empty where there are none. */
  readonly energy: readonly EnergyRow[]
}

/** A device with meters. */
export interface PowerDevice {
  /** Such as `GPU 0`, `package-0`. */
  readonly device: string
  /** The log that its figures are from. */
  readonly input: string
  /** Names of the meters from which its energy is computed; parts of others are not among them. */
  readonly meters: readonly string[]
  /**
   * `totals`: differences of counters of energy; `means`: means since the reading before; `samples`: integrated between readings, or means over
   * a longer time than that.
   */
  readonly method: 'totals' | 'means' | 'samples' | null
  /** Median time between readings; null with fewer than two. */
  readonly interval_ns: number | null
  /** A reading is a mean over so long before it, or its time is known only to that; 0: neither. */
  readonly window_ns: number
  /** By phase, then between calls, then of the whole run; without calls, of the whole log. Empty where energy is not known. */
  readonly energy: readonly EnergyRow[]
  /** The limit of its power, the lowest that was in force; null where it was not read. */
  readonly power_limit_w: number | null
  /** Mean in calls, by time, and the least and the most; null where it was not read. */
  readonly power_w: GaugeFigures | null
  readonly clock_hz: GaugeFigures | null
  /** The highest clock that the device allows. */
  readonly max_clock_hz: number | null
  /** From 0 to 1. */
  readonly utilization_share: GaugeFigures | null
  readonly temperature_c: GaugeFigures | null
  /** What held its clock down; null where it was not read. */
  readonly power_capped: CappedFigures | null
  readonly thermal_capped: CappedFigures | null
  readonly slowed: CappedFigures | null
}

/** Energy in a part of the run. */
export interface EnergyRow {
  /** `between calls`: of the run, in no call; `all`: from the start of the first call to the end of the last one. */
  readonly phase: Phase | 'between calls' | 'all'
  readonly calls: number
  /** Of calls whose tokens are known. */
  readonly tokens: number
  readonly time_ns: number
  /** Part of `time_ns` for which there are readings: energies are of this part. */
  readonly measured_ns: number
  readonly energy_j: number
  /**
   * How far `energy_j` may be off because of the rate of the readings. Of totals and means, whose whole intervals are exact: the smaller part of
   * each interval that is cut, times the most power of the log minus the least. Of samples: if the power between two of them was between those
   * around it. The error of the meter itself is not in it.
   */
  readonly error_j: number
  readonly mean_w: number | null
  /** Null where less than half of the time was measured. */
  readonly j_per_call: number | null
  readonly j_per_token: number | null
  readonly j_per_token_error: number | null
}

/** A figure over the time of calls; without calls, of the log. */
export interface GaugeFigures {
  readonly mean: number
  readonly min: number
  readonly max: number
}

/** Time in which something held the clock down. */
export interface CappedFigures {
  /** Of the time of calls that was measured; without calls, of the log. */
  readonly share: number
  readonly time_ns: number
  /** Mean clock meanwhile, and the highest one otherwise; null where it was not read. */
  readonly clock_hz: number | null
  readonly free_clock_hz: number | null
}
