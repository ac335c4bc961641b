import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { gpuLaunches } from '../../../lib/analyze/findings/gpu-launches.ts'
import { HostActivity } from '../../../lib/analyze/gpu/host-activity.ts'
import { analyze, type EventInput, Names, type TraceEvent } from '../../../lib/index.ts'

const SHARED = { pid: -1, tid: 1, thread: 0, result: 0, correlation: -1, launched: 0 } as const

/** Two calls of a recorded program: the GPU computes from 100 to 200 and from 1000 to 1100. */
const recorded = (format: string): EventInput => ({
  name: 'made',
  *events(names) {
    const id = (text: string) => names.id(text)
    const place = { device: 0, context: -1, contextName: 0, stream: 1, streamName: 0, pid: -1, signature: 0, facts: {} }
    const work = (correlation: number, startNs: number, endNs: number): TraceEvent => ({
      ...{ kind: 'gpu', what: 'kernel', name: id('mul_mat'), startNs, endNs, correlation, ...place },
    })
    const api = (name: string, startNs: number, endNs: number, correlation = -1): TraceEvent => ({
      ...{ ...SHARED, kind: 'api', library: 'vulkan', name: id(name), startNs, endNs },
      ...(correlation >= 0 && { correlation, launched: 1 }),
    })
    const call = (number: number, startNs: number, endNs: number): TraceEvent => ({
      ...{ kind: 'token', call: number, phase: 'decode', tokens: 1, startNs, endNs, tid: 1, inferred: 0 },
    })
    const graph = { kind: 'graph', backend: 0, nodes: 1, inferred: 0 } as const
    const around = { name: 0, tid: 1, context: 0, sequence: -1, output: -1, value: -1 }
    yield [{ kind: 'input', format, clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    yield [{ kind: 'facts', attributes: { gpus: '0 Fake GPU' } }]
    yield [
      api('vkQueueSubmit', 80, 90, 1),
      { ...graph, startNs: 50, endNs: 95, call: 0, submissions: [1] },
      api('vkWaitForFences', 100, 210),
      call(0, 40, 220),
      { kind: 'function', what: 'sample', startNs: 250, endNs: 300, ...around },
      { kind: 'part', what: 'allocate', startNs: 420, endNs: 450, call: 1 },
      { kind: 'copy', what: 'set', startNs: 460, endNs: 470, bytes: 8, from: 0, to: 0, tensor: -1, tid: 1 },
      { ...graph, startNs: 500, endNs: 600, call: 1 },
      api('vkCreateComputePipelines', 720, 820),
      api('vkQueueSubmit', 880, 890, 2),
      { ...graph, startNs: 700, endNs: 895, call: 1, submissions: [2] },
      call(1, 400, 1110),
    ]
    yield [work(1, 100, 200), work(2, 1000, 1100)]
  },
})

test('what the program did while the GPU waited for it: by the most specific activity, and the rest', async () => {
  const analysis = await analyze(recorded('ggtrace'))
  const { gpu } = analysis
  const [device] = gpu!.devices
  expect(device!.idle!.host_wait).toEqual({ count: 1, time_ns: 800 })
  expect(device!.host_wait!.map(({ what, time_ns }) => ({ what, time_ns }))).toEqual([
    { what: 'rest of calls', time_ns: 10 + 20 + 10 + 30 + 100 },
    { what: 'outside calls', time_ns: 30 + 100 },
    { what: 'launch latency', time_ns: 120 },
    { what: 'compiling pipelines', time_ns: 100 },
    { what: 'graphs elsewhere', time_ns: 100 },
    { what: 'submitting', time_ns: 20 + 60 },
    { what: 'sampling', time_ns: 50 },
    { what: 'allocating', time_ns: 30 },
    { what: 'waiting', time_ns: 10 },
    { what: 'copying', time_ns: 10 },
  ])
  // While another backend computes, the GPU does not wait for launches.
  const enough = { ...gpu!, devices: [{ ...device!, work: 100, calls: null }] }
  const [looked] = gpuLaunches.look({ ...analysis, gpu: enough })
  expect(looked!.finding).toMatchObject({
    sentence:
      'GPU 0 waits for launches 70 % of the time: 1 gap with nothing launched; the program meanwhile: rest of calls (24 %)',
    time_ns: 700,
    evidence: { launches_share: 0.7, host_wait_ns: 800, elsewhere_ns: 100 },
  })
})

/** A token of a model of which two GPUs compute half of the layers each; `tids`: the threads that launch. */
const divided = (tids: readonly [number, number] = [1, 1]): EventInput => ({
  name: 'made',
  *events(names) {
    const place = { context: -1, contextName: 0, stream: 1, streamName: 0, pid: -1, signature: 0, facts: {} }
    const work = (device: number, correlation: number, startNs: number, endNs: number): TraceEvent => ({
      ...{
        kind: 'gpu',
        what: 'kernel',
        name: names.id('mul_mat'),
        startNs,
        endNs,
        correlation,
        device,
        ...place,
        call: 0,
      },
    })
    const launch = (correlation: number, startNs: number, tid: number): TraceEvent => ({
      ...{ ...SHARED, kind: 'api', library: 'cuda', name: names.id('cudaLaunchKernel'), startNs, endNs: startNs + 10 },
      ...{ correlation, launched: 1, tid },
    })
    const graph = (
      split: number,
      backend: string,
      startNs: number,
      endNs: number,
      submission?: number,
    ): TraceEvent => ({
      ...{ kind: 'graph', backend: names.id(backend), nodes: 1, split, call: 0, startNs, endNs, inferred: 0 },
      ...(submission !== undefined && { submissions: [submission] }),
    })
    yield [{ kind: 'input', format: 'ggtrace', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    yield [{ kind: 'facts', attributes: { gpus: '0 Fake GPU, 1 Fake GPU' } }]
    yield [
      launch(1, 0, tids[0]),
      graph(0, 'CPU', 100, 120),
      launch(2, 210, tids[0]),
      graph(1, 'CUDA0', 200, 240, 2),
      launch(3, 1270, tids[1]),
      graph(2, 'CUDA1', 1260, 1300, 3),
      graph(3, 'CPU', 1800, 1900),
      launch(4, 1970, tids[1]),
      graph(4, 'CUDA1', 1950, 1990, 4),
      launch(5, 2100, tids[0]),
      { kind: 'token', call: 0, phase: 'decode', tokens: 1, startNs: 50, endNs: 2200, tid: 1, inferred: 0 },
    ]
    // GPU 0 works until 1200, then GPU 1 until 1700, and again from 2000; GPU 0 goes on at 2150.
    yield [work(0, 1, 10, 20), work(1, 1, 10, 20), work(0, 2, 250, 1200), work(1, 3, 1310, 1700)]
    yield [work(1, 4, 2000, 2050), work(0, 5, 2150, 2160)]
  },
})

const timesOf = async (input: EventInput) =>
  (await analyze(input)).gpu!.devices.map(({ host_wait }) =>
    Object.fromEntries(host_wait!.map(({ what, device, time_ns }) => [`${what} ${device ?? ''}`.trim(), time_ns])),
  )

test('a GPU waits for another one while that one works, or gets a graph, and for what is between graphs', async () => {
  const [first, second] = await timesOf(divided())
  // Before its first graph, the CPU looks up inputs: what follows that is none of a division.
  expect(first).toEqual({
    'outside calls': 30,
    'rest of calls': 50 + 80 + 10 + 50,
    'graphs elsewhere': 20 + 100,
    submitting: 10,
    'launch latency': 40 + 50,
    'another GPU 1': 40 + 390 + 40 + 50,
    'between graphs': 60 + 10 + 100 + 50,
  })
  expect(second).toMatchObject({ 'another GPU 0': 40 + 950, 'between graphs': 10 + 60 + 100 + 50 })
})

test('of GPUs that two threads use, it is not known whether one waits for the other', async () => {
  const [first, second] = await timesOf(divided([1, 2]))
  expect(first!['another GPU 1']).toBe(80) // graphs that the program submits to it
  expect(second!['another GPU 0']).toBe(40)
})

test('of other formats it is not known', async () => {
  const [device] = (await analyze(recorded('made'))).gpu!.devices
  expect(device!.idle!.host_wait.time_ns).toBe(800)
  expect(device!.host_wait).toBeNull()
})

test('any activities, in any order, of several threads: as counted ns by ns', () => {
  const interval = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 20 }))
  const activity = fc.tuple(fc.constantFrom('copy', 'part', 'token'), interval)
  fc.assert(
    fc.property(fc.array(activity, { minLength: 1 }), fc.array(interval, { minLength: 1 }), (activities, gaps) => {
      const host = new HostActivity(new Names())
      for (const [kind, [startNs, ns]] of activities) host.take({ kind, startNs, endNs: startNs + ns } as never)
      const sums = host.sums()!
      const counted = new Map<string, number>()
      for (const [fromNs, ns] of gaps) {
        sums.add(fromNs, fromNs + ns, fromNs + ns)
        for (let at = fromNs; at < fromNs + ns; at++) {
          const isIn = (kind: string) =>
            activities.some(([of, [start, of_ns]]) => of === kind && start <= at && at < start + of_ns)
          const what = isIn('copy')
            ? 'copying'
            : isIn('part')
              ? 'allocating'
              : isIn('token')
                ? 'rest of calls'
                : 'outside calls'
          counted.set(what, (counted.get(what) ?? 0) + 1)
        }
      }
      expect(new Map(sums.figures().map(({ what, time_ns }) => [what, time_ns]))).toEqual(counted)
    }),
  )
})
