// What `record --power` writes: a line of JSON that describes the meters, then rows of numbers. docs/reference/power-logs.md specifies it.
//
//   {"format":"ggml2perfetto.power/1","clock":"MONOTONIC","realtime_ns":"1763913600000000000","monotonic_ns":"5000000000","meters":[…]}
//   5000001234,41234567,2400000
//
// Times are nanoseconds of CLOCK_MONOTONIC; a field without a value is empty.

import type { MeterKind, MeterUnit } from '../../model/events.ts'
import { POWER_SCHEMA } from '../../model/power-events.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, PowerLog } from './power-log.ts'

const METERS_MAX = 4096
const UNITS: readonly MeterUnit[] = ['W', 'J', 'Hz', '%', '°C', 'bytes', 'B/s', 'share', 'count']
const KINDS: readonly MeterKind[] = [
  ...(['power', 'energy', 'power-limit', 'clock', 'max-clock', 'utilization', 'temperature', 'memory'] as const),
  ...(['power-capped', 'thermal-capped', 'slowed', 'other'] as const),
]

/** A column of the file after the time. */
interface Column {
  readonly device: string
  readonly name: string
  readonly figure: Figure
  /** A counter that begins again at this number. */
  readonly wrapsAt: number
  /** A count of events, of which only increases mean something: 1 where it increased since the row before, else 0. */
  readonly isCount: boolean
  before: number
  base: number
}

export const power: Format = {
  name: 'power',
  title: 'power and clocks that ggml2perfetto record --power wrote',
  sniff: (head) => new TextDecoder().decode(head.subarray(0, 64)).startsWith(`{"format":"${POWER_SCHEMA}"`),
  read: (source, context) => new RecordedPower(source, power.name, context).batches(),
}

class RecordedPower extends PowerLog {
  private columns: readonly Column[] | undefined

  protected line(text: string): void {
    const { columns } = this
    if (!columns) return this.header(text)
    const fields = text.split(',')
    const [time = ''] = fields
    if (fields.length !== columns.length + 1 || !/^\d{1,19}$/.test(time))
      return this.unreadable(`${columns.length + 1} fields, the first of them a time`, text)
    const cells = columns.flatMap((column, i): Cell[] => {
      const text = fields[i + 1]!
      const value = text === '' ? NaN : Number(text)
      if (Number.isFinite(value)) return [{ ...column, value: readingOf(column, value) }]
      this.notAvailable()
      return []
    })
    this.row({ stamp: { ns: BigInt(time), zone: 'monotonic', resolutionNs: 1 }, key: 'all', cells })
  }

  private header(text: string): void {
    const found = parsed(text)
    const {
      meters,
      interval_ns: intervalNs,
      not_read: notRead,
      realtime_ns: real,
      monotonic_ns: mono,
      ...facts
    } = found
    this.columns = Array.isArray(meters) ? meters.slice(0, METERS_MAX).map(columnOf) : []
    if (this.columns.length === 0) this.unreadable('meters', text)
    if (typeof intervalNs === 'number') this.facts['interval_ns'] = intervalNs
    if (Array.isArray(notRead)) this.facts['not_read'] = notRead.slice(0, 16).join('; ')
    for (const key of ['host', 'boot_id', 'kernel_release'] as const)
      if (typeof facts[key] === 'string') this.firstFacts[key] = facts[key].slice(0, 200)
    const isNs = (value: unknown): value is string => typeof value === 'string' && /^\d{1,19}$/.test(value)
    if (isNs(real) && isNs(mono))
      this.readings = [
        { clock: 'MONOTONIC', ns: BigInt(mono) },
        { clock: 'REALTIME', ns: BigInt(real) },
      ]
  }
}

/** Totals continue where their counter wraps. */
function readingOf(column: Column, value: number): number {
  const { before, wrapsAt, isCount } = column
  column.before = value
  if (isCount) return Number.isFinite(before) && value > before ? 1 : 0
  if (wrapsAt > 0 && value < before) column.base += wrapsAt
  return column.base + value
}

function columnOf(meter: unknown): Column {
  const fields = (typeof meter === 'object' && meter !== null ? meter : {}) as Readonly<Record<string, unknown>>
  const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, 200) : '')
  const number = (value: unknown, otherwise: number) =>
    typeof value === 'number' && Number.isFinite(value) ? value : otherwise
  const what = KINDS.find((kind) => kind === fields['what']) ?? 'other'
  const unit = UNITS.find((unit) => unit === fields['unit']) ?? 'count'
  return {
    device: text(fields['device']) || 'machine',
    name: text(fields['name']) || 'value',
    figure: { what, unit, factor: number(fields['factor'], 1), isPart: fields['is_part'] === true },
    wrapsAt: number(fields['wraps_at'], 0),
    isCount: fields['is_count'] === true,
    before: NaN,
    base: 0,
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
  } catch {
    return {}
  }
}
