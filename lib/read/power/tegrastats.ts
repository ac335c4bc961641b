// The output of tegrastats (NVIDIA Jetson), one line for each reading:
//
//   10-01-2025 20:05:55 RAM 2274/6834MB (lfb 27x4MB) CPU [99%@1189,off] EMC_FREQ 0% GR3D_FREQ 22%@[305] CPU@40C VDD_IN 5542mW/5542mW
//
// Times are local, to the second, and missing in older versions. Of each pair of powers, the first is the reading, the second the mean
// since the start; older versions write no unit. -256C: not available.

import { hasLine } from '../common/head.ts'
import type { Format } from '../format.ts'
import type { Figure } from './meters.ts'
import { type Cell, PowerLog } from './power-log.ts'
import { splitStamp } from './stamps.ts'

const START = /^RAM (\d+)\/\d+MB \(lfb /
const SWAP = / SWAP (\d+)\/\d+MB/
const POWER = /(?<![A-Z\d_])([A-Z][A-Z\d_]+) (\d+)(?:mW)?\/(\d+)(?:mW)?(?= |$)/g
const TEMPERATURE = /(?<!\w)([A-Za-z]\w*)@(-?\d+(?:\.\d+)?)C(?= |$)/g
/** Newer boards print a clock alone, or a clock for each part: `GR3D_FREQ @[1000,1010,1020]`. */
const LOAD = /(?<![A-Z\d_])([A-Z][A-Z\d_]*_FREQ) (?:(\d+)%)?(?:@\[?(\d+(?:,\d+)*))?/g
const CPUS = /CPU \[([^[\]]*)\]/
/** The input of the board, which contains the other rails. VIN_SYS_5V0 of an AGX Orin is one of them: it does not feed GPU and CPU. */
const INPUT = /^(?:VDD_IN|POM_5V_IN|VIN)$/
/** The memory of an AGX Orin, which VIN_SYS_5V0 feeds. */
const MEMORY = 'VDDQ_VDD2_1V8AO'

export const tegrastats: Format = {
  name: 'tegrastats',
  title: 'power, clocks and utilization of NVIDIA Jetson, tegrastats',
  sniff: (head) => hasLine(head, (line) => START.test(splitStamp(line).rest), 4),
  read: (source, context) => new Tegrastats(source, tegrastats.name, context).batches(),
}

const PERCENT: Figure = { what: 'other', unit: '%' }
const CLOCK: Figure = { what: 'other', unit: 'Hz', factor: 1e6 }
const DEVICE = 'Jetson'
const ABSENT_BELOW = -200

/** What is read of a line. */
const DRAWN = [/^RAM \d+\/\d+MB /, SWAP, POWER, TEMPERATURE, LOAD, CPUS]

class Tegrastats extends PowerLog {
  protected line(text: string): void {
    const { rest, stamp } = splitStamp(text)
    const ram = START.exec(rest)
    if (!ram) return this.unreadable('RAM <used>/<all>MB', text)
    const used: Figure = { what: 'memory', unit: 'bytes', factor: 2 ** 20 }
    const swap = SWAP.exec(rest)
    const swapped = swap ? [cellOf('SWAP', { ...used, what: 'other' }, Number(swap[1]))] : []
    const cells = [cellOf('RAM', used, Number(ram[1])), ...swapped, ...rails(rest), ...temperatures(rest)]
    this.row({ stamp, key: DEVICE, cells: [...cells, ...loads(rest), ...cpus(rest)] })
    this.leaveOut(rest)
  }

  /** Counts the figures of a line that are not read, by name. */
  private leaveOut(line: string): void {
    const left = DRAWN.reduce((text, pattern) => text.replace(pattern, ' '), line)
    for (const [name] of left.matchAll(/(?<!\w)[A-Za-z]\w*/g)) this.batch.leftOut.add(name)
  }
}

function cellOf(name: string, figure: Figure, value: number): Cell {
  return { device: DEVICE, name, figure, value }
}

function rails(text: string): Cell[] {
  const found = [...text.matchAll(POWER)].filter(([, name]) => name !== 'RAM' && name !== 'SWAP' && name !== 'IRAM')
  const hasInput = found.some(([, name]) => INPUT.test(name!))
  const hasSystem = found.some(([, name]) => name === 'VIN_SYS_5V0')
  return found.map(([, name, mW]) => {
    const isPart = (hasInput && !INPUT.test(name!)) || (hasSystem && name === MEMORY)
    return cellOf(name!, { what: 'power', unit: 'W', factor: 1e-3, isPart }, Number(mW))
  })
}

function temperatures(text: string): Cell[] {
  return [...text.matchAll(TEMPERATURE)]
    .filter(([, , value]) => Number(value) > ABSENT_BELOW)
    .map(([, name, value]) => cellOf(`temperature ${name}`, { what: 'temperature', unit: '°C' }, Number(value)))
}

function loads(text: string): Cell[] {
  return [...text.matchAll(LOAD)].flatMap(([, name, load, clocks]) => {
    const isGpu = name === 'GR3D_FREQ'
    const clock: Figure = { ...CLOCK, what: isGpu ? 'clock' : 'other' }
    return [
      ...(load === undefined
        ? []
        : [cellOf(name!, { ...PERCENT, what: isGpu ? 'utilization' : 'other' }, Number(load))]),
      ...(clocks?.split(',') ?? []).map((MHz, i) =>
        cellOf(i === 0 ? `${name} clock` : `${name} clock ${i}`, i === 0 ? clock : CLOCK, Number(MHz)),
      ),
    ]
  })
}

/** Load and clock of each CPU that is on. */
function cpus(text: string): Cell[] {
  const list = CPUS.exec(text)?.[1]?.split(',') ?? []
  return list.flatMap((cpu, i) => {
    const [, load, MHz] = /^(\d+)%(?:@(\d+))?$/.exec(cpu) ?? []
    if (load === undefined) return []
    const clock = MHz === undefined ? [] : [cellOf(`CPU ${i} clock`, CLOCK, Number(MHz))]
    return [cellOf(`CPU ${i}`, PERCENT, Number(load)), ...clock]
  })
}
