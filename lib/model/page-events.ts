import { type Bounds, outOfRange, wrongAmount, wrongNumber, wrongTime } from './bounds.ts'

/** Where pages of a buffer are, on a machine with several NUMA nodes: each that the kernel was asked for, in order of addresses. */
export interface PagesEvent {
  readonly kind: 'pages'
  /** Name of the buffer. */
  readonly buffer: number
  /** After the first graph that was computed with the buffer, or before the buffer or the program ended. */
  readonly moment: 'first' | 'last'
  /** When the kernel was asked: not the place of the event, which comes as the definitions of tensors do. */
  readonly askedNs: number
  /** Of the first page. */
  readonly address: number
  /** Each `stride`-th page was asked for. */
  readonly pageBytes: number
  readonly stride: number
  /** Policies of its memory as the kernel names them (`interleave:0-1`), separated by commas; 0 = not known. */
  readonly policy: number
  /** Size of the largest pages that its memory is mapped with (`hugetlbfs`); 0 = not known. */
  readonly kernelPageBytes: number
  /** Successive pages on one node, as pairs: their number, and the node, or {@link NO_PAGE}, or {@link UNKNOWN_PAGE}. */
  readonly runs: Int32Array
}

/** In place of a node: the page is not present, as it was not used yet, or the kernel looks at the time who uses it. */
export const NO_PAGE = -1
/** In place of a node: the kernel does not report it. */
export const UNKNOWN_PAGE = -2

/** Of Linux (CONFIG_NODES_SHIFT). */
const NODE_MAX = 1023
/** Addresses of programs have 57 bits at most. */
const END_MAX = 2 ** 57

/** Their ranges. */
export const PAGE_BOUNDS: Bounds<PagesEvent> = {
  pages: (event) =>
    wrongTime(event.askedNs) ??
    wrongNumber('pageBytes', event.pageBytes, 2 ** 31) ??
    wrongNumber('stride', event.stride, 2 ** 31) ??
    wrongRun(event) ??
    wrongAmount(event),
}

function wrongRun({ runs, address, pageBytes, stride }: PagesEvent) {
  let pages = 0
  for (let i = 0; i < runs.length; i += 2) {
    const [count, node] = [runs[i]!, runs[i + 1] ?? Number.NaN]
    if (!(count > 0)) return outOfRange('runs', count, 1, 2 ** 20)
    if (!(node >= UNKNOWN_PAGE && node <= NODE_MAX)) return outOfRange('runs', node, UNKNOWN_PAGE, NODE_MAX)
    pages += count
  }
  const end = address + pages * pageBytes * stride
  return pageBytes > 0 && stride > 0 && end <= END_MAX ? undefined : outOfRange('runs', end, 0, END_MAX)
}
