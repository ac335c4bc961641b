import { describe, expect, it } from '@jest/globals'
import type { BenchmarkEvent } from '../../lib/core.ts'
import { analyze, summarize, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, eventsIn, plainBytes } from '../line/support.ts'

/** What programs of llama.cpp print about their own speed. Damaged logs: traces-of-others.test.ts. */

type GpuEvent = Extract<TraceEvent, { readonly kind: 'gpu' }>
const bytesOf = (text: string) => new TextEncoder().encode(text)
const TEXT = new TextDecoder().decode(plainBytes('llama-log/vulkan.log'))

async function read(source: Uint8Array) {
  const { names, events } = await eventsIn(source)
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const works = events.filter((event): event is GpuEvent => event.kind === 'gpu')
  const tests = events.filter((event): event is BenchmarkEvent => event.kind === 'benchmark')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const facts = Object.assign({}, ...events.map((event) => (event.kind === 'facts' ? event.attributes : {}))) as object
  return { input, works, tests, issues, facts, nameOf: (id: number) => names.text(id) }
}

/** Rows of the Vulkan logger, by another reader. */
const ROWS = TEXT.split('\n').flatMap((line) => {
  const at = line.lastIndexOf(': ')
  const [count, each, sum] = line.slice(at + 2).split(/ x | us = /)
  return sum === undefined
    ? []
    : [{ name: line.slice(0, at), count: Number(count), each, ns: Number.parseFloat(sum) * 1000 }]
})

describe('the Vulkan logger', () => {
  it('has each row of each graph, laid end to end', async () => {
    const { input, works, issues, facts, nameOf } = await read(plainBytes('llama-log/vulkan.log'))
    expect([input.format, input.clock, issues]).toEqual(['llama-log', 'unknown', []])
    expect(facts).toMatchObject({ holds: '5 graphs, 74 sums, 2 speeds' })
    expect(ROWS).toHaveLength(74)
    expect(works.map(({ name, count = 1 }) => [nameOf(name), count])).toEqual(
      ROWS.map(({ name, count }) => [name, count]),
    )
    let endNs = 0
    for (const [i, work] of works.entries()) {
      expect(work.endNs - work.startNs).toBe(Math.round(ROWS[i]!.ns))
      expect(work.startNs).toBeGreaterThanOrEqual(endNs)
      endNs = work.endNs
    }
    // After the last line with a time, and not after the next one.
    expect(works[0]!.startNs).toBe(925_298_000)
    expect(works.slice(0, 16).at(-1)!.endNs).toBeLessThan(23_487_094_000)
  })

  it('its counts and sums are those of the statistics', async () => {
    const { gpu } = await analyze({ name: 'log', source: plainBytes('llama-log/vulkan.log') })
    const [device] = gpu!.devices
    expect(device!.kernels.reduce((sum, { count }) => sum + count, 0)).toBe(
      ROWS.reduce((sum, { count }) => sum + count, 0),
    )
    const sumNs = ROWS.reduce((sum, { ns }) => sum + ns, 0)
    expect(device!.kernels.reduce((sum, { time_ns }) => sum + time_ns, 0) / sumNs).toBeCloseTo(1, 6)
    expect(device!.kernels.filter(({ count }) => count > 10).every(({ duration }) => duration === null)).toBe(true)
  })

  it('rows of 2025 have no sum; other lines are none', async () => {
    const text =
      'Vulkan Timings:\nADD: 64 x 263.644 ms\nADD: 1e9 x\nMUL_MAT: 0 x 1 us = 0 us\nTotal time: 16 ms\nSUB: 1 x 2 us\n'
    const { works, facts } = await read(bytesOf(text))
    expect(works.map(({ startNs, endNs, count }) => [startNs, endNs, count])).toEqual([[0, 64 * 263_644_000, 64]])
    expect(facts).toMatchObject({ other_lines: 3 })
  })
})

describe('perf lines', () => {
  it('are speeds that end when they were printed', async () => {
    const { tests, facts, nameOf } = await read(plainBytes('llama-log/vulkan.log'))
    expect(
      tests.map(({ name, promptTokens, generatedTokens }) => [nameOf(name), promptTokens, generatedTokens]),
    ).toEqual([
      ['prompt eval', 29, 0],
      ['eval', 0, 3],
    ])
    const [prompt, evaluation] = tests as [BenchmarkEvent, BenchmarkEvent]
    expect([prompt.endNs - prompt.startNs, evaluation.endNs - evaluation.startNs]).toEqual([
      34_618_540_000, 1_216_080_000,
    ])
    expect([prompt.endNs, evaluation.endNs]).toEqual([evaluation.startNs, 59_322_426_000])
    expect(facts).toMatchObject({ load_time_ms: 22663.59, graphs_reused: 2 })
  })

  it('of two contexts, such as those of a model and its draft, have the facts of both', async () => {
    const of = (ms: number) => [
      `llama_perf_context_print:        load time =     ${ms}.00 ms`,
      'llama_perf_context_print: prompt eval time =      10.00 ms /     5 tokens (    2.00 ms per token,   500.00 tokens per second)',
      'llama_perf_context_print:        eval time =      20.00 ms /     4 runs   (    5.00 ms per token,   200.00 tokens per second)',
    ]
    const { tests, facts } = await read(new TextEncoder().encode([...of(100), ...of(7)].join('\n')))
    expect(tests).toHaveLength(4)
    expect(facts).toMatchObject({ load_time_ms: '100, 7' })
  })

  it.each(['llama_perf_context_print', 'llama_print_timings'])('%s, without times', async (name) => {
    const text = [
      `${name}:        load time =     100.00 ms`,
      `${name}: prompt eval time =      50.00 ms /    10 tokens (    5.00 ms per token,   200.00 tokens per second)`,
      `${name}:        eval time =      90.00 ms /     9 runs   (   10.00 ms per token,   100.00 tokens per second)`,
    ].join('\n')
    const { benchmarks } = await analyze({ name: 'log', source: bytesOf(text) })
    expect(benchmarks.map(({ test, tokens_per_s, time_ns }) => [test, tokens_per_s, time_ns])).toEqual([
      ['prompt eval', 200, 50e6],
      ['eval', 100, 90e6],
    ])
  })
})

describe('operators of backends', () => {
  it('have the times that they print', async () => {
    const { input, works, issues, nameOf } = await read(plainBytes('llama-log/backends.log'))
    expect([input.clock, input.originNs, issues]).toEqual(['MONOTONIC', 48437862009000n, []])
    expect(works.map(({ name, startNs, endNs }) => [nameOf(name), startNs, endNs - startNs])).toEqual([
      ['MUL_MAT', 0, 3_112_000],
      ['ROPE', 3_121_000, 9_266_000],
      ['RMS_NORM', 12_391_000, 12_000],
      ['MUL_MAT', 0, 120_000],
      // 167 296 cycles after the one before, over the end of the counter.
      ['ADD', Math.round((167_296 * 1000) / 1190), 5000],
      ['SOFT_MAX', Math.round((167_296 * 1000) / 1190) + 5000, 7000],
    ])
    expect(works[0]!.facts).toEqual({
      ...{ tensor: 'Qcur-0', kernel: 'mul_mat_f32_Q8_0xf32', shape: '[4096,2,1,1]', flop: 67100672 },
    })
  })

  it('lines that cannot be read are issues', async () => {
    const text =
      'ET_PERF|op=ADD|start_us=5|end_us=4\nggml-hex: HTP0 profile-op ADD|a\nET_PERF|op=ADD|start_us=5|end_us=7\n'
    const { works, issues } = await read(bytesOf(text))
    expect([works.length, issues]).toEqual([1, ['unreadable-row', 'unreadable-row']])
  })

  it('batches of operators, which are printed by themselves, are counted', async () => {
    const source = plainBytes('llama-log/backends.log')
    const count = new TextDecoder().decode(source).match(/profile-op OPBATCH/g)!.length
    const { left_out } = await summarize({ name: 'log', source })
    expect(left_out).toEqual([{ what: 'batches of operators', count }])
  })
})

it('the trace has a queue for each backend', async () => {
  const open = await openTrace(await converted(plainBytes('llama-log/backends.log')))
  try {
    const { rows } = open.query(
      `select t.name, count(*) from gpu_slice s join track t on t.id = s.track_id group by 1 order by 1`,
    )
    expect(rows).toEqual([
      ['ET', 3],
      ['HTP0', 3],
    ])
    expect(open.problems()).toEqual([])
  } finally {
    open.close()
  }
})
