import { DefaultMap, getOrMake } from '../../../model/default-map.ts'
import type { ThreadState, TraceEvent } from '../../../model/events.ts'
import { Spans } from '../../common/spans.ts'
import { MEMORY_KINDS, pidOf, type Report } from './report.ts'

/** Memory of the device, of {@link MEMORY_KINDS}. */
const DEVICE_MEMORY = 2

/** Counters that nsys sampled on the GPUs, in the order of the table. */
export async function* readGpuMetrics(report: Report): AsyncGenerator<TraceEvent[], void> {
  const metrics = new Map<string, string>()
  await report.each('TARGET_INFO_GPU_METRICS', ['typeId', 'metricId', 'metricName'], (row) => {
    metrics.set(`${row.high(0)} ${row.low(0)} ${row.number(1)}`, row.text(2))
  })
  const names = new Map<string, number>()
  yield* report.events('GPU_METRICS', ['timestamp', 'typeId', 'metricId', 'value'], (row) => {
    const [atNs, value] = [report.time(row, 0), row.number(3)]
    if (report.endOf('GPU_METRICS', atNs, atNs) === undefined) return undefined
    if (!Number.isFinite(value)) {
      report.leftOut.add('GPU_METRICS without a number')
      return undefined
    }
    const key = `${row.high(1)} ${row.low(1)} ${row.number(2)}`
    const name = getOrMake(names, key, () => {
      const gpu = row.low(1) & 0xff // lowest byte of the type
      return report.names.id(`GPU ${gpu}: ${metrics.get(key) || `metric ${row.number(2)}`}`)
    })
    return { kind: 'counter', name, unit: 'count', atNs, value }
  })
}

/** Allocated memory by process and device, from allocations and frees. */
export async function* readMemoryUsage(report: Report): AsyncGenerator<TraceEvent[], void> {
  const table = 'CUDA_GPU_MEMORY_USAGE_EVENTS'
  const columns = ['start', 'globalPid', 'deviceId', 'bytes', 'memoryOperationType', 'memKind']
  const spans = new Spans() // `a` is the index in `owners`, `b` is 0 for an allocation, 1 for a free
  const sizes: number[] = []
  const owners: { readonly name: number; bytes: number }[] = []
  const numbers = new DefaultMap((name: string) => owners.push({ name: report.names.id(name), bytes: 0 }) - 1)
  await report.each(table, columns, (row) => {
    const atNs = report.time(row, 0)
    if (report.endOf(table, atNs, atNs) === undefined) return
    const [pid, device] = [pidOf(row.high(1), row.low(1)), row.number(2, 0)]
    const kind = row.number(5, DEVICE_MEMORY)
    const kindText = kind === DEVICE_MEMORY ? '' : `${MEMORY_KINDS[kind] ?? 'other'} `
    const owner = numbers.of(`GPU ${device}: ${kindText}memory allocated by process ${pid}`)
    spans.push(atNs, atNs, owner, row.number(4, 0))
    sizes.push(row.number(3, 0))
    report.count(table)
  })
  yield* spans.order().inBatches((id, batch) => {
    const owner = owners[spans.a(id)]!
    owner.bytes += spans.b(id) === 0 ? sizes[id]! : -sizes[id]!
    batch.push({ kind: 'counter', name: owner.name, unit: 'bytes', atNs: spans.start(id), value: owner.bytes })
  })
}

/** States of the traced threads, thread by thread in order. */
export async function* readSchedule(report: Report): AsyncGenerator<TraceEvent[], void> {
  const table = 'SCHED_EVENTS'
  const byThread = new DefaultMap<number, Spans>(() => new Spans()) // `a` is the state, `b` the CPU
  await report.each(table, ['start', 'cpu', 'isSchedIn', 'globalTid', 'threadState', 'threadBlock'], (row) => {
    const atNs = report.time(row, 0)
    if (report.endOf(table, atNs, atNs) === undefined) return
    const thread = report.threads.of(row.high(3), row.low(3))
    const state = row.number(2, 0) !== 0 ? 'running' : stateOf(row.number(4, 0), row.number(5, -1))
    byThread.of(thread).push(atNs, atNs, STATES.indexOf(state), row.number(1, 0))
    report.count(table)
  })
  for (const [thread, spans] of byThread) {
    const { tid } = report.threads.list[thread]!
    const name = report.names.id(`${report.names.text(report.threadNames[thread] ?? 0) || 'thread'} ${tid}`)
    yield* spans.order().inBatches((id, batch) => {
      const state = STATES[spans.a(id)]!
      batch.push({ kind: 'state', tid, cpu: spans.b(id), state, atNs: spans.start(id), thread: name })
    })
  }
}

/** Reasons for leaving a CPU (nsys's ENUM_SCHEDULING_THREAD_BLOCK) with which a thread remains runnable; with others it waits. */
const PREEMPTED = new Set([42, 43, 44, 45, 49, 51])
const STATES: readonly ThreadState[] = ['running', 'runnable', 'blocked', 'off']

/** State of a thread that left its CPU; `off` if nsys does not record why. */
function stateOf(state: number, block: number): ThreadState {
  if (PREEMPTED.has(block)) return 'runnable'
  return block > 1 || state === 2 || state === 3 || state === 7 ? 'blocked' : 'off'
}
