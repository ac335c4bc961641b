import { describe, expect, test } from '@jest/globals'
import type { GpuDevice } from '../../../lib/analysis.ts'
import { analyze, eventsOf, Names } from '../../../lib/index.ts'
import { reportHtml } from '../../../lib/report.ts'
import { plainBytes } from '../../line/support.ts'

/** Logs of durations and sums: no figure of them is a part of a time in which the work ran. */

const text = (name: string) => new TextDecoder().decode(plainBytes(name))

/** A table of the OpenCL backend with as many kernels as a finding needs. */
function longTable(): string {
  const [head, ...rows] = text('opencl-csv/real.csv').trimEnd().split('\n')
  return [head, ...Array.from({ length: 5 }, () => rows).flat(), ''].join('\n')
}

const hexagon = () =>
  text('llama-log/backends.log')
    .split('\n')
    .filter((line) => !line.startsWith('ET_PERF'))
    .join('\n')

const LOGS: readonly (readonly [name: string, log: () => string])[] = [
  ['sums of the Vulkan logger', () => text('llama-log/sums.log')],
  ['sums of the Vulkan logger, with times of lines', () => text('llama-log/vulkan.log')],
  ['kernels of the OpenCL backend', () => text('opencl-csv/real.csv')],
  ['150 kernels of the OpenCL backend', longTable],
  ['operators of the Hexagon backend', hexagon],
]

const analysisOf = (log: string, name = 'log') => analyze({ name, source: new TextEncoder().encode(log) })

/** Figures of a device that are parts of the time from its first to its last work. */
const timed = ({ time, idle, host_wait, calls, transfers, queue, launch_latency, steps, streams }: GpuDevice) => [
  ...[time, idle, host_wait, calls, queue, launch_latency, steps[0] ?? null],
  ...transfers.map(({ exposed_ns }) => exposed_ns),
  ...streams.map(({ gaps }) => gaps),
]

describe.each(LOGS)('%s', (_, log) => {
  test('has no figure of the time in which it ran', async () => {
    const analysis = await analysisOf(log())
    const devices = analysis.gpu!.devices
    expect(devices.flatMap(timed).filter((figure) => figure !== null)).toEqual([])
    expect(devices.map(({ times }) => times)).toEqual(devices.map(() => 'durations'))
    expect(analysis.inputs.map(({ duration_ns }) => duration_ns)).toEqual([null])
    expect([analysis.calls.ttft_ns, analysis.calls.decode_tokens_per_s]).toEqual([null, null])
    expect(analysis.undetermined.map(({ what }) => what)).toContain('gpu.devices.time')
  })

  test('has no sentence with a share of time', async () => {
    const analysis = await analysisOf(log())
    const sentences = [analysis.verdict.sentence, ...analysis.findings.map(({ sentence }) => sentence)]
    expect(sentences.filter((sentence) => / busy \d| % of the time|nothing unusual/.test(sentence))).toEqual([])
    expect(analysis.verdict.rate === null || analysis.verdict.unit !== 'busy').toBe(true)
  })

  test('has no chart of the time of GPUs', async () => {
    expect(reportHtml(await analysisOf(log()))).not.toContain('Time of GPUs by what they do')
  })

  test('is marked as inferred', async () => {
    const inferred: (number | undefined)[] = []
    const input = { name: 'log', source: new TextEncoder().encode(log()) }
    for await (const batch of eventsOf(input, new Names()))
      for (const event of batch) if (event.kind === 'gpu') inferred.push(event.inferred)
    expect(inferred.length).toBeGreaterThan(0)
    expect(inferred.filter((bits) => !bits)).toEqual([])
  })
})

test('operators of a Vulkan backend have no times in the profile of backends; those of others have', async () => {
  const profile = text('backend-profiler/two-backends.json').replaceAll('"CUDA0"', '"Vulkan0"')
  const { gpu } = await analysisOf(profile)
  expect(gpu!.devices.map(({ times, time }) => [times, time === null])).toEqual([
    ['durations', true],
    [null, false],
  ])
})

test('operators of the ET backend have times', async () => {
  const lines = text('llama-log/backends.log').split('\n')
  const { gpu } = await analysisOf(lines.filter((line) => line.startsWith('ET_PERF')).join('\n'))
  expect(gpu!.devices[0]!.time).toMatchObject({ total_ns: 12403000, busy_ns: 12390000 })
})

test('a log of sums: the time of its work in the first sentence', async () => {
  expect((await analysisOf(text('llama-log/sums.log'))).verdict.sentence).toBe(
    'GPU 0: 40.6 s of work in 10 551 pieces; the log contains durations only, so the busy share is not known',
  )
})
