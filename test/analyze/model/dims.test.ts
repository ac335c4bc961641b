import { expect, test } from '@jest/globals'
import { knownPeaks } from '../../../lib/analyze/model/devices.ts'
import { type AnalyzeOptions, analyze } from '../../../lib/index.ts'

/** FLOP of PyTorch's operators, from shapes in a trace of its profiler that was written by hand. */

const op = (name: string, ts: number, dur: number, dims: unknown) => ({
  ...{ ph: 'X', cat: 'cpu_op', name, pid: 1, tid: 1, ts, dur },
  args: { 'External id': ts, 'Input Dims': dims },
})

const kernel = (ts: number, dur: number) => ({
  ...{ ph: 'X', cat: 'kernel', name: 'gemm', pid: 0, tid: 7, ts, dur },
  args: { device: 0, stream: 7, correlation: 1 },
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
    ['run', 'matrix products', 5, 190_000, SUM],
    ['operator', 'aten::addmm', 1, 40_000, ADDMM],
    ['operator', 'aten::mm', 2, 20_000, 2 * MM],
    ['operator', 'aten::bmm', 1, 20_000, BMM],
    ['operator', 'aten::_scaled_dot_product_flash_attention_for_cpu', 1, 30_000, ATTENTION],
  ])
  expect(found[0]).toMatchObject({
    bytes: null,
    note: expect.stringMatching(/end of the last one; 1 have other shapes/),
  })
})

test.each([
  ['before', (events: readonly object[]) => [kernel(150, 400), ...events]],
  ['after', (events: readonly object[]) => [...events, kernel(150, 400)]],
])('on a GPU: up to the end of its work, which the file has %s the operators', async (_, order) => {
  const found = await rooflines(order(OPS), {}, { peaks: undefined })
  expect(found.map(({ scope, time_ns, flop }) => [scope, time_ns, flop])).toEqual([['run', 540_000, SUM]])
  expect(found[0]!.note).toContain("the end of the GPU's work")
})

test('the published peak of a GPU that the trace names', async () => {
  const deviceProperties = [{ id: 0, name: 'NVIDIA A100-SXM4-80GB' }]
  const [run] = await rooflines([...OPS, kernel(150, 400)], { deviceProperties })
  expect(run).toMatchObject({ peak_flop_per_s: 312e12, peak_bytes_per_s: 2039e9 })
  expect(run!.mfu_share).toBeCloseTo(SUM / 540e-6 / 312e12, 12)
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
