// `nsys stats --report nvtx_pushpop_trace --format csv`: NVTX push-pop ranges, one per row, times since the start of the session.
//
//     Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,RangeStack,NameTree
//     26940649047,26940822025,172978,0,172978,"TSL:XlaDumpHloModule:#module=…#",215733,215733,0,0,25204,,:25204,"TSL:…"

import type { Names } from '../../../model/names.ts'
import { plural } from '../../../model/units.ts'
import { containing } from '../../common/holdings.ts'
import type { Format } from '../../format.ts'
import { CsvReport, hasColumns } from './csv.ts'
import { NvtxRanges } from './nvtx-ranges.ts'

const REQUIRED = ['Start', 'End', 'Name', 'TID', 'RangeStack']

export const nsysNvtxTrace: Format = {
  name: 'nsys-nvtx-trace',
  title: 'Nsight Systems: nsys stats --report nvtx_pushpop_trace --format csv',

  sniff: (head) => hasColumns(head, REQUIRED),

  async *read(source, { names }) {
    const report = new CsvReport(source, nsysNvtxTrace.name, REQUIRED)
    // Numbers of threads are their ids, numbers of domains their names.
    const ranges = new NvtxRanges({
      pidOf: () => -1,
      tidOf: (thread) => thread,
      threadName: () => 0,
      domainName: (_, domain) => domain,
      categoryName: () => 0,
      text: (name) => names.text(name),
      lastNs: Number.MAX_SAFE_INTEGER,
    })
    let rows = 0
    const take = () => {
      if (add(report, ranges, names)) rows++
    }
    yield* report.read(take, { domains: 'inferred: the text before the first colon of a name' })
    yield* ranges.events()
    yield [{ kind: 'facts', ...containing(plural(rows, 'NVTX range')) }]
  },
}

function add(report: CsvReport, ranges: NvtxRanges, names: Names): boolean {
  const [startNs, endNs, tid] = [report.ns('Start'), report.ns('End'), report.number('TID')]
  if (!(startNs >= 0) || !(endNs >= startNs) || !Number.isSafeInteger(tid)) {
    const found = `${report.text('Start')}, ${report.text('End')} and ${report.text('TID')}`.slice(0, 80)
    report.bad(`expected a start, an end and a thread, found ${found}; left out`, Math.max(0, startNs))
    return false
  }
  const [domain, text] = splitName(report.text('Name'))
  const style = { what: 'push-pop', thread: tid, endThread: tid, categoryId: 0, color: -1 } as const
  ranges.add(startNs, endNs, names.id(text), { ...style, domainId: names.id(domain) })
  return true
}

/** `TSL:XlaCompile` is in the domain TSL, `:copy` and `copy` are in the default one. */
function splitName(name: string): readonly [string, string] {
  const [, domain, text] = /^([^:]*):(?![:\s])(.*)$/s.exec(name) ?? []
  return text === undefined ? ['', name] : [domain!, text]
}
