import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import { Intervals } from '../common/intervals.ts'
import { TimesNs } from '../common/sketches.ts'
import type { GpuQueueLength } from './figures.ts'
import type { HostTimes } from './host-activity.ts'
import { type HostRanges, RANGE_KINDS, type RangeCursor } from './host-ranges.ts'
import type { Launches } from './launches.ts'
import type { StepList } from './steps.ts'
import { boundedBy } from './tables.ts'
import { GapSums, TimeSweep } from './time-sweep.ts'
import { type Device, type GpuWork, NONE, type Stream, type WorkRow } from './work.ts'

/**
 * Launches of a stream or a device that wait for their work to begin: HTA's queue length (hta/analyzers/trace_counters.py,
 * _get_queue_length_time_series_for_rank), with a launch of a CUDA graph as one. Its mean over time is the sum of the latencies by the time.
 */
class LaunchQueue {
  readonly latency = new TimesNs()
  private depth = 0
  private max = 0
  private firstNs = Infinity
  private lastNs = -Infinity

  launched(atNs: number): void {
    this.firstNs = Math.min(this.firstNs, atNs)
    this.max = Math.max(this.max, ++this.depth)
  }

  begun(atNs: number): void {
    this.lastNs = Math.max(this.lastNs, atNs)
    this.depth--
  }

  /** Null without launches. */
  figures(): GpuQueueLength | null {
    if (this.max === 0) return null
    const timeNs = this.lastNs - this.firstNs
    return { mean: timeNs > 0 ? this.latency.sumNs / timeNs : 0, max: this.max }
  }
}

/** Numbers of pairs of numbers. */
class Pairs {
  readonly a: number[] = []
  readonly b: number[] = []
  private readonly ids = new Map<number, number>()

  of(a: number, b: number): number {
    const key = a * 2 ** 26 + b
    const known = this.ids.get(key)
    if (known !== undefined) return known
    this.ids.set(key, this.a.length)
    this.a.push(a)
    return this.b.push(b) - 1
  }
}

/** Sites of launches: the names of the ranges of each kind around them, innermost and outermost; numbers from 0. */
class Sites {
  /** Innermost and outermost name, by kind. */
  private readonly byKind = RANGE_KINDS.map(() => new Pairs())
  private readonly halves = [new Pairs(), new Pairs()] as const
  private readonly sites = new Pairs()

  get length(): number {
    return this.sites.a.length
  }

  /** Replaces the values of a process' launches by their sites. */
  attribute(launches: Launches, ranges: HostRanges, pid: number): void {
    const threads = new Map<number, { cursors: (RangeCursor | undefined)[]; atNs: number }>()
    for (const [i, { from, tid }] of launches.runs.entries()) {
      const end = launches.runs[i + 1]?.from ?? launches.length
      const thread = getOrMake(threads, tid, () => ({
        cursors: RANGE_KINDS.map((_, kind) => ranges.cursor(kind, { pid, tid })),
        atNs: -Infinity,
      }))
      for (let at = from; at < end; at++) {
        thread.atNs = Math.max(thread.atNs, launches.start(at))
        launches.values.set(at, this.at(thread.cursors, thread.atNs))
      }
    }
  }

  /** Name of the range around a site; 0: none. */
  nameOf(site: number, kind: number, level: 'innermost' | 'outermost'): number {
    const half = kind < 2 ? this.sites.a[site]! : this.sites.b[site]!
    const { a, b } = this.halves[kind >> 1]!
    const pair = kind % 2 === 0 ? a[half]! : b[half]!
    const pairs = this.byKind[kind]!
    return level === 'innermost' ? pairs.a[pair]! : pairs.b[pair]!
  }

  private at(cursors: readonly (RangeCursor | undefined)[], atNs: number): number {
    const pairOf = (kind: number) => {
      const cursor = cursors[kind]
      cursor?.moveTo(atNs)
      return this.byKind[kind]!.of(cursor?.innermost ?? 0, cursor?.outermost ?? 0)
    }
    const [first, second] = this.halves
    return this.sites.of(first.of(pairOf(0), pairOf(1)), second.of(pairOf(2), pairOf(3)))
  }
}

/** Of more GPUs than a machine has, waits for each other are not looked for: each would be compared with each. */
const DEVICES_MAX = 64
/** From here on, the value of a launch is the number of its stream: its work has begun. */
const BEGUN = 0x80000000

/** Figures of a stream that need the order of its work. */
export interface StreamMeasure {
  readonly gaps: GapSums
  readonly queue: LaunchQueue
  endNs: number
  /** Time in which it works: work that overlaps counts once. */
  busyNs: number
}

/** Work of a device that was launched at a site. */
interface SiteSum {
  launches: number
  work: number
  timeNs: number
}

/** Figures of a device that need the order of its work, or its launches. */
export interface DeviceMeasure {
  readonly sweep: TimeSweep
  /** Of the work of calls. */
  readonly callSweep: TimeSweep
  readonly queue: LaunchQueue
  /** Time in which it works; undefined where no other device may wait for it. */
  readonly working: Intervals | undefined
  /** Launches whose work begins before them. */
  launchesAfterWork: number
  /** Pieces of work whose launch is known. */
  launched: number
  /** By site; few of all sites may belong to a device. */
  readonly sites: DefaultMap<number, SiteSum>
  /** By step. */
  readonly steps: TimeSweep[]
}

/** What the pieces of work show together with their launches. */
export interface Measures {
  readonly sites: Sites
  readonly devices: readonly DeviceMeasure[]
  readonly streams: readonly StreamMeasure[]
  /** Durations of those rows that are shown. */
  readonly durations: ReadonlyMap<string, TimesNs>
}

/** Kernels of one name on a device. */
export const kernelKey = ({ stream, name }: Pick<WorkRow, 'stream' | 'name'>) => `${stream.of.index} ${name}`

/** Kernels of each name on a device, over its streams. */
export function kernelsOf(device: Device): { row: WorkRow; count: number; timeNs: number }[] {
  const sums = new Map<number, { row: WorkRow; count: number; timeNs: number }>()
  for (const row of device.rows) {
    if (row.what !== 'kernel') continue
    const sum = sums.get(row.name)
    if (sum) {
      sum.count += row.count
      sum.timeNs += row.timeNs
    } else sums.set(row.name, { row, count: row.count, timeNs: row.timeNs })
  }
  return [...sums.values()]
}

/** Goes through all work, in order of its start. `launches` by process; they are used up. `host`: what the program did, where it is known. */
export function measure(
  work: GpuWork,
  launches: ReadonlyMap<number, Launches>,
  ranges: HostRanges,
  steps: StepList,
  host: HostTimes | undefined,
): Measures {
  const sites = new Sites()
  ranges.sort()
  join(work, launches)
  for (const [pid, launch] of launches) sites.attribute(launch, ranges, pid)
  const isOfOneThread = [...launches.values()].every(({ runs }) => runs.every(({ tid }) => tid === runs[0]!.tid))
  const isOfSeveral = work.devices.length > 1 && work.devices.length <= DEVICES_MAX
  const working = host && isOfOneThread && isOfSeveral ? work.devices.map(() => new Intervals()) : undefined
  const devices = work.devices.map(({ index, device, pid }): DeviceMeasure => {
    const others = (working ?? []).flatMap((intervals, i) => {
      const other = work.devices[i]!
      return i !== index && other.pid === pid ? [{ device: other.device, intervals }] : []
    })
    return {
      ...{
        sweep: new TimeSweep(host?.ofDevice(device, others)),
        callSweep: new TimeSweep(host?.ofDevice(device, others)),
      },
      ...{ queue: new LaunchQueue(), launchesAfterWork: 0, launched: 0 },
      working: working?.[index],
      sites: new DefaultMap(() => ({ launches: 0, work: 0, timeNs: 0 })),
      steps: steps.list.map(() => new TimeSweep()),
    }
  })
  const streams = work.streams.map(() => ({ gaps: new GapSums(), queue: new LaunchQueue(), endNs: NaN, busyNs: 0 }))
  const durations = new Map(
    work.devices.flatMap((device) =>
      boundedBy(kernelsOf(device)).shown.map(({ row }) => [kernelKey(row), new TimesNs()] as const),
    ),
  )
  const measures = { sites, devices, streams, durations }
  addUp(work, launches, measures)
  const order = work.order()
  divide(work, order, launches, steps, measures)
  sites.length > 0 && enqueue(work, order, launches, measures)
  return measures
}

/** Replaces correlation ids by places of launches. */
function join(work: GpuWork, launches: ReadonlyMap<number, Launches>): void {
  const finders = work.streams.map(({ pid }) => launches.get(pid)?.finder())
  for (let id = 0; id < work.length; id++) {
    const find = finders[work.row(id).stream.index]
    work.launches.set(id, find ? find(work.launches.at(id)) : NONE)
  }
}

/** Sums by site, and the distributions of durations, in any order. */
function addUp(work: GpuWork, launches: ReadonlyMap<number, Launches>, { devices, durations }: Measures): void {
  const times = new Map(
    work.rows.map((row) => [row, row.what === 'kernel' ? durations.get(kernelKey(row)) : undefined]),
  )
  for (let id = 0; id < work.length; id++) {
    const row = work.row(id)
    const durationNs = work.duration(id)
    times.get(row)?.add(durationNs)
    const at = work.launches.at(id)
    if (at === NONE) continue
    const device = devices[row.stream.of.index]!
    const sum = device.sites.of(launches.get(row.stream.pid)!.values.at(at))
    device.launched++
    sum.work++
    sum.timeNs += durationNs
  }
}

/** Time of devices and steps, gaps and latencies. A launch's value becomes its stream, or {@link NONE} where its work began before it. */
function divide(
  work: GpuWork,
  order: Uint32Array | undefined,
  launches: ReadonlyMap<number, Launches>,
  steps: StepList,
  { devices, streams }: Measures,
): void {
  for (let place = 0; place < work.length; place++) {
    const id = order ? order[place]! : place
    const { stream, kind, transfer } = work.row(id)
    const [startNs, at] = [work.start(id), work.launches.at(id)]
    const endNs = startNs + work.duration(id)
    const launched = at === NONE ? undefined : launches.get(stream.pid)!
    const launchNs = launched ? launched.start(at) : NaN
    const device = devices[stream.of.index]!
    device.working?.add(startNs, endNs)
    device.sweep.take(startNs, endNs, kind, launchNs, transfer)
    if (work.isOfCall(id)) device.callSweep.take(startNs, endNs, kind, launchNs, transfer)
    addGap(streams[stream.index]!, startNs, endNs, launchNs)
    if (!launched) continue
    const step = steps.at(launchNs)
    if (step >= 0) device.steps[step]!.take(startNs, endNs, kind, launchNs)
    const site = launched.values.at(at)
    if (site < BEGUN) launched.values.set(at, begin(device, streams, stream, site, startNs - launchNs))
  }
}

function addGap(stream: StreamMeasure, startNs: number, endNs: number, launchNs: number): void {
  if (startNs > stream.endNs) stream.gaps.add(stream.endNs, startNs, launchNs)
  else if (!Number.isNaN(stream.endNs)) stream.gaps.add(startNs, startNs, NaN)
  if (endNs <= stream.endNs) return
  stream.busyNs += endNs - (stream.endNs > startNs ? stream.endNs : startNs)
  stream.endNs = endNs
}

/** The first work of a launch begins; returns the launch's new value. */
function begin(
  device: DeviceMeasure,
  streams: readonly StreamMeasure[],
  { index }: Stream,
  site: number,
  latencyNs: number,
): number {
  device.sites.of(site).launches++
  if (latencyNs < 0) {
    device.launchesAfterWork++
    return NONE
  }
  device.queue.latency.add(latencyNs)
  streams[index]!.queue.latency.add(latencyNs)
  return BEGUN + index
}

/** Lengths of queues: launches and the first work of each, in order of time. */
function enqueue(
  work: GpuWork,
  order: Uint32Array | undefined,
  launches: ReadonlyMap<number, Launches>,
  { devices, streams }: Measures,
): void {
  const pointers = new Map(
    [...launches].map(([pid, launches]) => [pid, { of: launches, order: launches.order(), place: 0 }]),
  )
  const queuesOf = (stream: number) => [streams[stream]!.queue, devices[work.streams[stream]!.of.index]!.queue]
  const queues = work.streams.map(({ index }) => queuesOf(index))
  for (let place = 0; place < work.length; place++) {
    const id = order ? order[place]! : place
    const at = work.launches.at(id)
    if (at === NONE) continue
    const pointer = pointers.get(work.row(id).stream.pid)!
    const { of: launches } = pointer
    const begun = launches.values.at(at)
    if (begun === NONE) continue
    const startNs = work.start(id)
    for (; pointer.place < launches.length; pointer.place++) {
      const launch = pointer.order ? pointer.order[pointer.place]! : pointer.place
      if (launches.start(launch) > startNs) break
      const value = launches.values.at(launch)
      if (value < BEGUN || value === NONE) continue
      for (const queue of queues[value - BEGUN]!) queue.launched(launches.start(launch))
    }
    for (const queue of queues[begun - BEGUN]!) queue.begun(startNs)
    launches.values.set(at, NONE)
  }
}
