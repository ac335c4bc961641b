// The output of `amd-smi metric --csv -w <s>`, of `amd-smi monitor … --csv`, and of both with --json: a row, or an object, for each GPU
// and reading.
//
//   timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,edge,hotspot,mem
//   1786553852,0,95,80,"['N/A', 'N/A']",1180,2100,N/A,78,60
//
// Times are whole seconds since 1970; without -w there are none. With -w, a line of the tool is first, and the header is repeated.

import { parsedJson } from '../../input/json-bytes.ts'
import { headText } from '../common/head.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, gpuNumberOf, numberOf, PowerLog } from './power-log.ts'
import { stampOf } from './stamps.ts'

const KNOWN =
  /^(?:(?:average_|current_)?socket_power|power_usage|total_energy_consumption|gfx_activity|gfx_(?:0_)?clk|hotspot(?:_temperature)?)$/
const JSON_HEAD = [/^\s*[[{]/, /"gpu"\s*:/, /"(?:socket_power|power_usage|gfx_activity)"/]
/** The header is one of the first lines, after what the tool prints. */
const HEAD_LINES = 4
/** Longest document of one reading, in characters. */
const DOCUMENT_MAX = 4 << 20

export const amdSmi: Format = {
  name: 'amd-smi',
  title: 'power, clocks and utilization of AMD GPUs, amd-smi metric or monitor, --csv or --json',
  sniff(head) {
    const text = headText(head)
    return text.split('\n', HEAD_LINES).some(isHeader) || JSON_HEAD.every((part) => part.test(text))
  },
  read: (source, context) => new AmdSmi(source, amdSmi.name, context).batches(),
}

function isHeader(line: string): boolean {
  const fields = line.trim().split(',')
  return fields.includes('gpu') && fields.some((field) => KNOWN.test(field))
}

/** Fields of a row of CSV, without their quotes. */
function fieldsOf(line: string): string[] {
  const fields = [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, field]) => field!)
  if (!line.endsWith(',')) fields.pop() // the empty match at the end
  return fields.map((field) => field.replace(/^"|"$/g, ''))
}

class AmdSmi extends PowerLog {
  private names: readonly string[] = []
  /** Lines of a JSON document that is not complete. */
  private document: string[] = []
  private length = 0
  private depth = 0

  protected line(text: string): void {
    if (this.depth > 0 || /^\s*[[{]/.test(text)) return this.json(text)
    if (isHeader(text)) {
      this.names = text.trim().split(',')
      return
    }
    if (this.names.length === 0) return this.otherLine()
    const fields = fieldsOf(text.trim())
    if (fields.length !== this.names.length) return this.unreadable(`${this.names.length} fields`, text)
    this.gpu(this.names.map((name, i) => [name, fields[i]!]))
  }

  /** One GPU at one time: names of figures and their values as text. */
  private gpu(values: readonly (readonly [name: string, text: string])[]): void {
    const fields = new Map(values)
    const gpu = gpuNumberOf(fields.get('gpu') ?? '')
    if (gpu === undefined) return this.unreadable('the number of a GPU', values.map(([, text]) => text).join(','))
    const time = fields.get('timestamp')
    const stamp = time === undefined ? undefined : stampOf(time)?.stamp
    if (time !== undefined && !stamp) return this.unreadable('a time', time)
    const device = `GPU ${gpu}`
    const isMonitor = fields.has('hotspot_temperature')
    // They are the same power, and which of them has a value depends on the GPU.
    const power = POWERS.find((name) => numberOf(fields.get(name) ?? '') !== undefined)
    const cells = values.flatMap(([name, text]): Cell[] => {
      if (name === 'gpu' || name === 'timestamp') return []
      if (name === 'throttle_status' && /THROTTLED$/.test(text))
        return [{ device, name, figure: SLOWED, value: text === 'THROTTLED' ? 1 : 0 }]
      const value = numberOf(text)
      if (value === undefined) {
        if (/^(?:N\/A)?$/.test(text)) this.notAvailable()
        else this.noNumber(name)
        return []
      }
      return [{ device, name, figure: figureOf(name, power, isMonitor), value }]
    })
    this.row({ stamp, key: device, cells })
  }

  protected override ended(): void {
    if (this.depth > 0) this.issue('torn-record', 'expected the rest of a JSON document, found the end of the log')
  }

  /** Collects the lines of a document, and reads it where its brackets are closed. */
  private json(text: string): void {
    this.document.push(text)
    this.length += text.length
    for (const [bracket] of text.replace(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, '').matchAll(/[[\]{}]/g))
      this.depth += bracket === '[' || bracket === '{' ? 1 : -1
    const isTooLong = this.length > DOCUMENT_MAX
    if (this.depth > 0 && !isTooLong) return
    const document = this.document.join('\n')
    this.document = []
    this.length = 0
    this.depth = 0
    try {
      if (isTooLong) throw new Error('too long')
      this.objects(parsedJson(document))
    } catch {
      this.unreadable('a JSON document of one reading', document)
    }
  }

  private objects(value: unknown): void {
    if (Array.isArray(value)) for (const object of value) this.objects(object)
    else if (typeof value === 'object' && value !== null) {
      if ('gpu' in value && typeof value.gpu !== 'object') this.gpu(flat(value))
      else for (const object of Object.values(value)) this.objects(object)
    }
  }
}

/** Names of the power of a GPU, the best first. */
const POWERS: readonly string[] = ['socket_power', 'current_socket_power', 'average_socket_power', 'power_usage']
const SLOWED: Figure = { what: 'slowed', unit: 'share' }

/** Nested objects by the names in CSV: `clock.gfx_0.clk` is `gfx_0_clk`. A value may be `{ "value": 238, "unit": "W" }`. */
function flat(value: object): [string, string][] {
  return Object.entries(value).flatMap(([key, value]: [string, unknown]): [string, string][] => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[key, `${value}`]]
    if ('value' in value) return [[key, `${value.value}`]]
    const inner = flat(value)
    return key === 'clock' || !inner.some(([name]) => name === 'clk')
      ? inner
      : inner.map(([name, text]): [string, string] => [`${key}_${name}`, text])
  })
}

/** By name. `mem` is a temperature in `metric`, and a utilization in `monitor`. */
function figureOf(name: string, power: string | undefined, isMonitor: boolean): Figure {
  if (POWERS.includes(name)) return { what: name === power ? 'power' : 'other', unit: 'W' }
  if (/^(?:max_power|power_cap|power_limit|socket_power_limit)$/.test(name)) return { what: 'power-limit', unit: 'W' }
  if (name === 'total_energy_consumption') return { what: 'energy', unit: 'J' }
  if (/^(?:gfx_activity|gfx|gfx_util)$/.test(name)) return { what: 'utilization', unit: '%' }
  if (/^gfx_(?:0_)?clk$/.test(name)) return { what: 'clock', unit: 'Hz', factor: 1e6 }
  if (name === 'gfx_0_max_clk') return { what: 'max-clock', unit: 'Hz', factor: 1e6 }
  if (/_clk$|_clock$/.test(name)) return { what: 'other', unit: 'Hz', factor: 1e6 }
  if (/^(?:edge|hotspot)$|_temperature$/.test(name) || (name === 'mem' && !isMonitor))
    return { what: 'temperature', unit: '°C' }
  if (/_activity$|_util$|^mem$/.test(name)) return { what: 'other', unit: '%' }
  if (/^(?:used_vram|vram_used)$/.test(name)) return { what: 'memory', unit: 'bytes', factor: 2 ** 20 }
  return { what: 'other', unit: 'count' }
}
