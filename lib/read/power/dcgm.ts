// The output of `dcgmi dmon -e 155,156,203,1002 [-d <ms>]`: two header lines, repeated, then a row for each GPU. Columns are named by
// short names of DCGM's fields. There are no times; a wrapper such as `ts` may write one before each line.
//
//   #Entity   POWER                       TOTEC                       GPUTL
//   ID        W                           mJ
//   GPU 0     33.100                      153244                      0

import { dictionary } from '../../model/dictionary.ts'
import { hasLine } from '../common/head.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, numberOf, PowerLog } from './power-log.ts'
import { splitStamp } from './stamps.ts'

const HEADER = /^#\s?Entity\s+[A-Z\d]/
const ENTITY = /^(GPU(?:-I|-CI)?|CPU|Switch|NvSwitch|Link|Core)\s+(\S+)\s+/i

export const dcgm: Format = {
  name: 'dcgm',
  title: 'power, clocks and utilization of NVIDIA GPUs, dcgmi dmon',
  sniff: (head) => hasLine(head, (line) => HEADER.test(splitStamp(line.trimStart()).rest), 12),
  read: (source, context) => new Dcgm(source, dcgm.name, context).batches(),
}

/** Short names of fields (dcgm_fields.h, the tags of dcgmi dmon). PROF ratios are from 0 to 1. */
const FIGURES: Readonly<Record<string, Figure>> = dictionary({
  POWER: { what: 'power', unit: 'W', windowNs: 1e9 },
  POWINST: { what: 'power', unit: 'W' },
  TOTEC: { what: 'energy', unit: 'J', factor: 1e-3 },
  PMLMT: { what: 'power-limit', unit: 'W' },
  EPLMT: { what: 'power-limit', unit: 'W' },
  GPUTL: { what: 'utilization', unit: '%' },
  MCUTL: { what: 'other', unit: '%' },
  SMCLK: { what: 'clock', unit: 'Hz', factor: 1e6 },
  MMCLK: { what: 'other', unit: 'Hz', factor: 1e6 },
  TMPTR: { what: 'temperature', unit: '°C' },
  MMTMP: { what: 'temperature', unit: '°C' },
  FBUSD: { what: 'memory', unit: 'bytes', factor: 2 ** 20 },
  GRACT: { what: 'other', unit: 'share' },
  SMACT: { what: 'other', unit: 'share' },
  SMOCC: { what: 'other', unit: 'share' },
  TENSO: { what: 'other', unit: 'share' },
  DRAMA: { what: 'other', unit: 'share' },
  PCITX: { what: 'other', unit: 'B/s' },
  PCIRX: { what: 'other', unit: 'B/s' },
})
const OTHER: Figure = { what: 'other', unit: 'count' }
/** POWER, where POWINST is the same power without a delay. */
const SECOND: Figure = { what: 'other', unit: 'W', windowNs: 1e9 }

class Dcgm extends PowerLog {
  private names: readonly string[] = []

  protected line(text: string): void {
    const { rest, stamp } = splitStamp(text.trimStart())
    if (HEADER.test(rest)) {
      this.names = rest
        .replace(/^#\s?Entity\s+/, '')
        .trim()
        .split(/\s+/)
      return
    }
    const entity = ENTITY.exec(rest)
    if (!entity || this.names.length === 0) return /^ID\s/.test(rest) ? undefined : this.otherLine()
    const values = rest.slice(entity[0].length).trim().split(/\s+/)
    if (values.length !== this.names.length) return this.unreadable(`${this.names.length} values`, text)
    const device = `${entity[1]} ${entity[2]}`
    const cells = values.flatMap((text, i): Cell[] => {
      const value = numberOf(text)
      if (value === undefined) {
        this.notAvailable()
        return []
      }
      const name = this.names[i]!
      const isSecond = name === 'POWER' && this.names.includes('POWINST')
      return [{ device, name, figure: isSecond ? SECOND : (FIGURES[name] ?? OTHER), value }]
    })
    this.row({ stamp, key: device, cells })
  }
}
