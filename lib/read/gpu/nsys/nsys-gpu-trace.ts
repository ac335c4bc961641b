// `nsys stats --report cuda_gpu_trace --format csv`: kernels, copies and fills, one per row, times since the start of the session.
//
//     Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,…,Bytes (MB),…,SrcMemKd,DstMemKd,Device,Ctx,…,Strm,Name
//     1949099896,3552,142,,,,,,,,,,0.038,10594.575,Pageable,Device,NVIDIA RTX A4500 (0),1,,7,[CUDA memcpy Host-to-Device]

import { type Facts, type GpuEvent, UNKNOWN_PLACE } from '../../../model/gpu-events.ts'
import type { Names } from '../../../model/names.ts'
import { count } from '../../../model/units.ts'
import { containing } from '../../common/holdings.ts'
import type { Format } from '../../format.ts'
import { CsvReport, hasColumns } from './csv.ts'

const REQUIRED = ['Start', 'Duration', 'CorrId', 'Strm', 'Name']

export const nsysGpuTrace: Format = {
  name: 'nsys-gpu-trace',
  title: 'Nsight Systems: nsys stats --report cuda_gpu_trace --format csv',

  sniff: (head) => hasColumns(head, REQUIRED),

  async *read(source, { names }) {
    const report = new CsvReport(source, nsysGpuTrace.name, REQUIRED)
    let rows = 0
    yield* report.read(() => {
      const event = eventOf(report, names)
      if (!event) return
      rows++
      report.batch.add(event)
    })
    yield [
      {
        kind: 'facts',
        ...containing(`${rows === 1 ? '1 kernel, copy or set' : `${count(rows)} kernels, copies and sets`} of memory`),
      },
    ]
  },
}

function eventOf(report: CsvReport, names: Names): GpuEvent | undefined {
  const [startNs, durationNs] = [report.ns('Start'), report.ns('Duration')]
  const name = report.text('Name')
  if (!(startNs >= 0) || !(durationNs >= 0) || name === '') {
    const found = `${report.text('Start')} and ${report.text('Duration')}`.slice(0, 80)
    const expected = name === '' ? 'a name' : 'a start and a duration'
    report.bad(`expected ${expected}, found ${name === '' ? 'none' : found}; left out`, Math.max(0, startNs))
    return undefined
  }
  const what = whatOf(name)
  return {
    kind: 'gpu',
    ...{ what, name: names.id(name), startNs, endNs: startNs + durationNs, signature: 0 },
    ...UNKNOWN_PLACE,
    device: Number(/\((\d+)\)$/.exec(report.text('Device'))?.[1] ?? -1),
    ...{ context: whole(report, 'Ctx'), stream: whole(report, 'Strm') },
    correlation: whole(report, 'CorrId'),
    facts: what === 'kernel' ? kernelFacts(report) : memoryFacts(report),
  }
}

function whatOf(name: string): GpuEvent['what'] {
  if (/^\[CUDA (?:memcpy Unified|Unified Memory memcpy) /.test(name)) return 'migration'
  if (name.startsWith('[CUDA memcpy')) return 'memcpy'
  return name.startsWith('[CUDA memset') ? 'memset' : 'kernel'
}

function whole(report: CsvReport, column: string): number {
  const value = report.number(column)
  return Number.isSafeInteger(value) && value >= 0 ? value : -1
}

function kernelFacts(report: CsvReport): Facts {
  const dimensions = (...columns: readonly string[]) => columns.map((column) => report.text(column)).join('x')
  const grid = dimensions('GrdX', 'GrdY', 'GrdZ')
  const block = dimensions('BlkX', 'BlkY', 'BlkZ')
  return { grid, block, registers: whole(report, 'Reg/Trd') }
}

/** The report rounds sizes to a thousandth of a megabyte. */
function memoryFacts(report: CsvReport): Facts {
  const facts: Record<string, number | string> = {}
  const megabytes = report.number('Bytes')
  if (Number.isFinite(megabytes)) facts['megabytes'] = megabytes
  if (report.text('SrcMemKd') !== '') facts['from'] = report.text('SrcMemKd').toLowerCase()
  if (report.text('DstMemKd') !== '') facts['to'] = report.text('DstMemKd').toLowerCase()
  return facts
}
