import { isFormatError } from '../../../errors.ts'
import { parseJson, textOf } from '../../../input/json.ts'

/** A count of an interval. */
export interface StatRow {
  /** End of the interval, in ns since perf began to count. */
  readonly endNs: number
  /** What was counted for itself: `CPU0`, `S0`, `bash-12`; empty: all. */
  readonly id: string
  /** Undefined where perf has none. */
  readonly value: number | undefined
  /** `not counted` or `not supported`; empty: it was counted. */
  readonly missing: string
  readonly unit: string
  readonly event: string
  /** Share of the interval in which perf counted, in percent. */
  readonly running: number
  readonly metric: { readonly value: number; readonly unit: string } | undefined
}

const TIME = String.raw`[ ]*(\d{1,7}\.\d{9})`
const VALUE = String.raw`-?\d[\d.,]*|<not (?:counted|supported)>`
/** Digits of the table in groups, as the locale separates them. */
const GROUPS = String.raw`[\d.,'’\u00a0\u202f]*`
const CSV = new RegExp(`^${TIME}([,;|:\\t])(.*)$`)
/** An id of CPUs that perf adds up, after which their number follows. */
const AGGREGATED = /^(?:S\d+(?:-D\d+)?(?:-(?:C|CLS|L\d)\S*)?|N\d+|D\d+)$/
const PLAIN = new RegExp(
  String.raw`^${TIME} +(?:([A-Z][\w-]*) +(?:\d+ +)?)?(${VALUE.replace('[\\d.,]*', GROUPS)}) +(?:(msec|Joules|ns|C|%|MiB|Bytes) )?([^\s#]\S*)(.*)$`,
)
const METRIC = /#\s+([\d.,]+)(.*)/
/** At the end of a row of the table: the share of the interval in which perf counted. */
const RUNNING = /\(([\d.,]+)%\)\s*$/
const JSON_ROW = /^\s*\{"interval" ?: ?\d/
/** The end of a row with separators: time in which perf counted, its share. */
const TAIL = /^\d{1,19}$/
const SHARE = /^\d{1,3}\.\d\d$/
const TABLE = /^#[ \t]+time[ \t].*counts unit events/m

/** Has a text rows of `perf stat -I`? */
export function hasRows(text: string): boolean {
  if (TABLE.test(text)) return true
  const reader = new RowReader()
  return text
    .split(/\r?\n/, 8)
    .some((line) => (JSON_ROW.test(line) || CSV.test(line)) && line.length < 1000 && reader.read(line) !== undefined)
}

/** Reads lines of all three forms. */
export class RowReader {
  /** The row of a line; undefined where it is none, or has a count without an event. */
  read(line: string): StatRow | undefined {
    const row = this.parsed(line)
    const isNamed = row === undefined || row.event !== '' || (row.value === undefined && row.missing === '')
    return isNamed ? row : undefined
  }

  private parsed(line: string): StatRow | undefined {
    if (JSON_ROW.test(line)) return ofJson(line)
    const [, time, separator, rest] = CSV.exec(line) ?? []
    return time === undefined ? ofTable(line) : ofFields(nsOf(time), rest!.split(separator!), separator!)
  }
}

function ofFields(endNs: number, fields: readonly string[], separator: string): StatRow | undefined {
  const valueAt = isValue(fields[0]) && !AGGREGATED.test(fields[0]!) ? 0 : AGGREGATED.test(fields[0] ?? '') ? 2 : 1
  const value = fields[valueAt]
  const tail = fields.findLastIndex((field, i) => TAIL.test(field) && SHARE.test(fields[i + 1] ?? ''))
  if (!isValue(value) || tail < valueAt + 3) return undefined
  const [metric, ...unit] = fields.slice(tail + 2)
  return {
    endNs,
    id: valueAt === 0 ? '' : fields[0]!,
    ...countOf(value!),
    unit: fields[valueAt + 1]!,
    event: fields.slice(valueAt + 2, tail).join(separator),
    running: Number(fields[tail + 1]),
    metric: metricOf(metric ?? '', unit.join(separator)),
  }
}

function ofJson(line: string): StatRow | undefined {
  try {
    const object = parseJson(line, 'perf-stat', { byte: 0 })
    const interval = /"interval" ?: ?(\d{1,7}\.\d{9})/.exec(line)?.[1]
    const value = textOf(object, 'counter-value')
    if (interval === undefined || !isValue(value)) return undefined
    const metric = object['metric-value']
    return {
      endNs: nsOf(interval),
      id: ['cpu', 'socket', 'die', 'core', 'node', 'thread'].map((key) => idOf(object, key)).find(Boolean) ?? '',
      ...countOf(value),
      unit: textOf(object, 'unit'),
      event: textOf(object, 'event'),
      running: typeof object['pcnt-running'] === 'number' ? object['pcnt-running'] : 100,
      metric: metricOf(String(metric ?? ''), textOf(object, 'metric-unit')),
    }
  } catch (error) {
    if (isFormatError(error)) return undefined
    throw error
  }
}

function idOf(object: Readonly<Record<string, unknown>>, key: string): string {
  const id = object[key]
  if (typeof id === 'number') return `${key} ${id}`
  return typeof id === 'string' ? (/^\d+$/.test(id) ? `${key} ${id}` : id) : ''
}

function ofTable(line: string): StatRow | undefined {
  const [, time, id = '', value, unit = '', event, rest = ''] = PLAIN.exec(line) ?? []
  if (time === undefined) return undefined
  const share = RUNNING.exec(rest)
  const [, metric = '', metricUnit = ''] = METRIC.exec(share ? rest.slice(0, share.index) : rest) ?? []
  const running = Number((share?.[1] ?? '100').replace(',', '.'))
  const read = countOf(withoutGroups(value!))
  return { endNs: nsOf(time), id, ...read, unit, event: event!, running, metric: metricOf(metric, metricUnit.trim()) }
}

const isValue = (text: string | undefined) => text !== undefined && (text === '' || IS_VALUE.test(text))
const IS_VALUE = new RegExp(`^(?:${VALUE})$`)

function countOf(text: string): Pick<StatRow, 'value' | 'missing'> {
  const missing = /^<(.*)>$/.exec(text)?.[1] ?? ''
  const value = missing === '' && text !== '' ? Number(text.replace(',', '.')) : Number.NaN
  return { value: Number.isFinite(value) ? value : undefined, missing }
}

/** `1,234.56`, `1.234,56`, `1 234`: a count has no decimals or two, so that three digits at the end are a group. */
function withoutGroups(value: string): string {
  const [, whole = value, decimals] = /^(-?\d.*)[.,](\d{1,2})$/.exec(value) ?? []
  const digits = value.startsWith('<') ? value : whole.replace(/[^\d-]/g, '')
  return decimals === undefined ? digits : `${digits}.${decimals}`
}

/** Rates per second that perf scales, row by row. */
const SCALES: ReadonlyMap<string, number> = new Map([
  ['K/sec', 1e3],
  ['M/sec', 1e6],
  ['G/sec', 1e9],
  ['/sec', 1],
])

function metricOf(text: string, unit: string): StatRow['metric'] {
  const value = text === '' || unit === '' ? Number.NaN : Number(text.replace(',', '.'))
  if (!Number.isFinite(value)) return undefined
  const scale = SCALES.get(unit)
  return scale === undefined ? { value, unit } : { value: Number((value * scale).toPrecision(12)), unit: 'per second' }
}

/** `0.100382625` seconds, exactly. */
function nsOf(seconds: string): number {
  const [whole = '0', fraction = '0'] = seconds.split('.')
  return Number(whole) * 1e9 + Number(fraction)
}
