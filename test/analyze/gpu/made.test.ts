import { describe, expect, test } from '@jest/globals'
import type { GpuDevice } from '../../../lib/analysis.ts'
import { GpuStatistics } from '../../../lib/analyze/gpu/gpu-statistics.ts'
import { analyze, Names, type TraceEvent } from '../../../lib/index.ts'
import { plainBytes } from '../../line/support.ts'
import { inLong } from '../../long.ts'
import { expectChecks } from '../findings/made-run.ts'
import { analysisOf, devicesOf, type MadeCall, type MadeWork, madeInput } from './made.ts'

const ncclName = 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
const firstOf = async (made: Parameters<typeof devicesOf>[0]): Promise<GpuDevice> => (await devicesOf(made))[0]!

describe('by hand', () => {
  const work: MadeWork[] = [
    { name: 'gemm', startNs: 1000, endNs: 1100, correlation: 1 },
    { name: ncclName, stream: 20, startNs: 1050, endNs: 1150, correlation: 2 },
    {
      name: 'Memcpy HtoD (Pinned -> Device)',
      what: 'memcpy',
      startNs: 1140,
      endNs: 1200,
      correlation: 3,
      facts: { bytes: 600, from: 'pinned', to: 'device' },
    },
    { name: 'Memset (Device)', what: 'memset', startNs: 1260, endNs: 1270, correlation: 4, facts: { bytes: 10 } },
    { name: 'gemm', startNs: 101_270, endNs: 101_290, correlation: 5 },
  ]
  const calls: MadeCall[] = [
    { name: 'cudaLaunchKernel', startNs: 100, endNs: 110, correlation: 1 },
    { name: 'cudaLaunchKernel', startNs: 120, endNs: 130, correlation: 2 },
    { name: 'cudaMemcpyAsync', startNs: 140, endNs: 150, correlation: 3 },
    { name: 'cudaMemsetAsync', startNs: 1230, endNs: 1240, correlation: 4 },
    { name: 'cudaLaunchKernel', startNs: 1245, endNs: 1300, correlation: 5 },
    { name: 'cuLaunchKernel', startNs: 1250, endNs: 1290, correlation: 5 },
    { name: 'cudaStreamSynchronize', startNs: 1310, endNs: 101_300 },
  ]

  test('the parts of the time', async () => {
    const { time, idle, streams } = await firstOf({ work, calls })
    expect(time).toEqual({
      ...{ total_ns: 100_290, computation_ns: 120, exposed_communication_ns: 50, exposed_copy_ns: 60 },
      ...{ idle_ns: 100_060, busy_ns: 230, communication_ns: 100, copy_ns: 70, communication_overlap_share: 0.5 },
      ...{ migration_ns: 0, exposed_migration_ns: 0 },
      tracelens: { computation_ns: 130, exposed_communication_ns: 50, exposed_copy_ns: 50, copy_ns: 60 },
    })
    expect(idle).toEqual({
      // The fill was launched in the gap; the last kernel before it, but the gap is long.
      host_wait: { count: 1, time_ns: 60 },
      kernel_wait: { count: 0, time_ns: 0 },
      other: { count: 1, time_ns: 100_000 },
    })
    expect(
      streams.map(({ stream, work, gaps }) => [stream, work, gaps!.host_wait, gaps!.kernel_wait, gaps!.other]),
    ).toEqual([
      [7, 4, { count: 1, time_ns: 60 }, { count: 1, time_ns: 40 }, { count: 1, time_ns: 100_000 }],
      [20, 1, { count: 0, time_ns: 0 }, { count: 0, time_ns: 0 }, { count: 0, time_ns: 0 }],
    ])
  })

  test('launches: of calls within each other the outer one; queues, calls', async () => {
    const { devices, processes } = (await analysisOf({ work, calls })).gpu!
    const { launch_latency, queue } = devices[0]!
    expect(launch_latency).toMatchObject({
      count: 5,
      min_ns: 30,
      max_ns: 100_025,
      mean_ns: (900 + 930 + 1000 + 30 + 100_025) / 5,
    })
    expect(queue).toEqual({ mean: (900 + 930 + 1000 + 30 + 100_025) / (101_270 - 100), max: 3 })
    expect(processes).toEqual([
      {
        ...{ pid: 100, threads: 1, other_calls: null },
        kinds: [
          { kind: 'launch', count: 4, time_ns: 75 },
          { kind: 'synchronize', count: 1, time_ns: 99_990 },
          { kind: 'copy', count: 2, time_ns: 20 },
        ],
        calls: [
          {
            name: 'cudaStreamSynchronize',
            kind: 'synchronize',
            count: 1,
            time_ns: 99_990,
            mean_ns: 99_990,
            max_ns: 99_990,
            work: 0,
          },
          { name: 'cudaLaunchKernel', kind: 'launch', count: 3, time_ns: 75, mean_ns: 25, max_ns: 55, work: 3 },
          { name: 'cuLaunchKernel', kind: 'launch', count: 1, time_ns: 40, mean_ns: 40, max_ns: 40, work: 1 },
          { name: 'cudaMemcpyAsync', kind: 'copy', count: 1, time_ns: 10, mean_ns: 10, max_ns: 10, work: 1 },
          { name: 'cudaMemsetAsync', kind: 'copy', count: 1, time_ns: 10, mean_ns: 10, max_ns: 10, work: 1 },
        ],
      },
    ])
  })

  test('kernels, kinds, copies', async () => {
    const device = await firstOf({ work, calls })
    expect(
      device.kernels.map(({ name, count, time_ns, is_communication }) => [name, count, time_ns, is_communication]),
    ).toEqual([
      ['gemm', 2, 120, false],
      [ncclName, 1, 100, true],
    ])
    expect(device.kinds.map(({ kind, count, time_ns, share }) => [kind, count, time_ns, share])).toEqual([
      ['kernel', 3, 220, 220 / 290],
      ['memcpy HtoD', 1, 60, 60 / 290],
      ['memset', 1, 10, 10 / 290],
    ])
    expect(device.transfers).toEqual([
      {
        direction: 'HtoD',
        from: 'pinned',
        to: 'device',
        count: 1,
        bytes: 600,
        time_ns: 60,
        exposed_ns: 50,
        gb_per_s: 10,
        unknown_sizes: 0,
      },
      {
        ...{ direction: 'memset', from: '', to: '', count: 1, bytes: 10 },
        ...{ time_ns: 10, exposed_ns: 10, gb_per_s: 1, unknown_sizes: 0 },
      },
    ])
  })

  test('a CUDA graph is one launch of many kernels', async () => {
    const kernels = [0, 1, 2].map(
      (i): MadeWork => ({ name: 'node', startNs: 200 + 100 * i, endNs: 290 + 100 * i, correlation: 9 }),
    )
    const launch = { name: 'cudaGraphLaunch', startNs: 50, endNs: 60, correlation: 9 }
    const { launch_latency, queue, idle } = await firstOf({ work: kernels, calls: [launch] })
    expect(launch_latency).toMatchObject({ count: 1, max_ns: 150 })
    expect(queue).toEqual({ mean: 1, max: 1 })
    expect(idle!.kernel_wait).toEqual({ count: 2, time_ns: 20 })
  })
})

test('operators, modules, annotations and steps that launched the work', async () => {
  const work = [1, 2, 3].map(
    (i): MadeWork => ({ name: 'gemm', startNs: 1000 * i, endNs: 1000 * i + i, correlation: i }),
  )
  const calls = [1, 2, 3].map(
    (i): MadeCall => ({ name: 'cudaLaunchKernel', tid: 5, startNs: 100 * i, endNs: 100 * i + 9, correlation: i }),
  )
  const at = (
    name: string,
    category: 'cpu_op' | 'user_annotation' | 'python_function',
    startNs: number,
    endNs: number,
  ) => {
    return { name, category, tid: 5, startNs, endNs }
  }
  const device = await firstOf({
    work,
    calls,
    ranges: [
      at('ProfilerStep#4', 'user_annotation', 0, 250),
      at('ProfilerStep#5', 'user_annotation', 251, 400),
      at('forward', 'user_annotation', 10, 390),
      at('nn.Module: Linear_0', 'python_function', 80, 120),
      at('nn.Module: Linear_1', 'python_function', 180, 220),
      at('model.py(7): forward', 'python_function', 70, 230),
      at('aten::linear', 'cpu_op', 90, 115),
      at('aten::addmm', 'cpu_op', 95, 112),
      at('aten::linear', 'cpu_op', 190, 215),
      { ...at('aten::mm', 'cpu_op', 290, 320), tid: 6 },
    ],
  })
  const rows = device.launchers.map(({ kind, level, rows, none_ns }) => [
    `${kind} ${level}`,
    Object.fromEntries(rows.map(({ name, time_ns }) => [name, time_ns])),
    none_ns,
  ])
  expect(rows).toEqual([
    ['operator innermost', { 'aten::addmm': 1, 'aten::linear': 2 }, 3],
    ['operator outermost', { 'aten::linear': 3 }, 3],
    ['module innermost', { 'nn.Module: Linear': 3 }, 3],
    ['module outermost', { 'nn.Module: Linear': 3 }, 3],
    ['annotation innermost', { forward: 6 }, 0],
    ['annotation outermost', { forward: 6 }, 0],
  ])
  expect(
    device.steps.map(({ name, work, time }) => [name, work, time.total_ns, time.computation_ns, time.idle_ns]),
  ).toEqual([
    ['ProfilerStep#4', 2, 1002, 3, 999],
    ['ProfilerStep#5', 1, 3, 3, 0],
  ])
})

describe('what is not known', () => {
  test('more work than is held: only sums', () => {
    const names = new Names()
    const statistics = new GpuStatistics(names, 10)
    const place = { device: 0, context: 1, contextName: 0, stream: 7, streamName: 0, pid: 3 }
    const gpu = { kind: 'gpu', what: 'kernel', name: names.id('gemm'), signature: 0, facts: {}, ...place } as const
    for (let i = 0; i < 12; i++) statistics.event({ ...gpu, startNs: 10 * i, endNs: 10 * i + 4, correlation: i })
    const { figures, undetermined } = statistics.finish().gpu!
    expect(figures.devices[0]).toMatchObject({
      work: 12,
      work_ns: 48,
      time: null,
      idle: null,
      queue: null,
      launchers: [],
    })
    expect(figures.devices[0]!.kernels).toMatchObject([{ name: 'gemm', count: 12, time_ns: 48, duration: null }])
    expect(undetermined.map(({ what }) => what)).toEqual(['gpu.devices.time'])
  })

  test('a report without calls: no causes of gaps, no latencies', async () => {
    const report =
      'Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Bytes (MB),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n' +
      '100,50,1,1,1,1,1,1,1,8,,,,NVIDIA H100 (0),1,7,gemm\n200,10,2,,,,,,,,0.038,Pageable,Device,NVIDIA H100 (0),1,7,[CUDA memcpy Host-to-Device]\n'
    const { gpu, undetermined } = await analyze({ name: 'report.csv', source: new TextEncoder().encode(report) })
    const [device] = gpu!.devices
    expect(device).toMatchObject({ device: 0, pid: null, idle: null, launch_latency: null, queue: null, launchers: [] })
    expect(device!.time).toMatchObject({ total_ns: 110, computation_ns: 50, exposed_copy_ns: 10, idle_ns: 50 })
    // Its megabytes are rounded.
    expect(device!.transfers).toMatchObject([
      { direction: 'HtoD', from: 'pageable', bytes: 0, gb_per_s: null, unknown_sizes: 1 },
    ])
    expect(undetermined.map(({ what }) => what)).toContain('gpu.devices.launch_latency')
  })

  test('work before its launch', async () => {
    const work = [1, 2].map((i) => ({ name: 'gemm', startNs: 100 * i, endNs: 100 * i + 10, correlation: i }))
    const calls = [90, 260].map((startNs, i) => ({
      name: 'cudaLaunchKernel',
      startNs,
      endNs: startNs + 1,
      correlation: i + 1,
    }))
    const { gpu, undetermined } = await analysisOf({ work, calls })
    expect(gpu!.devices[0]).toMatchObject({
      launches_after_work: 1,
      launch_latency: { count: 1, max_ns: 10 },
      queue: { max: 1 },
    })
    expect(undetermined.find(({ what }) => what === 'gpu.devices.launch_latency')!.why).toMatch(
      /^work of 1 launch begins before/,
    )
  })

  test('logs of CPUs have no figures of GPUs', async () => {
    const source = plainBytes('ggtrace/tiny.ggtrace')
    expect((await analyze({ name: 'tiny', source })).gpu).toBe(null)
  })
})

describe('findings', () => {
  const kernels = (count: number, every: number, lasts: number, launchedBefore: number) => {
    const work = Array.from({ length: count }, (_, i): MadeWork => {
      const startNs = 10_000_000 + i * every
      return { name: 'gemm', startNs, endNs: startNs + lasts, correlation: i }
    })
    const calls = work.map(({ startNs, correlation }): MadeCall => {
      return {
        name: 'cudaLaunchKernel',
        startNs: startNs - launchedBefore,
        endNs: startNs - launchedBefore + 500,
        correlation,
      }
    })
    return { work, calls }
  }
  const found = async (made: Parameters<typeof analysisOf>[0]) => {
    const analysis = await analysisOf(made)
    await expectChecks(analysis, madeInput(made))
    return analysis.findings
  }

  test('none where launches are ahead', async () => {
    expect(await found(kernels(200, 50_000, 30_000, 500_000))).toEqual([])
    expect(await found(kernels(200, 50_000, 45_000, 4_000))).toEqual([])
  })

  test('a GPU that waits for launches', async () => {
    const [first, ...others] = await found(kernels(200, 50_000, 30_000, 4_000))
    expect(others).toEqual([])
    expect(first).toMatchObject({
      rule: 'gpu-launches',
      sentence: 'GPU 0 waits for launches 40 % of the time: 199 gaps with nothing launched',
      time_ns: 199 * 20_000,
      confidence: 'high',
      evidence: { device: 0, pid: 100, host_wait_ns: 199 * 20_000, total_ns: 199 * 50_000 + 30_000 },
    })
  })

  test('exposed communication, and exposed copies', async () => {
    const { work, calls } = kernels(200, 50_000, 49_000, 500_000)
    const changed = work.map((of, i): MadeWork => {
      if (i % 4 === 1) return { ...of, name: ncclName }
      if (i % 8 === 2) return { ...of, what: 'memcpy', name: '[CUDA memcpy Host-to-Device]', facts: { bytes: 490_000 } }
      return of
    })
    const both = await found({ work: changed, calls })
    expect(both.map(({ rule, time_ns }) => [rule, time_ns])).toEqual([
      ['gpu-communication', 50 * 49_000],
      ['gpu-copies', 25 * 49_000],
    ])
    expect(both.map(({ sentence }) => sentence)).toEqual([
      'GPU 0 communicates 25 % of the time, and computes nothing meanwhile',
      'GPU 0 copies 12 % of the time, and does nothing else meanwhile: most of it HtoD at 10 GB/s',
    ])
    const overlapped = changed.map((of) => ({ ...of, stream: of.name === 'gemm' ? 7 : 8 }))
    const computing: MadeWork = { name: 'gemm', startNs: 10_000_000, endNs: 20_000_000, correlation: 1000 }
    expect(await found({ work: [...overlapped, computing], calls })).toEqual([])
  })

  test('pages of unified memory that the driver moves are no copies of the program', async () => {
    const { work, calls } = kernels(200, 50_000, 49_000, 500_000)
    const moved = work.map((of, i): MadeWork => {
      if (i % 4 !== 1) return of
      const name = `[CUDA memcpy Unified ${i % 8 === 1 ? 'Host-to-Device' : 'Device-to-Host'}]`
      return { ...of, what: 'migration', name, facts: { bytes: 1 << 20 } }
    })
    const all = await found({ work: moved, calls })
    expect(all.map(({ rule, time_ns }) => [rule, time_ns])).toEqual([['gpu-migrations', 50 * 49_000]])
    expect(all[0]!.sentence).toMatch(/^GPU 0 moves 50 MiB of unified memory in 25 % of the time/)
    // Beside copies, each has its own part.
    const copied = moved.map(
      (of, i): MadeWork =>
        i % 4 === 2 ? { ...of, what: 'memcpy', name: '[CUDA memcpy Host-to-Device]', facts: { bytes: 1000 } } : of,
    )
    const both = await found({ work: copied, calls })
    expect(both.map(({ rule, time_ns }) => [rule, time_ns]).sort()).toEqual([
      ['gpu-copies', 50 * 49_000],
      ['gpu-migrations', 50 * 49_000],
    ])
    // What kernels hide costs nothing.
    const hidden = moved.map((of) => ({ ...of, stream: of.what === 'migration' ? 8 : 7 }))
    const computing: MadeWork = { name: 'gemm', startNs: 0, endNs: 20_000_000, correlation: 1000 }
    expect(await found({ work: [computing, ...hidden], calls })).toEqual([])
  })

  test('copies that a kernel hides are not the direction of the exposed ones', async () => {
    const kernel: MadeWork = { name: 'gemm', startNs: 0, endNs: 100_000 }
    const copies = (count: number, direction: string, fromNs: number, ns: number) =>
      Array.from({ length: count }, (_, i): MadeWork => {
        const startNs = fromNs + i * ns
        return {
          what: 'memcpy',
          name: `Memcpy ${direction}`,
          stream: 8,
          startNs,
          endNs: startNs + ns,
          facts: { bytes: ns },
        }
      })
    const hidden = copies(180, 'HtoD (Pinned -> Device)', 0, 500)
    const exposed = copies(50, 'DtoH (Device -> Pageable)', 99_000, 1000)
    const [finding] = await found({ work: [kernel, ...hidden, ...exposed] })
    expect(finding!.sentence).toMatch(/most of it DtoH at 1 GB\/s$/)
    expect(finding!.evidence).toMatchObject({
      exposed_copy_ns: 49_000,
      direction_exposed_ns: 49_000,
      direction_ns: 50_000,
    })
    // Neither direction is most of it.
    const both = [...copies(50, 'DtoH', 100_000, 1000), ...copies(50, 'HtoD', 150_000, 1000)]
    const [other] = await found({ work: [kernel, ...both] })
    expect(other!.sentence).toMatch(/nothing else meanwhile$/)
  })
})

inLong(test)('memory: 20 bytes for a piece of work, 12 for a launch', () => {
  const names = new Names()
  const statistics = new GpuStatistics(names)
  const name = names.id('gemm')
  const place = { device: 0, context: 1, contextName: 0, stream: 7, streamName: 0, pid: 3 }
  const [count, before] = [1 << 20, process.memoryUsage().arrayBuffers]
  const event: Extract<TraceEvent, { kind: 'gpu' }> = {
    ...{ kind: 'gpu', what: 'kernel', name, signature: 0, facts: {}, startNs: 0, endNs: 0, correlation: 0, ...place },
  }
  const call: Extract<TraceEvent, { kind: 'api' }> = {
    ...{
      kind: 'api',
      library: 'cuda',
      name,
      startNs: 0,
      endNs: 0,
      pid: 3,
      tid: 3,
      thread: 0,
      launched: 1,
      result: 0,
      correlation: 0,
    },
  }
  for (let i = 0; i < count; i++)
    statistics.event(Object.assign(event, { startNs: 100 * i, endNs: 100 * i + 50, correlation: i }))
  for (let i = 0; i < count; i++)
    statistics.event(Object.assign(call, { startNs: 100 * i, endNs: 100 * i + 5, correlation: i }))
  const used = process.memoryUsage().arrayBuffers - before
  expect(used / count).toBeLessThan(33)
  expect(statistics.finish().gpu!.figures.devices[0]!.time!.total_ns).toBe(100 * count - 50)
})
