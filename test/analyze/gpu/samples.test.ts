import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import type { Distribution, GpuDevice, GpuLaunchers } from '../../../lib/analysis.ts'
import { analyze } from '../../../lib/index.ts'
import { GPU_FIXTURES, plainBytes } from '../../line/support.ts'
import { figuresOf, hta, htaIdle, queueOf, type SourceWork, tracelens } from './definitions.ts'
import { kinetoSource, nsysSource, type Source } from './sources.ts'

/**
 * The figures of GPUs equal, to the nanosecond, what the definitions of HTA and TraceLens give for the same samples. `KINETO_TRACES` and
 * `NSYS_REPORTS` name folders of whole traces.
 */

const folder = (name: string, ext: string) => {
  const path = process.env[name]
  return path === undefined ? [] : readdirSync(path).flatMap((file) => (file.endsWith(ext) ? [join(path, file)] : []))
}
const unpacked = (path: string) => (path.endsWith('.gz') ? gunzipSync(readFileSync(path)) : readFileSync(path))
const samples: (readonly [name: string, bytes: () => Uint8Array])[] = [
  ...GPU_FIXTURES.map((name) => [name, () => plainBytes(name)] as const),
  ...folder('KINETO_TRACES', '.json.gz').map((path) => [path, () => new Uint8Array(unpacked(path))] as const),
  ...folder('NSYS_REPORTS', '.sqlite').map((path) => [path, () => new Uint8Array(unpacked(path))] as const),
]

const sourceOf = (name: string, bytes: Uint8Array): Source =>
  name.includes('.sqlite') ? nsysSource(bytes) : kinetoSource(new TextDecoder().decode(bytes))

const groupedBy = <T>(list: readonly T[], keyOf: (of: T) => string) => {
  const groups = new Map<string, T[]>()
  for (const of of list) groups.set(keyOf(of), [...(groups.get(keyOf(of)) ?? []), of])
  return groups
}
const timeOf = (work: readonly SourceWork[]) => work.reduce((sum, { startNs, endNs }) => sum + endNs - startNs, 0)

function expectDistribution(found: Distribution | null, values: readonly number[]): void {
  if (values.length === 0) return expect(found).toBe(null)
  const sum = values.reduce((sum, value) => sum + value, 0)
  expect(found).toMatchObject({ count: values.length, mean_ns: sum / values.length })
  expect([found!.min_ns, found!.max_ns]).toEqual([values[0], values.at(-1)])
  for (const [q, of] of [
    [0.5, found!.p50_ns],
    [0.99, found!.p99_ns],
  ] as const) {
    const exact = values[Math.ceil(q * values.length) - 1]!
    expect(Math.abs(of - exact)).toBeLessThanOrEqual(0.01 * exact + 1)
  }
}

function expectSums(device: GpuDevice, work: readonly SourceWork[]): void {
  expect([device.work, device.work_ns]).toEqual([work.length, timeOf(work)])
  const byName = groupedBy(
    work.filter(({ what }) => what === 'kernel'),
    ({ name }) => name,
  )
  expect(byName.size).toBe(device.kernels.length + (device.other_kernels?.names ?? 0))
  for (const { name, count, time_ns, duration } of device.kernels) {
    const kernels = byName.get(name)!
    expect([name, count, time_ns]).toEqual([name, kernels.length, timeOf(kernels)])
    expectDistribution(
      duration,
      kernels.map(({ startNs, endNs }) => endNs - startNs).sort((a, b) => a - b),
    )
  }
  const copied = work.filter(({ what }) => what !== 'kernel')
  const sum = (key: 'count' | 'bytes' | 'time_ns') => device.transfers.reduce((sum, of) => sum + of[key], 0)
  expect([sum('count'), sum('time_ns')]).toEqual([copied.length, timeOf(copied)])
  expect(sum('bytes')).toBe(copied.reduce((sum, { bytes }) => sum + (bytes || 0), 0))
}

function expectStreams(device: GpuDevice, work: readonly SourceWork[]): number {
  let compared = 0
  for (const stream of device.streams) {
    const own = work.filter((of) => of.stream === stream.stream)
    expect([stream.work, stream.time_ns]).toEqual([own.length, timeOf(own)])
    const { latencies, max, mean } = queueOf(own)
    expectDistribution(stream.launch_latency, latencies)
    expect(stream.queue?.max ?? 0).toBe(max)
    expect(stream.queue?.mean ?? 0).toBeCloseTo(mean, 9)
    const idle = htaIdle(own)
    if (!idle) continue
    compared++
    const { host_wait, kernel_wait, other } = stream.gaps!
    expect({ host_wait: host_wait.time_ns, kernel_wait: kernel_wait.time_ns, other: other.time_ns }).toEqual(idle)
  }
  return compared
}

/** Time by what launched it, as a table has it. */
function expectLaunchers(
  found: GpuLaunchers,
  work: readonly SourceWork[],
  nameOf: (launch: NonNullable<unknown>) => string | undefined,
): void {
  const byName = groupedBy(work, ({ launch }) => (launch ? nameOf(launch) : undefined) ?? '')
  expect(timeOf(byName.get('') ?? [])).toBe(found.none_ns)
  byName.delete('')
  expect(byName.size).toBe(found.rows.length + (found.other?.names ?? 0))
  for (const row of found.rows) {
    const own = byName.get(row.name)!
    const launches = new Set(own.map(({ launch }) => launch)).size
    expect([row.name, row.work, row.time_ns, row.launches]).toEqual([row.name, own.length, timeOf(own), launches])
  }
}

const table = ({ launchers }: GpuDevice, kind: GpuLaunchers['kind'], level: GpuLaunchers['level']) =>
  launchers.find((of) => of.kind === kind && of.level === level)

describe('samples of Nsight Systems and of PyTorch', () => {
  test.each(samples)('%s', async (name, bytes) => {
    const source = sourceOf(name, bytes())
    const { gpu } = await analyze({ name, source: bytes() })
    const byDevice = groupedBy(source.work, ({ device, pid }) => `${device} ${pid}`)
    expect(gpu!.devices.length).toBe(byDevice.size)
    const isNsys = name.includes('.sqlite')
    for (const device of gpu!.devices) {
      const work = byDevice.get(`${device.device} ${isNsys ? device.pid : 0}`)!
      const { tracelens: ofTracelens, hta: ofHta } = figuresOf(device)
      expect(ofTracelens).toEqual(tracelens(work))
      expect(ofHta).toEqual(hta(work))
      const { total_ns, computation_ns, exposed_communication_ns, exposed_copy_ns, idle_ns } = device.time!
      expect(computation_ns + exposed_communication_ns + exposed_copy_ns + idle_ns).toBe(total_ns)
      expectSums(device, work)
      const { latencies, max } = queueOf(work)
      expectDistribution(device.launch_latency, latencies)
      expect(device.queue?.max ?? 0).toBe(max)
      const { idle } = device
      // Without launches, the causes of gaps are not known.
      expect(idle === null).toBe(latencies.length === 0)
      if (!idle) continue
      expect(idle.host_wait.time_ns + idle.kernel_wait.time_ns + idle.other.time_ns).toBe(idle_ns)
      expectStreams(device, work)
      const operators = table(device, 'operator', 'innermost')
      type Launch = Source['calls'][number]
      // Kineto's own relation of a call to its operator: the External id, which old files do not have.
      if (operators && source.calls.some(({ externalId = '' }) => source.operators.has(externalId)))
        expectLaunchers(operators, work, (launch) => source.operators.get((launch as Launch).externalId ?? ''))
      const around = (launch: Launch) =>
        source.ranges
          .filter(({ pid, tid }) => pid === launch.pid && tid === launch.tid)
          .filter(({ startNs, endNs }) => startNs <= launch.startNs && endNs >= launch.startNs)
          .sort((a, b) => a.startNs - b.startNs || b.endNs - a.endNs)
      const [kind] = isNsys ? (['nvtx'] as const) : (['operator'] as const)
      const outermost = table(device, kind, 'outermost')
      if (outermost) expectLaunchers(outermost, work, (launch) => around(launch as Launch)[0]?.name)
      const innermost = isNsys ? table(device, kind, 'innermost') : undefined
      if (innermost) expectLaunchers(innermost, work, (launch) => around(launch as Launch).at(-1)?.name)
    }
  })
})
