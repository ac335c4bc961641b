// The output of `nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits] -l <s>`, a row for each GPU and reading:
//
//   timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks_event_reasons.active
//   2025/04/24 15:58:57.879, 0, 21.76 W, 1980 MHz, 0x0000000000000004
//
// A log without `index` and `uuid` does not say what GPU a row is of: it is found by the order of rows, and the log has an issue.
// Times are local, without their time zone. power.draw is the mean of the last second on Ampere and later (`nvidia-smi
// --help-query-gpu`), on earlier GPUs and GA100 that of an instant. Wrappers may write their own header and time before it.

import { plural } from '../../model/units.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, gpuNumberOf, numberOf, PowerLog } from './power-log.ts'
import { type Stamp, stampOf } from './stamps.ts'
import { UnnamedGpus } from './unnamed-gpus.ts'

const KNOWN =
  /^(?:(?:enforced\.)?power\.(?:draw|limit)|clocks?[._]|utilization[._]|temperature\.(?:gpu|memory)|memory\.used|pstate|fan\.speed)/
const ROW = /^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\.\d{3}, /
const UNITS = /\d (?:W|%|MHz|MiB)(?:,|\s*$)/

export const nvidiaSmi: Format = {
  name: 'nvidia-smi',
  title: 'power and clocks of NVIDIA GPUs, nvidia-smi --query-gpu=… --format=csv',
  sniff(head) {
    const [line = ''] = new TextDecoder().decode(head).split('\n', 1)
    return isHeader(line) || (ROW.test(line) && UNITS.test(line))
  },
  read: (source, context) => new NvidiaSmi(source, nvidiaSmi.name, context).batches(),
}

function isHeader(line: string): boolean {
  const fields = fieldsOf(line)
  return fields.length < 200 && fields.some((field) => KNOWN.test(field)) && !/\d \S/.test(line)
}

const fieldsOf = (line: string) => line.split(',').map((field) => field.trim())

interface Column {
  readonly name: string
  /** Figures of the text of a cell, most often one. */
  readonly cellsOf: (
    text: string,
  ) => readonly { readonly name: string; readonly figure: Figure; readonly value: number }[]
}

/** What a header says of the rows after it. */
interface Layout {
  readonly columns: readonly Column[]
  /** Places of columns that say when, and of what, a row is; -1: none. */
  readonly time: number
  readonly index: number
  readonly key: number
  readonly model: number
  readonly identity: readonly number[]
}

interface GpuRow {
  /** Rows wait until their GPUs are known; the log may have another header then. */
  readonly layout: Layout
  readonly fields: readonly string[]
  readonly stamp: Stamp | undefined
}

class NvidiaSmi extends PowerLog {
  private layout: Layout | undefined
  /** Numbers of GPUs by what identifies them, where the log has no `index`. */
  private readonly gpus = new Map<string, number>()
  private readonly unnamed = new UnnamedGpus<GpuRow>(
    (row, gpu) => this.gpuRow(row, gpu),
    (rows) => this.issue('unreadable-row', `expected a row for each of ${this.unnamed.count} GPUs, found ${rows}`),
  )

  protected line(text: string): void {
    const fields = fieldsOf(text)
    if (isHeader(text)) {
      this.layout = layoutOf(fields)
      return
    }
    this.layout ??= layoutOf(namesByUnit(fields))
    const { layout } = this
    const { columns, time, index, key } = layout
    if (fields.length !== columns.length) return this.unreadable(`${columns.length} fields`, text)
    const stamp = time < 0 ? undefined : stampOf(fields[time]!)?.stamp
    if (time >= 0 && !stamp) return this.unreadable('a time first', text)
    if (stamp && index < 0 && key < 0) this.unnamed.add(stamp.ns, { layout, fields, stamp })
    else {
      const gpu = this.gpuOf(fields, layout)
      if (gpu === undefined) return this.unreadable('the number of a GPU', text)
      this.gpuRow({ layout, fields, stamp }, gpu)
    }
  }

  protected override ended(): void {
    this.unnamed.end()
    const { count } = this.unnamed
    if (count < 2) return
    this.facts['gpus'] = `${count}, by the order of rows`
    this.issue(
      'gpus-by-order',
      `expected the index or uuid of a GPU in each row, found ${plural(count, 'row')} a reading without`,
    )
  }

  private gpuRow({ layout, fields, stamp }: GpuRow, gpu: number | string): void {
    const device = `GPU ${gpu}`
    const model = fields[layout.model]
    if (model && !(device in this.facts)) this.facts[device] = model
    const cells: Cell[] = []
    fields.forEach((field, i) => {
      const { name, cellsOf } = layout.columns[i]!
      const found = cellsOf(field)
      const isRead = found.length > 0 || layout.identity.includes(i)
      if (!isRead && /^$|N\/A|Not Supported|Unknown Error|requires reset/.test(field)) this.notAvailable()
      else if (!isRead) this.noNumber(name)
      for (const cell of found) cells.push({ device, ...cell })
    })
    this.row({ stamp, key: device, cells })
  }

  private gpuOf(fields: readonly string[], { index, key, model }: Layout): number | string | undefined {
    if (index >= 0) return gpuNumberOf(fields[index]!)
    const id = fields[key] ?? fields[model] ?? ''
    const known = this.gpus.get(id) ?? this.gpus.size
    if (this.gpus.size < GPUS_MAX) this.gpus.set(id, known)
    return known
  }
}

function layoutOf(fields: readonly string[]): Layout {
  const names = fields.map((field) => field.replace(/ \[.*/, ''))
  // They are the same power: added up, the energy would be a multiple.
  const power = POWERS.find((name) => names.includes(name))
  const hasEnforced = names.includes('enforced.power.limit')
  const placeOf = (pattern: RegExp) => names.findIndex((name) => pattern.test(name))
  const time = placeOf(/^(?:timestamp|time|date)$/i)
  const index = placeOf(/^(?:index|gpu|gpu_index|gpu_id)$/)
  const key = placeOf(/^(?:uuid|gpu_uuid|pci\.bus_id|gpu_bus_id|serial)$/)
  const model = placeOf(/^(?:name|gpu_name)$/)
  const identity = [time, index, key, model]
  const columns = names.map((name, i): Column => {
    if (identity.includes(i)) return { name, cellsOf: () => [] }
    if (/^clocks_(?:throttle|event)_reasons\./.test(name)) return reasonColumn(name)
    const figure = figureOf(name, /\[([^[\]]*)\]$/.exec(fields[i]!)?.[1], { power, hasEnforced })
    return { name, cellsOf: (text) => valuesOf(name, figure, text) }
  })
  return { columns, time, index, key, model, identity }
}

const GPUS_MAX = 1024
/** Columns of the power of a GPU, the best first. */
const POWERS = ['power.draw.instant', 'power.draw', 'power.draw.average'] as const

function valuesOf(name: string, known: Figure | undefined, text: string) {
  const value = numberOf(text.replace(/^P(?=\d+$)/, ''))
  const figure = known ?? figureByUnit(text)
  return value === undefined || !figure ? [] : [{ name, figure, value }]
}

/** A column's meaning by its name; undefined: by the unit of its values. */
function figureOf(
  name: string,
  unit: string | undefined,
  { power, hasEnforced }: { readonly power: string | undefined; readonly hasEnforced: boolean },
): Figure | undefined {
  if (/^power\.draw/.test(name))
    return { what: name === power ? 'power' : 'other', unit: 'W', windowNs: name === 'power.draw.instant' ? 0 : 1e9 }
  if (name === 'enforced.power.limit' || (name === 'power.limit' && !hasEnforced))
    return { what: 'power-limit', unit: 'W' }
  const clock = /^clocks\.(?:current\.|max\.)?(sm|gr|graphics|mem|memory|video)$/.exec(name)
  if (clock) {
    const isMax = name.includes('.max.')
    const isOfWork = clock[1] === 'sm'
    return { what: isOfWork ? (isMax ? 'max-clock' : 'clock') : 'other', unit: 'Hz', factor: 1e6 }
  }
  if (/^utilization\./.test(name)) return { what: name.endsWith('.gpu') ? 'utilization' : 'other', unit: '%' }
  if (/^temperature\./.test(name)) return { what: 'temperature', unit: '°C' }
  if (name === 'memory.used') return { what: 'memory', unit: 'bytes', factor: 2 ** 20 }
  return unit === undefined ? undefined : figureByUnit(`0 ${unit}`)
}

/** The meaning of a value by its unit; of one without a unit, unless it is a name or a set of bits, a number. */
function figureByUnit(text: string): Figure | undefined {
  const unit = /^-?[\d.]+(?: ?([^\d.\s]\S*))?$/.exec(text)?.[1]
  if (unit === 'W') return { what: 'other', unit: 'W' }
  if (unit === 'MHz') return { what: 'other', unit: 'Hz', factor: 1e6 }
  if (unit === '%') return { what: 'other', unit: '%' }
  if (unit === 'MiB') return { what: 'other', unit: 'bytes', factor: 2 ** 20 }
  return { what: 'other', unit: 'count' }
}

/** Bits of `clocks_event_reasons.active` (nvml.h: nvmlClocksEventReasons), and their columns. */
const REASONS = [
  ['sw_power_cap', 0x4, 'power-capped'],
  ['hw_power_brake_slowdown', 0x80, 'power-capped'],
  ['sw_thermal_slowdown', 0x20, 'thermal-capped'],
  ['hw_thermal_slowdown', 0x40, 'thermal-capped'],
  ['hw_slowdown', 0x8, 'slowed'],
] as const

function reasonColumn(name: string): Column {
  const reason = name.replace(/^.*\./, '')
  if (reason !== 'active') {
    const what = REASONS.find(([known]) => known === reason)?.[2]
    const figure: Figure = { what: what ?? 'other', unit: 'share' }
    return {
      name,
      cellsOf: (text) => (/^(?:Not )?Active$/.test(text) ? [{ name, figure, value: text === 'Active' ? 1 : 0 }] : []),
    }
  }
  return {
    name,
    cellsOf(text) {
      if (!/^0x[\da-f]{1,16}$/i.test(text)) return []
      const low = Number.parseInt(text.slice(-8).replace(/^.*x/i, ''), 16)
      return REASONS.map(([reason, bit, what]) => {
        return { name: `reasons: ${reason}`, figure: { what, unit: 'share' }, value: (low & bit) === 0 ? 0 : 1 }
      })
    },
  }
}

/** Columns of a log without a header: the first value in W is the power. */
function namesByUnit(fields: readonly string[]): string[] {
  const power = fields.findIndex((field) => /\d W$/.test(field))
  return fields.map((field, i) => {
    if (ROW.test(`${field}, `)) return 'timestamp'
    return i === power ? 'power.draw' : `column ${i + 1}`
  })
}
