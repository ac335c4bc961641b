import { PAGE_MOMENTS, PageBits } from '../../log/ggtrace-layout.ts'
import { NO_PAGE, type PagesEvent, UNKNOWN_PAGE } from '../../model/page-events.ts'
import { type LogClock, readAddress } from './fields.ts'

/** What a PAGES record needs of its log. */
export interface PagesNames {
  readonly clock: LogClock
  /** The name with this id of the log. */
  name(id: number): number
  /** The name of the buffer with this id. */
  buffer(id: number): number
}

/** The event of a PAGES record; undefined for moments of later versions. */
export function readPages(view: DataView, at: number, end: number, of: PagesNames): PagesEvent | undefined {
  const moment = PAGE_MOMENTS[view.getUint32(at + 8, true)]
  if (!moment) return undefined
  const runs = new Int32Array(2 * Math.floor((end - at - 44) / 4))
  for (let i = 0; i < runs.length; i += 2) {
    const word = view.getUint32(at + 44 + 2 * i, true)
    runs[i] = word >>> PageBits.node
    runs[i + 1] = nodeOf(word & PageBits.noPage)
  }
  return {
    ...{ kind: 'pages', buffer: of.buffer(view.getUint32(at + 4, true)), moment },
    askedNs: of.clock.read(view, at + 12) ?? 0,
    address: readAddress(view, at + 20),
    pageBytes: view.getUint32(at + 28, true),
    stride: view.getUint32(at + 32, true),
    policy: of.name(view.getUint32(at + 36, true)),
    kernelPageBytes: view.getUint32(at + 40, true) * 1024,
    runs,
  }
}

const nodeOf = (node: number) => (node === PageBits.noPage ? NO_PAGE : node === PageBits.unknown ? UNKNOWN_PAGE : node)
