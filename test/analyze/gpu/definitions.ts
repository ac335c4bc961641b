import type { GpuDevice } from '../../../lib/analysis.ts'

/**
 * The definitions of TraceLens and HTA, computed as they compute them: from lists of intervals, in ns. TraceLens at 171dd74
 * (TraceLens/TreePerf/gpu_event_analyser.py), HTA at f4d0062 (hta/analyzers/breakdown_analysis.py, communication_analysis.py).
 */

export interface SourceWork {
  readonly what: 'kernel' | 'memcpy' | 'memset'
  readonly name: string
  readonly startNs: number
  readonly endNs: number
  readonly device: number
  readonly pid: number
  readonly stream: number
  /** Start of the call that launched it; NaN: not known. */
  readonly launchNs: number
  /** Which call it is. */
  readonly launch: unknown
  readonly bytes: number
}

type Interval = readonly [start: number, end: number]

const lengthOf = (intervals: readonly Interval[]) => intervals.reduce((sum, [start, end]) => sum + end - start, 0)

/** TraceLens: merge_intervals. */
export function merged(intervals: readonly Interval[]): Interval[] {
  const sorted = intervals.toSorted((a, b) => a[0] - b[0])
  const union: [number, number][] = []
  for (const [start, end] of sorted) {
    const last = union.at(-1)
    if (last && start <= last[1]) last[1] = Math.max(last[1], end)
    else union.push([start, end])
  }
  return union
}

/** TraceLens: subtract_intervalsA_from_B. */
export function without(taken: readonly Interval[], from: readonly Interval[]): Interval[] {
  const left: Interval[] = []
  for (const [start, end] of from) {
    let current = start
    for (const [a, b] of taken) {
      if (b <= current || a >= end) continue
      if (a > current) left.push([current, Math.min(end, a)])
      current = Math.max(current, b)
      if (current >= end) break
    }
    if (current < end) left.push([current, end])
  }
  return left
}

const intervalsOf = (work: readonly SourceWork[]) => work.map(({ startNs, endNs }): Interval => [startNs, endNs])
const TRACELENS = [/rccl/i, /nccl/i, /cross_device_reduce/i]

/** TraceLens: compute_metrics_dict. */
export function tracelens(work: readonly SourceWork[]) {
  const copies = work.filter(({ what }) => what === 'memcpy')
  const isCommunication = ({ what, name }: SourceWork) => what === 'kernel' && TRACELENS.some((of) => of.test(name))
  const communication = work.filter(isCommunication)
  const computation = work.filter((of) => of.what !== 'memcpy' && !isCommunication(of))
  const union = [computation, communication, copies, work].map((of) => merged(intervalsOf(of)))
  const [computing, communicating, copying, all] = union as [Interval[], Interval[], Interval[], Interval[]]
  const total = all.at(-1)![1] - all[0]![0]
  return {
    computation_ns: lengthOf(computing),
    exposed_communication_ns: lengthOf(without(computing, communicating)),
    exposed_copy_ns: lengthOf(without(communicating, without(computing, copying))),
    communication_ns: lengthOf(communicating),
    copy_ns: lengthOf(copying),
    busy_ns: lengthOf(all),
    idle_ns: total - lengthOf(all),
    total_ns: total,
  }
}

const HTA_COMMUNICATION = /^(?:(nccl.*)|(hip)|(hccl)|(.*ncclKernel.*))/

/** HTA: get_temporal_breakdown and get_comm_comp_overlap. */
export function hta(work: readonly SourceWork[]) {
  const isCommunication = ({ what, name }: SourceWork) => what === 'kernel' && HTA_COMMUNICATION.test(name)
  const computing = merged(intervalsOf(work.filter((of) => of.what === 'kernel' && !isCommunication(of))))
  const communicating = merged(intervalsOf(work.filter(isCommunication)))
  const all = merged(intervalsOf(work))
  const kernelTime = all.at(-1)![1] - all[0]![0]
  const idle = kernelTime - lengthOf(all)
  const overlap = lengthOf(communicating) - lengthOf(without(computing, communicating))
  return {
    idle_time: idle,
    compute_time: lengthOf(computing),
    non_compute_time: kernelTime - lengthOf(computing) - idle,
    kernel_time: kernelTime,
    overlap_ratio: communicating.length > 0 ? overlap / lengthOf(communicating) : null,
  }
}

/** HTA: _analyze_idle_time_for_stream, with 30 µs. Undefined where work of the stream overlaps: its gaps are negative there. */
export function htaIdle(work: readonly SourceWork[]) {
  const sorted = work.toSorted((a, b) => a.startNs - b.startNs)
  const sums = { host_wait: 0, kernel_wait: 0, other: 0 }
  for (const [i, { startNs, launchNs }] of sorted.entries()) {
    if (i === 0) continue
    const before = sorted[i - 1]!.endNs
    if (startNs < before) return undefined
    const cause = launchNs > before ? 'host_wait' : startNs - before < 30_000 ? 'kernel_wait' : 'other'
    sums[cause] += startNs - before
  }
  return sums
}

/** HTA: get_queue_length_time_series, of launches with their first work: the maximum, and the mean over the time of the series. */
export function queueOf(work: readonly SourceWork[]) {
  const firsts = new Map<unknown, SourceWork>()
  for (const of of work.toSorted((a, b) => a.startNs - b.startNs))
    if (!Number.isNaN(of.launchNs) && !firsts.has(of.launch)) firsts.set(of.launch, of)
  const changes = [...firsts.values()]
    .flatMap(({ launchNs, startNs }) => [
      { atNs: launchNs, by: 1 },
      { atNs: startNs, by: -1 },
    ])
    .sort((a, b) => a.atNs - b.atNs || b.by - a.by)
  let [length, max, area] = [0, 0, 0]
  for (const [i, { atNs, by }] of changes.entries()) {
    length += by
    max = Math.max(max, length)
    area += length * ((changes[i + 1]?.atNs ?? atNs) - atNs)
  }
  const time = changes.length > 0 ? changes.at(-1)!.atNs - changes[0]!.atNs : 0
  const latencies = [...firsts.values()].map(({ launchNs, startNs }) => startNs - launchNs).sort((a, b) => a - b)
  return { latencies, max, mean: time > 0 ? area / time : 0 }
}

/** The same figures of an Analysis. */
export const figuresOf = ({ time }: GpuDevice) => {
  const { tracelens, ...of } = time!
  return {
    tracelens: {
      ...tracelens,
      ...{ communication_ns: of.communication_ns, busy_ns: of.busy_ns, idle_ns: of.idle_ns, total_ns: of.total_ns },
    },
    hta: {
      ...{ idle_time: of.idle_ns, compute_time: of.computation_ns, kernel_time: of.total_ns },
      non_compute_time: of.exposed_communication_ns + of.exposed_copy_ns,
      overlap_ratio: of.communication_overlap_share,
    },
  }
}
