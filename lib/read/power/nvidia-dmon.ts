// The output of `nvidia-smi dmon [-s pucvmet] [-o DT] [--format csv]`: two header lines, repeated, then a row for each GPU.
//
//   #Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol
//   #YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool
//    20250424   15:58:57      0     87     33      -     30     27   6250   1710      0      0
//
// Without -o there are no times: rows are -d seconds apart, by default 1 s. `-`: not available.

import { dictionary } from '../../model/dictionary.ts'
import { hasLine } from '../common/head.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, gpuNumberOf, numberOf, PowerLog } from './power-log.ts'
import { type Stamp, stampOf } from './stamps.ts'

const HEADER = /^# ?(?:Date[ ,]+)?(?:Time[ ,]+)?gpu[ ,]+[a-z]/

export const nvidiaDmon: Format = {
  name: 'nvidia-dmon',
  title: 'power, clocks and utilization of NVIDIA GPUs, nvidia-smi dmon',
  sniff: (head) => hasLine(head, (line) => HEADER.test(line), 8),
  read: (source, context) => new NvidiaDmon(source, nvidiaDmon.name, context).batches(),
}

/** `pwr` is what `power.draw` is: a mean over the last second on Ampere and later. */
const FIGURES: Readonly<Record<string, Figure>> = dictionary({
  pwr: { what: 'power', unit: 'W', windowNs: 1e9 },
  gtemp: { what: 'temperature', unit: '°C' },
  mtemp: { what: 'temperature', unit: '°C' },
  sm: { what: 'utilization', unit: '%' },
  mem: { what: 'other', unit: '%' },
  mclk: { what: 'other', unit: 'Hz', factor: 1e6 },
  pclk: { what: 'clock', unit: 'Hz', factor: 1e6 },
  pviol: { what: 'power-capped', unit: 'share', factor: 0.01, isMean: true },
  tviol: { what: 'thermal-capped', unit: 'share' },
  fb: { what: 'memory', unit: 'bytes', factor: 2 ** 20 },
  bar1: { what: 'other', unit: 'bytes', factor: 2 ** 20 },
  ccpm: { what: 'other', unit: 'bytes', factor: 2 ** 20 },
  rxpci: { what: 'other', unit: 'B/s', factor: 1e6 },
  txpci: { what: 'other', unit: 'B/s', factor: 1e6 },
})
/** By the header's line of units. */
const BY_UNIT: Readonly<Record<string, Figure>> = dictionary({
  '%': { what: 'other', unit: '%' },
  MHz: { what: 'other', unit: 'Hz', factor: 1e6 },
  MB: { what: 'other', unit: 'bytes', factor: 2 ** 20 },
  W: { what: 'other', unit: 'W' },
})
const OTHER: Figure = { what: 'other', unit: 'count' }

class NvidiaDmon extends PowerLog {
  private names: readonly string[] = []
  private units: readonly string[] = []

  protected line(text: string): void {
    const cells = text
      .replace(/^# ?/, '')
      .split(/[\s,]+/)
      .filter((cell) => cell !== '')
    if (text.startsWith('#')) {
      if (HEADER.test(text)) {
        this.names = cells
        this.units = []
      } else this.units = cells
      return
    }
    const { names } = this
    if (names.length === 0) return this.otherLine()
    if (cells.length !== names.length) return this.unreadable(`${names.length} columns`, text)
    const gpu = gpuNumberOf(cells[names.indexOf('gpu')] ?? '')
    if (gpu === undefined) return this.unreadable('the number of a GPU', text)
    const [date, time] = [cells[names.indexOf('Date')], cells[names.indexOf('Time')]]
    const stamp = time === undefined ? undefined : stampOf(date === undefined ? time : `${date} ${time}`)?.stamp
    if (time !== undefined && !stamp) return this.unreadable('a time', text)
    this.row({ stamp, key: `${gpu}`, cells: this.cellsOf(cells, `GPU ${gpu}`, stamp) })
  }

  private cellsOf(cells: readonly string[], device: string, stamp: Stamp | undefined): Cell[] {
    return cells.flatMap((cell, i) => {
      const name = this.names[i]!
      if (name === 'gpu' || (stamp && (name === 'Date' || name === 'Time'))) return []
      const value = numberOf(cell)
      if (value === undefined) {
        this.notAvailable()
        return []
      }
      return [{ device, name, figure: FIGURES[name] ?? BY_UNIT[this.units[i] ?? ''] ?? OTHER, value }]
    })
  }
}
