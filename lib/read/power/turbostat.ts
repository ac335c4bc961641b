// The output of turbostat, separated by tabs: a header, repeated, and for each reading a row of the whole machine (`-` as Core and CPU) and
// rows of CPUs, which may be short: values of cores and packages are in the row of their first CPU only.
//
//   Time_Of_Day_Seconds  Core  CPU  Avg_MHz  Busy%  Bzy_MHz  PkgTmp  PkgWatt  CorWatt
//   1737461761.722216    -     -    1        0.14   640      27      1.33     0.06
//
// Values are means since the reading before. Without Time_Of_Day_Seconds there are no times.

import { dictionary } from '../../model/dictionary.ts'
import { hasLine } from '../common/head.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, numberOf, PowerLog } from './power-log.ts'
import { stampOf } from './stamps.ts'

const COLUMNS =
  /^(?:Avg_MHz|Busy%|Bzy_MHz|TSC_MHz|PkgWatt|CorWatt|RAMWatt|GFXWatt|SysWatt|Pkg_J|Cor_J|RAM_J|PkgTmp|CoreTmp)$/
/** Columns that say what a row is of. */
const TOPOLOGY = ['Package', 'Die', 'Node', 'Core', 'CPU', 'APIC', 'X2APIC', 'usec', 'Time_Of_Day_Seconds']
const INTERVAL = /^Measurement interval: (\d+(?:\.\d+)?) seconds/
/** `cpu0: PKG Limit #1: ENabled (28.000 Watts, 40.000000 sec, clamp ENabled)` */
const LIMIT = /PKG Limit #1: ENabled \((\d+(?:\.\d+)?) Watts/
const DEFAULT_NS = 5e9

export const turbostat: Format = {
  name: 'turbostat',
  title: 'power, clocks and utilization of CPUs, turbostat',
  sniff: (head) => hasLine(head, (line, i) => (i === 0 && line.startsWith('turbostat version ')) || isHeader(line)),
  read: (source, context) => new Turbostat(source, turbostat.name, context, DEFAULT_NS).batches(),
}

const isHeader = (line: string) =>
  line
    .trim()
    .split(/\t+/)
    .filter((name) => COLUMNS.test(name)).length >= 2

/** Of the whole machine. Energies of an interval are means of its power. */
const FIGURES: Readonly<Record<string, Figure>> = dictionary({
  PkgWatt: { what: 'power', unit: 'W', isMean: true },
  RAMWatt: { what: 'power', unit: 'W', isMean: true },
  CorWatt: { what: 'power', unit: 'W', isMean: true, isPart: true },
  GFXWatt: { what: 'power', unit: 'W', isMean: true, isPart: true },
  SysWatt: { what: 'other', unit: 'W', isMean: true },
  'PKG_%': { what: 'power-capped', unit: 'share', factor: 0.01, isMean: true },
  'Busy%': { what: 'utilization', unit: '%', isMean: true },
  Bzy_MHz: { what: 'clock', unit: 'Hz', factor: 1e6, isMean: true },
  PkgTmp: { what: 'temperature', unit: '°C' },
  CoreTmp: { what: 'temperature', unit: '°C' },
})
/** Names of devices other than `CPU package`. */
const DEVICES: Readonly<Record<string, string>> = dictionary({ RAMWatt: 'DRAM', 'RAM_%': 'DRAM', SysWatt: 'system' })

class Turbostat extends PowerLog {
  private names: readonly string[] = []
  private limit: number | undefined

  protected line(text: string): void {
    const cells = text.trim().split(/\t+/)
    if (isHeader(text)) {
      this.names = cells
      return
    }
    if (this.names.length === 0) return this.banner(text)
    if (!this.isOfAll(cells)) {
      if (cells.length > 1) this.batch.leftOut.add('rows of single CPUs')
      else this.otherLine()
      return
    }
    if (cells.length !== this.names.length) return this.unreadable(`${this.names.length} columns`, text)
    const time = cells[this.names.indexOf('Time_Of_Day_Seconds')]
    const stamp = time === undefined ? undefined : stampOf(time)?.stamp
    if (time !== undefined && !stamp) return this.unreadable('a time', text)
    this.row({ stamp, key: 'machine', cells: [...this.cellsOf(cells), ...this.limits()] })
  }

  /** Lines before the table: the processor's features, written unless with --quiet. */
  private banner(text: string): void {
    const interval = INTERVAL.exec(text)
    if (interval && Number(interval[1]) > 0) this.intervalNs = Number(interval[1]) * 1e9
    const limit = LIMIT.exec(text)
    if (limit) this.limit ??= Number(limit[1])
  }

  /** Is it the row of the whole machine? With --Summary, rows have no columns of CPUs. */
  private isOfAll(cells: readonly string[]): boolean {
    const columns = ['Package', 'Core', 'CPU'].map((name) => this.names.indexOf(name)).filter((column) => column >= 0)
    return columns.every((column) => cells[column] === '-') && /^[-\d]/.test(cells[0] ?? '')
  }

  private cellsOf(cells: readonly string[]): Cell[] {
    return cells.flatMap((cell, i) => {
      const name = this.names[i]!
      const value = numberOf(cell)
      if (TOPOLOGY.includes(name)) return []
      if (value === undefined) {
        this.noNumber(name)
        return []
      }
      return [{ device: DEVICES[name] ?? 'CPU package', name, figure: FIGURES[name] ?? otherOf(name), value }]
    })
  }

  private limits(): Cell[] {
    if (this.limit === undefined) return []
    const figure: Figure = { what: 'power-limit', unit: 'W' }
    return [{ device: 'CPU package', name: 'PKG Limit #1', figure, value: this.limit }]
  }
}

function otherOf(name: string): Figure {
  if (name.endsWith('Watt')) return { what: 'other', unit: 'W', isMean: true }
  if (/MHz$/.test(name)) return { what: 'other', unit: 'Hz', factor: 1e6, isMean: true }
  if (name.includes('%')) return { what: 'other', unit: '%', isMean: true }
  return { what: 'other', unit: 'count', isMean: true }
}
