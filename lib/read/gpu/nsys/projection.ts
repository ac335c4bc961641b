import type { TraceEvent } from '../../../model/events.ts'
import { Order, Spans } from '../../common/spans.ts'
import type { ApiCalls, LaunchedWork, Launches } from './calls.ts'
import type { NvtxRanges } from './nvtx-ranges.ts'
import type { Report } from './report.ts'

const NO_CORRELATION = 0xffffffff

/** An open range of the sweep, and the GPU work that was launched in it so far. */
interface OpenRange {
  readonly id: number
  readonly endNs: number
  gpuStartNs: number
  gpuEndNs: number
  launched: number
  busyNs: number
}

/**
 * Projects each NVTX range onto the GPU: from the first to the last work whose launch began within the range, on the range's
 * thread. Thread by thread, in order of the starts.
 */
export function* project(
  report: Report,
  nvtx: NvtxRanges,
  calls: ApiCalls,
  launches: Launches,
): Generator<TraceEvent[], void> {
  for (const [thread, ranges] of nvtx.byThread) {
    const spans = calls.byThread.get(thread)
    if (spans) yield* projectThread(report, thread, ranges, nvtx, spans, launches)
  }
}

function* projectThread(
  report: Report,
  thread: number,
  ranges: Spans,
  nvtx: NvtxRanges,
  calls: Spans,
  launches: Launches,
): Generator<TraceEvent[], void> {
  const { tid, owner } = report.threads.list[thread]!
  const seen = new Spans() // `a` is the range, `b` the index in the two lists
  const launched: number[] = []
  const busyNs: number[] = []
  const close = (range: OpenRange) => {
    if (range.launched === 0) return
    seen.push(range.gpuStartNs, range.gpuEndNs, range.id, launched.length)
    launched.push(range.launched)
    busyNs.push(range.busyNs)
  }
  const work = launches.of(owner)
  sweep(ranges, nvtx, calls, (range, correlation) => add(range, work, correlation), close)
  // Ranges close inner before outer: of two with the same times, the one that closed last is the outer one.
  const order = new Order(
    seen.length,
    (x, y) => seen.start(x) - seen.start(y) || seen.end(y) - seen.end(x) || seen.b(y) - seen.b(x),
  )
  yield* order.inBatches((at, batch) => {
    const [id, i] = [seen.a(at), seen.b(at)]
    batch.push({
      kind: 'nvtx-gpu',
      ...{ name: ranges.a(id), domain: nvtx.domainOf(ranges, id), tid, thread: report.threadNames[thread] ?? 0 },
      ...{ startNs: seen.start(at), endNs: seen.end(at), launched: launched[i]!, busyNs: busyNs[i]! },
    })
  })
}

/** Iterates over a thread's calls in order: `take` gets each call with each range in which it began. */
function sweep(
  ranges: Spans,
  nvtx: NvtxRanges,
  calls: Spans,
  take: (range: OpenRange, correlation: number) => void,
  close: (range: OpenRange) => void,
): void {
  const [rangeOrder, callOrder] = [ranges.order(), calls.order()]
  let open: OpenRange[] = []
  let next = 0
  for (let place = 0; place < callOrder.length; place++) {
    const call = callOrder.at(place)
    const correlation = calls.b(call)
    if (correlation === NO_CORRELATION) continue
    const atNs = calls.start(call)
    for (; next < rangeOrder.length && ranges.start(rangeOrder.at(next)) <= atNs; next++) {
      const id = rangeOrder.at(next)
      if (!nvtx.isRange(ranges, id)) continue
      const endNs = nvtx.endOf(ranges, id)
      if (endNs < atNs) continue
      open.push({ id, endNs, gpuStartNs: Infinity, gpuEndNs: -Infinity, launched: 0, busyNs: 0 })
    }
    if (open.some(({ endNs }) => endNs < atNs)) {
      closeAll(
        open.filter(({ endNs }) => endNs < atNs),
        close,
      )
      open = open.filter(({ endNs }) => endNs >= atNs)
    }
    for (const range of open) take(range, correlation)
  }
  closeAll(open, close)
}

function closeAll(ranges: readonly OpenRange[], close: (range: OpenRange) => void): void {
  for (let i = ranges.length - 1; i >= 0; i--) close(ranges[i]!)
}

function add(range: OpenRange, work: LaunchedWork, correlation: number): void {
  const [first, last] = work.find(correlation)
  for (let place = first; place < last; place++) {
    const [startNs, endNs] = [work.start(place), work.end(place)]
    range.gpuStartNs = Math.min(range.gpuStartNs, startNs)
    range.gpuEndNs = Math.max(range.gpuEndNs, endNs)
    range.launched++
    range.busyNs += endNs - startNs
  }
}
