import { expect, test } from '@jest/globals'
import { groupOperators } from '../../../lib/analysis.ts'
import { type AnalyzeOptions, analyze, type EventInput, type TraceEvent } from '../../../lib/index.ts'
import { scenario } from '../scenario.ts'

/** The scenario's call, of which a GPU computes a further product: 32 × 8 weights of q4_0 (144 bytes) by 4 columns. */
const [FLOP, BYTES] = [2 * 8 * 4 * 32, 144 + 512 + 128]

function withGpu(pieces: readonly (readonly [startNs: number, endNs: number, part?: number])[]): EventInput {
  return {
    name: 'split',
    *events(names) {
      const [first] = [...(scenario().events(names) as Iterable<TraceEvent[]>)]
      const place = { device: 0, context: -1, contextName: 0, stream: 1, streamName: 0, pid: -1 }
      const works = pieces.map(([startNs, endNs, part = 0], i): TraceEvent => {
        const node = { tensor: 4, fusedTo: undefined, backend: names.id('Vulkan0'), part }
        const of = { correlation: i, signature: 0, facts: {}, node, call: 0 }
        return { kind: 'gpu', what: 'kernel', name: names.id('mul_mat'), startNs, endNs, ...place, ...of }
      })
      // The first piece is read before its call, the others after it.
      yield [...first!.slice(0, -1), works[0]!]
      yield [first!.at(-1)!, ...works.slice(1)]
    },
  }
}

const analysed = (options?: AnalyzeOptions) =>
  analyze(
    withGpu([
      [1760, 1800],
      [1810, 1820, 1],
      [1830, 1900],
    ]),
    options,
  )

test('operators of a GPU are rows of their backend, with work, phase and no worker', async () => {
  const analysis = await analysed()
  const [row] = analysis.operators.rows.filter(({ backend }) => backend === 'Vulkan0')
  const of = { op: 'MUL_MAT', role: 'ffn_up', layer: -1, type: 'q4_0', phase: 'prefill', shape: '8×4×32', workers: [] }
  const time = { steps: 2, executions: 2, wall_ns: 120, operator_time_ns: 120, wait_ns: 0 }
  const work = { flop: 2 * FLOP, bytes_read: 2 * (144 + 512), bytes_written: 2 * 128, weight_bytes: 2 * 144 }
  expect(row).toMatchObject({ ...of, ...time, ...work })
  const groups = groupOperators(analysis, ['backend']).map(({ backend, steps, wall_ns, gflop_per_s }) => [
    ...[backend, steps, wall_ns, gflop_per_s],
  ])
  expect(groups).toEqual([
    ['CPU', 2, 580, expect.closeTo((2 * 16 * 4 * 32 + FLOP) / 580)],
    ['Vulkan0', 2, 120, expect.closeTo((2 * FLOP) / 120)],
  ])
  expect(analysis.memory!.weights_read).toMatchObject([{ phase: 'prefill', bytes: 16 * 34 + 3 * 144 }])
})

test('rooflines: of a phase with the work of all devices, of each backend against the peaks that are given for it', async () => {
  const peaks = { device: null, flop_type: 'any', int8_op_per_s: null, origin: 'given', source: 'test' } as const
  const backends = { Vulkan0: { flop_per_s: 1e12, bytes_per_s: 1e11 } }
  const { rooflines } = await analysed({ peaks: { ...peaks, flop_per_s: 1e11, bytes_per_s: 5e10, backends } })
  const [phase] = rooflines
  const ofCpu = 2 * 16 * 4 * 32 + FLOP
  expect(phase).toMatchObject({ scope: 'phase', count: 1, flop: ofCpu + 2 * FLOP, backend: null })
  expect(phase!.peak_flop_per_s).toBeCloseTo((ofCpu + 2 * FLOP) / (ofCpu / 1e11 + (2 * FLOP) / 1e12), 0)
  const vulkan = rooflines.filter(({ backend }) => backend === 'Vulkan0')
  expect(vulkan.map(({ scope, what, count }) => [scope, what, count])).toEqual([
    ['backend', 'Vulkan0', 2],
    ['operator', 'ffn_up MUL_MAT', 2],
  ])
  for (const { mfu_share, mbu_share } of vulkan) {
    expect(mfu_share).toBeCloseTo((2 * FLOP) / 120e-9 / 1e12)
    expect(mbu_share).toBeCloseTo((2 * BYTES) / 120e-9 / 1e11)
  }
})

test('measured peaks are those of the CPU: they say nothing about a GPU', async () => {
  const peaks = { device: null, flop_per_s: 1e11, flop_type: 'f32', int8_op_per_s: 2e11, bytes_per_s: 5e10 } as const
  const { rooflines, undetermined } = await analysed({ peaks: { ...peaks, origin: 'measured', source: 'peaks' } })
  const shares = rooflines.filter(({ scope }) => scope !== 'operator').map(({ what, mbu_share }) => [what, mbu_share])
  expect(shares).toEqual([
    ['prefill', null],
    ['CPU', expect.any(Number)],
    ['Vulkan0', null],
  ])
  expect(undetermined.find(({ what }) => what === 'rooflines.mfu_share')).toMatchObject({
    why: 'the peaks of peaks are not those of Vulkan0',
    hint: '--peak-gflops Vulkan0=… and --peak-gbs Vulkan0=…',
  })
})
