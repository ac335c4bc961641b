import type { Analysis, EnergyRow, GaugeFigures, PowerDevice } from '../../lib/cli.ts'
import { count, duration, percent, threeDigits } from '../units.ts'
import { known, number, type Section, type StatsTable, some, tableOf, text } from './section.ts'

/** Energy by phase and token, clocks and what held them down; undefined without logs of power. */
export function powerSection({ power, calls }: Analysis): Section | undefined {
  if (!power) return undefined
  const { devices, energy } = power
  const measured = devices.filter(({ energy }) => energy.length > 0)
  const tables = measured.map((device) => energyTable(titleOf(device), device.energy))
  if (measured.length > 1 && energy.length > 0) tables.push(energyTable('all devices', energy))
  const clocks = clockTable(devices, calls.count > 0 ? 'during calls' : 'of all readings')
  return { title: 'power', tables: [...tables, ...(clocks.rows.length > 0 ? [clocks] : [])] }
}

const METHODS = {
  totals: 'from totals of energy',
  means: 'from means between readings',
  samples: 'from samples of power',
} as const

/** `GPU 0: power.draw, from samples of power, every 100 ms, means over 1 s` */
function titleOf({ device, meters, method, interval_ns, window_ns }: PowerDevice): string {
  const parts = [
    meters.join(', '),
    ...(method === null ? [] : [METHODS[method]]),
    ...(interval_ns === null ? [] : [`every ${duration(interval_ns)}`]),
    ...(window_ns > 0 ? [`blurred over ${duration(window_ns)}`] : []),
  ]
  return `${device}: ${parts.join(', ')}`
}

function energyTable(title: string, rows: readonly EnergyRow[]): StatsTable {
  const joules = (row: EnergyRow, value: number, otherwise = '') =>
    row.measured_ns > 0 ? joulesText(value) : otherwise
  const table = tableOf(rows, {}, [
    text('phase', ({ phase }) => phase),
    number('calls', ({ calls }) => some(calls, count)),
    number('tokens', ({ tokens }) => some(tokens, count)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('energy', (row) => joules(row, row.energy_j, 'not measured')),
    number('±', (row) => joules(row, row.error_j)),
    number('W', ({ mean_w }) => known(mean_w, threeDigits)),
    number('J/call', ({ j_per_call }) => known(j_per_call, threeDigits)),
    number('J/token', ({ j_per_token }) => known(j_per_token, threeDigits)),
    number('±', ({ j_per_token_error }) => known(j_per_token_error, threeDigits)),
  ])
  return { title, ...table }
}

/** `1.57 kJ`, `26.1 J`, `637 mJ`. */
function joulesText(value: number): string {
  if (value >= 1e6) return `${threeDigits(value / 1e6)} MJ`
  if (value >= 1e3) return `${threeDigits(value / 1e3)} kJ`
  return value >= 1 || value === 0 ? `${threeDigits(value)} J` : `${threeDigits(value * 1e3)} mJ`
}

/** Devices of which a clock, a limit or the like was read. */
function clockTable(devices: readonly PowerDevice[], when: string): StatsTable {
  const gauge = (figures: GaugeFigures | null, shown: (value: number) => string) =>
    figures === null
      ? ''
      : figures.min === figures.max
        ? shown(figures.mean)
        : `${shown(figures.mean)} (${shown(figures.min)} to ${shown(figures.max)})`
  const capped = (figures: PowerDevice['slowed']) => known(figures?.share, percent)
  const MHz = (Hz: number) => threeDigits(Hz / 1e6)
  const table = tableOf(devices, {}, [
    text('device', ({ device }) => device),
    number('MHz', ({ clock_hz }) => gauge(clock_hz, MHz)),
    number('at most', ({ max_clock_hz }) => known(max_clock_hz, MHz)),
    number('utilization', ({ utilization_share }) => known(utilization_share?.mean, percent)),
    number('W', ({ power_w }) => gauge(power_w, threeDigits)),
    number('limit in W', ({ power_limit_w }) => known(power_limit_w, threeDigits)),
    number('hottest °C', ({ temperature_c }) => known(temperature_c?.max, threeDigits)),
    number('held by power', ({ power_capped }) => capped(power_capped)),
    number('by heat', ({ thermal_capped }) => capped(thermal_capped)),
    number('other', ({ slowed }) => capped(slowed)),
  ])
  const rows = table.rows.filter((cells) => cells.slice(1).some((cell) => cell !== ''))
  return { title: `clocks and limits, ${when}`, ...table, rows }
}
