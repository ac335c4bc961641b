import { getOrMake } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import { orNull } from '../../model/units.ts'
import { WorkClass } from './classes.ts'
import type { GpuDevice, GpuKind, GpuLauncher, GpuLaunchers, GpuStep, GpuStream } from './figures.ts'
import { RANGE_KINDS } from './host-ranges.ts'
import { type DeviceMeasure, kernelKey, kernelsOf, type Measures } from './measure.ts'
import type { StepList } from './steps.ts'
import { boundedBy, ROWS_MAX, restOf } from './tables.ts'
import type { TimeSweep } from './time-sweep.ts'
import type { Device } from './work.ts'

interface Of {
  /** Undefined where only sums are known. */
  readonly measures: Measures | undefined
  readonly steps: StepList
  readonly names: Names
  /** `0 NVIDIA H100, 1 NVIDIA H100` */
  readonly gpus: string
  /** The fact `gpu.times`; null where there is none. */
  readonly times: string | null
}

const shareOf = (timeNs: number, allNs: number) => (allNs > 0 ? timeNs / allNs : 0)

/** All figures of a device. */
export function deviceFigures(device: Device, subject: Of): GpuDevice {
  const { measures, gpus, times } = subject
  const measured = device.isPlaced ? measures?.devices[device.index] : undefined
  const hasLaunches = measured !== undefined && measured.launched > 0
  const name = gpus.split(/, (?=\d+ )/).find((gpu) => gpu.startsWith(`${device.device} `))
  return {
    device: orNull(device.device),
    pid: orNull(device.pid),
    name: name?.replace(/^\d+ /, '') ?? null,
    times: device.isPlaced ? times : 'durations',
    work: device.work,
    work_ns: device.workNs,
    ...timesOf(measured?.sweep, hasLaunches),
    calls: callsOf(device, measured, hasLaunches),
    kinds: kindsOf(device),
    ...kernels(device, subject),
    streams: streamsOf(device, subject, hasLaunches),
    transfers: device.transfers.figures(measured?.sweep.exposedTransfersNs),
    launch_latency: measured?.queue.latency.figures() ?? null,
    launches_after_work: measured?.launchesAfterWork ?? 0,
    queue: measured?.queue.figures() ?? null,
    launchers: measured ? launchersOf(device, measured, subject) : [],
    ...stepsOf(measured, subject),
  }
}

const timesOf = (sweep: TimeSweep | undefined, hasLaunches: boolean) => ({
  time: sweep?.figures() ?? null,
  idle: (hasLaunches && sweep?.gaps.figures()) || null,
  host_wait: (hasLaunches && sweep?.host?.figures()) || null,
})

function callsOf(device: Device, measured: DeviceMeasure | undefined, hasLaunches: boolean): GpuDevice['calls'] {
  const sweep = measured?.callSweep
  if (!sweep || sweep.work === 0) return null
  const transfers = device.transfers.figures(sweep.exposedTransfersNs, 'ofCalls')
  return { work: sweep.work, ...timesOf(sweep, hasLaunches), time: sweep.figures(), transfers }
}

function kindsOf({ rows: all, transfers, workNs }: Device): GpuKind[] {
  const kinds = (['kernel', 'graph'] as const).map((kind) => {
    const rows = all.filter(({ what }) => what === kind)
    const sum = (figureOf: (row: (typeof rows)[number]) => number) => rows.reduce((sum, row) => sum + figureOf(row), 0)
    return { kind, count: sum(({ count }) => count), time_ns: sum(({ timeNs }) => timeNs) }
  })
  return [...kinds, ...transfers.kinds()]
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.time_ns - a.time_ns)
    .map((kind) => ({ ...kind, share: shareOf(kind.time_ns, workNs) }))
}

function kernels(device: Device, { measures, names }: Of): Pick<GpuDevice, 'kernels' | 'other_kernels'> {
  const { shown, rest } = boundedBy(kernelsOf(device))
  return {
    kernels: shown.map(({ row, count, timeNs }) => ({
      name: names.text(row.name),
      is_communication: row.kind === WorkClass.Communication,
      count,
      time_ns: timeNs,
      share: shareOf(timeNs, device.workNs),
      duration: row.isSummed ? null : (measures?.durations.get(kernelKey(row))?.figures() ?? null),
    })),
    other_kernels: restOf(rest),
  }
}

function streamsOf({ streams }: Device, { measures, names }: Of, hasLaunches: boolean): GpuStream[] {
  return streams
    .toSorted((a, b) => a.stream - b.stream || a.context - b.context)
    .slice(0, ROWS_MAX)
    .map((stream) => {
      const { rows } = stream
      const measured = stream.of.isPlaced ? measures?.streams[stream.index] : undefined
      return {
        stream: orNull(stream.stream),
        context: orNull(stream.context),
        name: names.text(stream.streamName),
        work: rows.reduce((sum, { count }) => sum + count, 0),
        time_ns: measured?.busyNs ?? rows.reduce((sum, { timeNs }) => sum + timeNs, 0),
        gaps: hasLaunches && measured ? measured.gaps.figures() : null,
        launch_latency: measured?.queue.latency.figures() ?? null,
        queue: measured?.queue.figures() ?? null,
      }
    })
}

/** A table for each kind of range that launched work, innermost and outermost. */
function launchersOf(device: Device, measured: DeviceMeasure, { measures, names }: Of): GpuLaunchers[] {
  return RANGE_KINDS.flatMap((kind, index) =>
    (['innermost', 'outermost'] as const).flatMap((level): GpuLaunchers[] => {
      const sums = sumsByName(measured, (site) => measures!.sites.nameOf(site, index, level))
      if (sums.size === 0) return []
      const { shown, rest } = boundedBy([...sums.values()])
      const rows = shown.map(({ name, launches, count, timeNs }): GpuLauncher => {
        const share = shareOf(timeNs, device.workNs)
        return { name: names.text(name), launches, work: count, time_ns: timeNs, share }
      })
      const knownNs = [...sums.values()].reduce((sum, { timeNs }) => sum + timeNs, 0)
      return [{ kind, level, rows, other: restOf(rest), none_ns: device.workNs - knownNs }]
    }),
  )
}

interface LauncherSum {
  readonly name: number
  launches: number
  count: number
  timeNs: number
}

function sumsByName(measured: DeviceMeasure, nameOf: (site: number) => number): Map<number, LauncherSum> {
  const sums = new Map<number, LauncherSum>()
  const sites = [...measured.sites].sort(([a], [b]) => a - b)
  for (const [site, { launches, work, timeNs }] of sites) {
    const name = nameOf(site)
    if (name === 0) continue
    const sum = getOrMake(sums, name, () => ({ name, launches: 0, count: 0, timeNs: 0 }))
    sum.launches += launches
    sum.count += work
    sum.timeNs += timeNs
  }
  return sums
}

function stepsOf(measured: DeviceMeasure | undefined, { steps }: Of): Pick<GpuDevice, 'steps' | 'further_steps'> {
  const list = (measured?.steps ?? []).flatMap((sweep, i): GpuStep[] =>
    sweep.work > 0 ? [{ name: steps.list[i]!.name, work: sweep.work, time: sweep.figures() }] : [],
  )
  return { steps: list, further_steps: measured ? steps.count - steps.list.length : steps.count }
}
