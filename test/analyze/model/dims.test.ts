import { expect, test } from '@jest/globals'
import { knownPeaks } from '../../../lib/analyze/model/devices.ts'
import { type AnalyzeOptions, analyze } from '../../../lib/index.ts'

/** FLOP of PyTorch's operators, from shapes in a trace of its profiler that was written by hand. */

const op = (name: string, ts: number, dur: number, dims: unknown) => ({
  ...{ ph: 'X', cat: 'cpu_op', name, pid: 1, tid: 1, ts, dur },
  args: { 'External id': ts, 'Input Dims': dims },
})

/** A call that launches work, in an operator that begins at `of`; and that work, somewhat later. */
const launch = (of: number) => ({
  ...{ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid: 1, ts: of + 1, dur: 1 },
  args: { correlation: of },
})

const kernel = (of: number, dur: number) => ({
  ...{ ph: 'X', cat: 'kernel', name: 'gemm', pid: 0, tid: 7, ts: of + 1000, dur },
  args: { device: 0, stream: 7, correlation: of },
})

const OPS = [
  op('aten::linear', 0, 60, [[4, 8], [16, 8], [16]]), // calls the next one
  op('aten::addmm', 10, 40, [[16], [4, 8], [8, 16], [], []]),
  op('aten::mm', 100, 10, [
    [4, 8],
    [8, 2],
  ]),
  op('aten::mm', 120, 10, [
    [4, 8],
    [8, 2],
  ]),
  op('aten::bmm', 140, 20, [
    [3, 4, 8],
    [3, 8, 5],
  ]),
  op('aten::_scaled_dot_product_flash_attention_for_cpu', 170, 30, [[1, 2, 4, 8], [1, 2, 6, 8], [1, 2, 6, 8], [], []]),
  op('aten::mm', 210, 10, [
    [4, 8],
    [9, 2],
  ]), // no product
]
// Rows × columns × summed elements, twice.
const ADDMM = 2 * 4 * 16 * 8
const MM = 2 * 4 * 2 * 8
const BMM = 3 * 2 * 4 * 5 * 8
const ATTENTION = 2 * 2 * 4 * 6 * (8 + 8)
const SUM = ADDMM + 2 * MM + BMM + ATTENTION

const rooflines = async (traceEvents: readonly object[], more: object = {}, options: AnalyzeOptions = {}) => {
  const json = { schemaVersion: 1, ...more, traceEvents }
  return (await analyze({ name: 'trace.json', source: new TextEncoder().encode(JSON.stringify(json)) }, options))
    .rooflines
}

test('on the CPU: all products, and each operator by the time of its slices', async () => {
  const found = await rooflines(OPS)
  expect(found.map(({ scope, what, count, time_ns, flop }) => [scope, what, count, time_ns, flop])).toEqual([
    ['run', 'matrix products', 5, 110_000, SUM],
    ['operator', 'aten::addmm', 1, 40_000, ADDMM],
    ['operator', 'aten::mm', 2, 20_000, 2 * MM],
    ['operator', 'aten::bmm', 1, 20_000, BMM],
    ['operator', 'aten::_scaled_dot_product_flash_attention_for_cpu', 1, 30_000, ATTENTION],
  ])
  expect(found[0]).toMatchObject({
    bytes: null,
    note: expect.stringMatching(/in the time of their slices; without 1 of other shapes$/),
  })
})

/** On a GPU: each operator launches a kernel that takes as long; what runs beside them is not theirs. */
const ON_GPU = [
  ...OPS.slice(0, -1).flatMap((of) => [
    of,
    ...(of.name === 'aten::linear' ? [] : [launch(of.ts), kernel(of.ts, of.dur)]),
  ]),
  op('aten::relu', 400, 5, [[4, 8]]),
  ...[launch(400), kernel(400, 3_000_000)],
]

test.each([
  ['after', ON_GPU],
  ['before', ON_GPU.toReversed()],
])('on a GPU: the time of the work that they launched, which the file has %s the operators', async (_, events) => {
  const found = await rooflines(events, {}, { peaks: undefined })
  const figures = found.map(({ what, time_ns, flop }) => [what, time_ns, flop] as const)
  expect(figures.sort(([, a], [, b]) => b - a).slice(0, 3)).toEqual([
    ['matrix products', 110_000, SUM],
    ['aten::addmm', 40_000, ADDMM],
    ['aten::_scaled_dot_product_flash_attention_for_cpu', 30_000, ATTENTION],
  ])
  expect(figures.map(([what]) => what)).toEqual(expect.arrayContaining(['aten::mm', 'aten::bmm']))
  expect(found[0]!.note).toMatch(/the GPU's work that they launched$/)
})

test('on a GPU: operators of which some have other shapes, or whose work is not known, do not count', async () => {
  const [wrong] = OPS.slice(-1)
  const found = await rooflines([...ON_GPU, wrong!, launch(wrong!.ts), kernel(wrong!.ts, 10)])
  expect(found[0]).toMatchObject({ count: 3, time_ns: 90_000, flop: SUM - 2 * MM })
  expect(found[0]!.note).toMatch(/; without 3 of other shapes, or that launched no work$/)
  expect(await rooflines([...OPS, kernel(150, 400)])).toEqual([])
})

test('the published peak of a GPU that the trace names', async () => {
  const deviceProperties = [{ id: 0, name: 'NVIDIA A100-SXM4-80GB' }]
  const [run] = await rooflines(ON_GPU, { deviceProperties })
  expect(run).toMatchObject({ peak_flop_per_s: 312e12, peak_bytes_per_s: 2039e9 })
  expect(run!.mfu_share).toBeCloseTo(SUM / 110e-6 / 312e12, 12)
})

test('peaks of devices: by their names, one device only', () => {
  expect(knownPeaks('0 NVIDIA H100 80GB HBM3')).toMatchObject({ origin: 'known', bytes_per_s: 3.35e12 })
  expect(knownPeaks('0 NVIDIA A100-SXM4-40GB')).toMatchObject({ bytes_per_s: 1.555e12 })
  for (const name of [null, '', '0 NVIDIA H100 PCIe', '0 NVIDIA A100-SXM4-80GB, 1 NVIDIA A100-SXM4-80GB']) {
    expect(knownPeaks(name)).toBeUndefined()
  }
})

test('a trace without shapes has no roofline', async () => {
  expect(await rooflines([{ ...OPS[1], args: {} }])).toEqual([])
})
