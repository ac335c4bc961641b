import type { Analysis, EnergyRow, GaugeFigures, PowerDevice } from '../../lib/cli.ts'
import { count, duration, percent, threeDigits } from '../units.ts'
import type { Column, Section, StatsTable } from './section.ts'

const text = (title: string): Column => ({ title, isText: true })

/** Energy by phase and token, clocks and what held them down; undefined without logs of power. */
export function powerSection({ power }: Analysis): Section | undefined {
  if (!power) return undefined
  const { devices, energy } = power
  const measured = devices.filter(({ energy }) => energy.length > 0)
  const tables = measured.map((device) => energyTable(titleOf(device), device.energy))
  if (measured.length > 1 && energy.length > 0) tables.push(energyTable('all devices', energy))
  const clocks = clockTable(devices)
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
  const columns = [
    text('phase'),
    ...['calls', 'tokens', 'time', 'energy', '±', 'W', 'J/call', 'J/token', '±'].map((title) => ({ title })),
  ]
  const cell = (value: number | null) => (value === null ? '' : threeDigits(value))
  const rowOf = (row: EnergyRow) => [
    row.phase,
    row.calls > 0 ? count(row.calls) : '',
    row.tokens > 0 ? count(row.tokens) : '',
    duration(row.time_ns),
    row.measured_ns > 0 ? joules(row.energy_j) : 'not measured',
    row.measured_ns > 0 ? joules(row.error_j) : '',
    ...[cell(row.mean_w), cell(row.j_per_call), cell(row.j_per_token), cell(row.j_per_token_error)],
  ]
  return { title, columns, rows: rows.map(rowOf) }
}

/** `1.57 kJ`, `26.1 J`, `637 mJ`. */
function joules(value: number): string {
  if (value >= 1e6) return `${threeDigits(value / 1e6)} MJ`
  if (value >= 1e3) return `${threeDigits(value / 1e3)} kJ`
  return value >= 1 || value === 0 ? `${threeDigits(value)} J` : `${threeDigits(value * 1e3)} mJ`
}

/** Devices of which a clock, a limit or the like was read. */
function clockTable(devices: readonly PowerDevice[]): StatsTable {
  const gauge = (figures: GaugeFigures | null, shown: (value: number) => string) =>
    figures === null
      ? ''
      : figures.min === figures.max
        ? shown(figures.mean)
        : `${shown(figures.mean)} (${shown(figures.min)} to ${shown(figures.max)})`
  const capped = (figures: PowerDevice['slowed']) => (figures === null ? '' : percent(figures.share))
  const rows = devices.map((device) => [
    device.device,
    gauge(device.clock_hz, (Hz) => `${threeDigits(Hz / 1e6)}`),
    device.max_clock_hz === null ? '' : threeDigits(device.max_clock_hz / 1e6),
    device.utilization_share === null ? '' : percent(device.utilization_share.mean),
    gauge(device.power_w, threeDigits),
    device.power_limit_w === null ? '' : threeDigits(device.power_limit_w),
    device.temperature_c === null ? '' : threeDigits(device.temperature_c.max),
    ...[capped(device.power_capped), capped(device.thermal_capped), capped(device.slowed)],
  ])
  const titles = ['MHz', 'at most', 'utilization', 'W', 'limit in W', 'hottest °C', 'held by power', 'by heat', 'other']
  return {
    title: 'clocks and limits, during calls',
    columns: [text('device'), ...titles.map((title) => ({ title }))],
    rows: rows.filter((cells) => cells.slice(1).some((cell) => cell !== '')),
  }
}
