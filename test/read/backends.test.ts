import { expect, test } from '@jest/globals'
import { analyze, type TraceEvent } from '../../lib/index.ts'
import { eventsIn, plainBytes } from '../line/support.ts'

/** Profiles that backends of ggml write themselves. Damaged ones: traces-of-others.test.ts. */

type GpuEvent = Extract<TraceEvent, { readonly kind: 'gpu' }>
const bytesOf = (text: string) => new TextEncoder().encode(text)

async function read(source: Uint8Array) {
  const { names, events } = await eventsIn(source)
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const works = events.filter((event): event is GpuEvent => event.kind === 'gpu')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const rows = works.map((of) => [
    names.text(of.name),
    names.text(of.queue!),
    of.what,
    of.startNs,
    of.endNs - of.startNs,
  ])
  return { input, works, issues, rows }
}

interface ProfileRecord {
  readonly type: number
  readonly name: string
  readonly backend_id: number
  readonly start_ns: number
  readonly duration_ns: number
}

test('the profiler of all backends: each record, on the queue of its backend', async () => {
  const bytes = plainBytes('backend-profiler/two-backends.json')
  const { records } = JSON.parse(new TextDecoder().decode(bytes)) as { records: ProfileRecord[] }
  const { input, rows, works, issues } = await read(bytes)
  expect([input.format, input.clock, input.originNs, issues]).toEqual([
    'backend-profiler',
    'MONOTONIC_RAW',
    81234567890123n,
    [],
  ])
  expect(rows).toEqual(
    records.map(({ type, name, backend_id, start_ns, duration_ns }) => [
      ...[name, ['CUDA0', 'CPU'][backend_id], type === 1 ? 'memcpy' : 'kernel', start_ns - 81234567890123, duration_ns],
    ]),
  )
  expect(works[1]!.facts).toEqual({
    ...{ bytes: 8192, split_id: 0, tensor_name: 'Qcur-0', ne_src0: '2048×2048×1×1', ne_src1: '2048×1×1×1' },
  })
  const { gpu } = await analyze({ name: 'log', source: bytes })
  const sums = gpu!.devices.map(({ device, kernels }) => [
    device,
    kernels.reduce((sum, { time_ns }) => sum + time_ns, 0),
  ])
  const sumOf = (id: number) =>
    records.filter((of) => of.type === 0 && of.backend_id === id).reduce((sum, of) => sum + of.duration_ns, 0)
  expect(sums).toEqual([
    [0, sumOf(0)],
    [1, sumOf(1)],
  ])
})

test('records that cannot be read are issues; backends without a definition have a number', async () => {
  const good = { type: 0, name: 'ADD', backend_id: 3, start_ns: 5, duration_ns: 2 }
  const bad = [{ ...good, start_ns: -1.5 }, ...['a', 0.5, -1].map((backend_id) => ({ ...good, backend_id })), 7]
  const ofNoType = ['x', 0.5, null, false].map((type) => ({ ...good, type }))
  const json = JSON.stringify({ version: 2, backends: [{ id: -1, name: 'a' }], records: [good, ...bad, ...ofNoType] })
  const { rows, issues } = await read(bytesOf(json.replace('"type":0.5', '"type":1e999')))
  expect(rows).toEqual(Array.from({ length: 2 }, () => ['ADD', 'backend 3', 'kernel', 0, 2]))
  expect(issues).toEqual(Array.from({ length: 8 }, () => 'unreadable-row'))
})

test("OpenCL's table: kernels end to end", async () => {
  const { input, rows, works, issues } = await read(plainBytes('opencl-csv/cl_profiling.csv'))
  expect([input.format, input.clock, issues]).toEqual(['opencl-csv', 'unknown', []])
  expect(rows).toEqual([
    ['kernel_rms_norm_mul', 'OpenCL', 'kernel', 0, 12288],
    ['kernel_mul_mat_q4_0_f32_8x_flat', 'OpenCL', 'kernel', 12288, 123904],
    ['kernel_mul_mat_f16_f32_l4', 'OpenCL', 'kernel', 136192, 20480],
    ['kernel_mul_mat_q4_0_f32_8x_flat', 'OpenCL', 'kernel', 156672, 124000],
  ])
  expect(works[1]!.facts).toMatchObject({ op: 'Qcur-0', output_size: '2048x1x1x1' })
  const torn = new TextDecoder().decode(plainBytes('opencl-csv/cl_profiling.csv')).slice(0, -30)
  expect((await read(bytesOf(`${torn}`))).issues).toEqual(['torn-record'])
})

test("a real table of OpenCL's: kernels, their number and the sum of their times are those of its lines", async () => {
  const bytes = plainBytes('opencl-csv/real.csv')
  const lines = new TextDecoder().decode(bytes).trim().split('\n').slice(1)
  const wanted = lines
    .map((line) => line.split(','))
    .map((cells) => [cells[1], Math.round(Number(cells[2]) * 1e6), cells[0]])
  const { rows, works, issues } = await read(bytes)
  expect(issues).toEqual([])
  const found = rows.map(([name, , , , ns], i) => [name, ns, (works[i]!.facts as Record<string, unknown>)['op']])
  expect(found).toEqual(wanted)
  const { gpu } = await analyze({ name: 'log', source: bytes })
  const { kernels } = gpu!.devices[0]!
  // By Python: 30 rows, sum(round(float(ms) * 1e6)).
  expect(kernels.reduce((sum, { count }) => sum + count, 0)).toBe(30)
  expect(kernels.reduce((sum, { time_ns }) => sum + time_ns, 0)).toBe(8880640)
})

test("OpenCL's cl_trace.json, a list without an end, is Chrome JSON", async () => {
  const event = (ph: string, ts: number, tid: string) =>
    `{"name": "kernel_add", "cat": "OpenCL", "ph": "${ph}", "ts": ${ts}, "pid": "", "tid": "${tid}"},\n`
  const text = `[\n${event('B', 10, 'Host')}${event('E', 12, 'Host')}${event('B', 12, 'Device')}${event('E', 20, 'Device')}`
  const { events } = await eventsIn(bytesOf(text))
  const slices = events.flatMap((of) => (of.kind === 'own-slice' ? [of.endNs - of.startNs] : []))
  expect(slices.sort()).toEqual([2000, 8000])
})
