import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { rooflineOf } from '../../../lib/analyze/model/rooflines.ts'
import { type AnalyzeOptions, analyze, type EventInput, type PeakFigures, type TraceEvent } from '../../../lib/index.ts'
import { scenario } from '../scenario.ts'

/** Speeds against peaks, of a run that was computed by hand. */

const peaks = (more: Partial<PeakFigures> = {}): PeakFigures => ({
  ...{ device: 'x', flop_per_s: 100e9, flop_type: 'f32', int8_op_per_s: null, bytes_per_s: 10e9 },
  ...{ origin: 'given', source: 'test' },
  ...more,
})

const rooflines = async (options: AnalyzeOptions, input: EventInput = scenario()) =>
  (await analyze(input, options)).rooflines

/** The scenario: Q8_0 32×16 and Q4_0 32×8, each by 4 tokens of 32 elements. */
const FLOP = 2 * 32 * 4 * (16 + 8)
const Q_BYTES = 16 * 34 + 32 * 4 * 4 + 16 * 4 * 4
const UP_BYTES = 8 * 18 + 32 * 4 * 4 + 8 * 4 * 4

describe('a call of 1000 ns', () => {
  test('without peaks: speeds, and the reason why there are no shares', async () => {
    const { rooflines, undetermined } = await analyze(scenario())
    expect(rooflines[0]).toMatchObject({
      ...{ scope: 'phase', what: 'prefill', count: 1, time_ns: 1000 },
      ...{ flop: FLOP, bytes: Q_BYTES + UP_BYTES, flop_per_s: FLOP * 1e6, bytes_per_s: (Q_BYTES + UP_BYTES) * 1e6 },
      ...{ intensity: FLOP / (Q_BYTES + UP_BYTES), mfu_share: null, mbu_share: null, bound: null, note: null },
    })
    expect(undetermined.find(({ what }) => what === 'rooflines.mfu_share')?.hint).toContain('--peak-gflops')
  })

  test.each([
    [1, 2, 2e9, 20e9],
    [2, 2, 2e9, 20e9],
    [4, 4, 4e9, 40e9],
  ])(
    'peaks by threads: those of its two workers, or of the next number (%d and 8)',
    async (first, threads, bytes, flop) => {
      const rates = (threads: number) => ({
        threads,
        flop_per_s: threads * 10e9,
        int8_op_per_s: 1e12,
        bytes_per_s: threads * 1e9,
      })
      const counts = first === 1 ? [1, 2, 8] : [first, 8]
      const [phase] = await rooflines({
        peaks: peaks({ origin: 'measured', device: null, by_threads: counts.map(rates) }),
      })
      expect(phase).toMatchObject({ peak_threads: threads, peak_bytes_per_s: bytes })
      expect(phase!.peak_flop_per_s).toBeGreaterThanOrEqual(flop)
      expect((await rooflines({ peaks: peaks() }))[0]!.peak_threads).toBeNull()
    },
  )

  test('with peaks: MFU, MBU, what is attainable, and the bound with its margin', async () => {
    const [phase, ...others] = await rooflines({ peaks: peaks() })
    const intensity = FLOP / (Q_BYTES + UP_BYTES)
    expect(phase).toMatchObject({
      ...{ ridge: 10, attainable_flop_per_s: 10e9 * intensity, bound: 'memory' },
      mfu_share: (FLOP * 1e6) / 100e9,
      mbu_share: ((Q_BYTES + UP_BYTES) * 1e6) / 10e9,
      margin: intensity / 10,
    })
    expect(phase!.roof_share).toBe(phase!.mbu_share)
    // From the first start to the last barrier end of both workers.
    expect(others.map(({ scope, what, time_ns, bytes }) => [scope, what, time_ns, bytes])).toEqual([
      ['operator', 'ffn_up MUL_MAT', 350, UP_BYTES],
      ['operator', 'Qcur MUL_MAT', 230, Q_BYTES],
    ])
  })

  test('quantised weights on the CPU: the peak of 8-bit integers, elsewhere that of floating point', async () => {
    const [phase] = await rooflines({ peaks: peaks({ int8_op_per_s: 400e9 }) })
    expect(phase!.peak_flop_per_s).toBe(400e9)
    const [both] = await rooflines({ peaks: peaks({ int8_op_per_s: 400e9 }) }, withType('ffn_up', 'f32'))
    // Two thirds of the FLOP at one rate, one third at the other.
    expect(both!.peak_flop_per_s).toBeCloseTo(1 / (2 / 3 / 400e9 + 1 / 3 / 100e9), -3)
  })

  test('more than the peak is explained, not cut', async () => {
    const [phase] = await rooflines({ peaks: peaks({ bytes_per_s: 1e9, flop_per_s: 1e9 }) })
    expect(phase!.mbu_share).toBeCloseTo((Q_BYTES + UP_BYTES) / 1000, 9)
    expect(phase!.mbu_share).toBeGreaterThan(1)
    expect(phase!.note).toMatch(/cache.*the peak is too low; more FLOP than the peak allows/)
  })

  test('only one peak: the share of the other is not determined', async () => {
    const { rooflines, undetermined } = await analyze(scenario(), { peaks: peaks({ flop_per_s: null }) })
    expect(rooflines[0]).toMatchObject({ mfu_share: null, ridge: null, bound: null })
    expect(rooflines[0]!.mbu_share).not.toBeNull()
    expect(undetermined.map(({ what }) => what)).toContain('rooflines.mfu_share')
  })

  test('peaks that were measured on another machine are refused', async () => {
    const input = withCpu('AMD EPYC')
    const measured = peaks({ origin: 'measured', device: 'Intel Xeon' })
    const { rooflines, undetermined } = await analyze(input, { peaks: measured })
    expect(rooflines[0]!.mfu_share).toBeNull()
    expect(undetermined.find(({ what }) => what === 'rooflines')?.why).toBe(
      'the peaks were measured on "Intel Xeon", the log was recorded on "AMD EPYC"',
    )
    const same = await analyze(input, { peaks: { ...measured, device: 'AMD EPYC' } })
    expect(same.rooflines[0]!.mfu_share).not.toBeNull()
  })
})

describe('NVTX ranges', () => {
  test('the work of the calls within them, by name; calls that they cut do not count', async () => {
    const range = (message: string, startNs: number, endNs: number) => [
      { what: 'push', message, atNs: startNs },
      { what: 'pop', message: '', atNs: endNs },
    ]
    const calls = await analyze(
      withNvtx([...range('request', 900, 2100), ...range('cut', 1200, 2200), ...range('empty', 3000, 4000)]),
    )
    expect(calls.rooflines.filter(({ scope }) => scope === 'range')).toMatchObject([
      { what: 'request', phase: null, count: 1, time_ns: 1200, flop: FLOP, bytes: Q_BYTES + UP_BYTES },
    ])
  })
})

describe('logs without operators', () => {
  const engine: EventInput = {
    name: 'engine',
    *events() {
      yield [
        { kind: 'input', format: 'engine', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
        ...[0, 1].map((call) => ({
          ...{ kind: 'token' as const, call, phase: 'decode' as const, tokens: 8, startNs: 1000 * call },
          ...{ endNs: 1000 * call + 500, tid: 1, inferred: 0 },
        })),
      ]
    },
  }

  test('peaks and FLOP of a token that cannot be are refused', async () => {
    for (const options of [
      { flopsPerToken: 0 },
      { flopsPerToken: Number.MAX_VALUE },
      { peaks: peaks({ flop_per_s: Number.MIN_VALUE }) },
      { peaks: peaks({ bytes_per_s: Number.NaN }) },
      { peaks: peaks({ backends: { CPU: { flop_per_s: null, bytes_per_s: -1 } } }) },
    ])
      await expect(rooflines(options, engine)).rejects.toThrow(/^[\w ]+: expected a number from 1 to 1e\+24, found /)
  })

  test('the given FLOP of a token', async () => {
    const [phase] = await rooflines({ flopsPerToken: 1e6, peaks: peaks({ flop_per_s: 1e14 }) }, engine)
    expect(phase).toMatchObject({ what: 'decode', count: 2, time_ns: 1000, flop: 16e6, bytes: null })
    expect(phase!.mfu_share).toBeCloseTo(16e6 / 1e-6 / 1e14, 9)
  })

  test('a config.json: 2 FLOP for each parameter of its matrices, the weights once for each call', async () => {
    const config = { model_type: 'llama', hidden_size: 64, intermediate_size: 96, num_hidden_layers: 2 }
    const json = { ...config, num_attention_heads: 4, vocab_size: 100, torch_dtype: 'float16' }
    const source = new TextEncoder().encode(JSON.stringify(json))
    const { rooflines, model } = await analyze([engine, { name: 'config.json', source }])
    const parameters = 2 * (4 * 64 * 64 + 3 * 64 * 96) + 64 * 100
    expect(model).toMatchObject({ source: 'config', parameters: parameters + 64 * 100 + 5 * 64 })
    expect(rooflines[0]).toMatchObject({
      ...{ flop: 16 * 2 * parameters, bytes: 2 * 2 * (parameters + 64 + 5 * 64) },
      note: expect.stringContaining('without the products of attention and the KV cache'),
    })
  })

  test('without either: the reason, and what to give', async () => {
    const { rooflines, undetermined } = await analyze(engine)
    expect(rooflines).toEqual([])
    expect(undetermined.find(({ what }) => what === 'rooflines')?.hint).toContain('--flops-per-token')
  })
})

test('two models are one too many; a model alone has no run', async () => {
  const source = new TextEncoder().encode(
    '{"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 2, "n_positions": 4}',
  )
  const config = () => ({ name: 'config.json', source })
  await expect(analyze([config(), config()])).rejects.toThrow('2 inputs are models; expected at most one')
  const alone = await analyze(config())
  expect([alone.inputs, alone.rooflines, alone.calls.count]).toEqual([[], [], 0])
  expect(alone.model?.parameters).toBe(2 * 8 + 4 * 8 + 12 * 64 + 13 * 8 + 2 * 8)
})

test('properties: never above the roof by less than both shares, one bound on each side of the ridge', () => {
  const positive = fc.double({ min: 1e-3, max: 1e15, noNaN: true })
  fc.assert(
    fc.property(positive, positive, positive, positive, (flop, bytes, flopPerS, bytesPerS) => {
      const measured = { scope: 'run' as const, what: '', phase: null, count: 1, timeNs: 1e9, flop, bytes }
      const line = rooflineOf(measured, { flopPerS, bytesPerS })
      const attained = line.flop_per_s / line.attainable_flop_per_s!
      expect(attained / Math.max(line.mfu_share!, line.mbu_share!)).toBeCloseTo(1, 6)
      expect(line.bound).toBe(line.margin! < 1 / 1.5 ? 'memory' : line.margin! > 1.5 ? 'compute' : 'near the ridge')
    }),
  )
})

/** The scenario with changed events. */
function changed(change: (event: TraceEvent, id: (text: string) => number) => TraceEvent[]): EventInput {
  return {
    name: 'scenario',
    *events(names) {
      for (const batch of scenario().events(names) as Iterable<TraceEvent[]>) {
        yield batch.flatMap((event) => change(event, (text) => names.id(text)))
      }
    },
  }
}

const withCpu = (cpu: string) =>
  changed((event) => [event.kind === 'input' ? { ...event, attributes: { cpu } } : event])

const withType = (role: string, type: string) =>
  changed((event, id) => [
    event.kind === 'tensor' && event.name === id(`blk.0.${role}.weight`) ? { ...event, type: id(type) } : event,
  ])

const withNvtx = (calls: readonly { what: string; message: string; atNs: number }[]) =>
  changed((event, id) => {
    const nvtx = calls.map(({ what, message, atNs }) => ({
      ...{ kind: 'nvtx' as const, what: what as 'push', tid: 1, atNs, thread: 0, domain: 0, range: 0 },
      ...{ message: message === '' ? 0 : id(message), category: 0, color: -1 },
    }))
    return event.kind === 'token' ? [...nvtx, event] : [event]
  })
