import { mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { costAt } from '../../lib/analysis.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import type { Model, ModelSpec, Preset } from '../llama/gguf.mjs'
import { hasLlama, model, run, runHosts } from '../llama/testbed.ts'
import { readLog, recordsOf } from './log-checker.ts'
import { NANO, newLog, RECORDER, useRecorder } from './recording.ts'

/** What operators of recorded runs read and compute, against the model's GGUF and what the program itself reports. */

const llama = hasLlama() ? describe : describe.skip

/** llama.cpp's attention computes positions in steps of 256. */
const PADDED = 256

async function record(preset: Preset | ModelSpec, args: readonly string[]) {
  const made = await model(preset)
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const options = ['--threads', '2', '--threadpool', '--prompt', '5', '--decode', '4', ...args]
  const result = await run(made.path, options, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
  expect([result.code, result.stderr]).toEqual([0, ''])
  return { made, result, log }
}

const sum = <T>(values: readonly T[], of: (value: T) => number) => values.reduce((total, value) => total + of(value), 0)

const decodeRows = ({ operators }: Analysis, is: RegExp) =>
  operators.rows.filter(({ phase, op }) => phase === 'decode' && is.test(op))

const matrices = ({ tensors }: Model) => tensors.filter(({ name }) => !/norm|token_embd/.test(name))

llama('a recorded model (needs linux-x64 and cc)', () => {
  useRecorder()

  test('its weights are in the log before its first call, which would wait for that', async () => {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    await runHosts(['load', 0, path, 'open', 0, 1], { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    const made = readLog(readFileSync(log))
    const [buffer, mapping, token] = [19, 20, 36].map((type) => recordsOf(made, type))
    expect(buffer!.map(({ offset }) => made.view.getUint32(offset + 16, true))).toContain(1)
    expect([mapping!.length > 0, token]).toEqual([true, []])
  })

  test('dense: weights read per token of decode are the matrices of the GGUF, to the byte', async () => {
    const { made, log } = await record('tinyDense', [])
    const analysis = await analyze([inputOf(log), inputOf(made.path)])
    const bytes = sum(matrices(made), ({ size }) => size)
    expect(sum(decodeRows(analysis, /^MUL_MAT/), ({ weight_bytes }) => weight_bytes)).toBe(4 * bytes)
    expect(analysis.model).toMatchObject({
      source: 'gguf',
      recorded_matmul_weight_bytes: bytes,
      decode: { matmul_weight_bytes: bytes, kv_cache: { k: 'f16', v: 'f16', is_assumed: false } },
    })
    // Norms, and a row of the table.
    const all = sum(decodeRows(analysis, /./), ({ weight_bytes }) => weight_bytes)
    expect(all).toBe(4 * analysis.model!.decode.weight_bytes!)
    const unknown = analysis.undetermined.map(({ what }) => what)
    expect(unknown).not.toContain('model')
    expect([analysis.run.architecture, unknown.includes('run.architecture')]).toEqual(['llama', false])
  })

  test('dense: FLOP and bytes of the KV cache are the closed forms', async () => {
    const { made, log } = await record('tinyDense', [])
    const analysis = await analyze([inputOf(log), inputOf(made.path)])
    const { flop, kv_read_bytes, kv_written_bytes } = analysis.model!.decode
    expect(sum(decodeRows(analysis, /./), (row) => row.flop)).toBe(4 * costAt(flop!, PADDED))
    const attention = decodeRows(analysis, /FLASH_ATTN_EXT/)
    const queries = made.spec.layers * made.spec.width * 4
    const mask = made.spec.layers * PADDED * 2
    expect(sum(attention, ({ bytes_read }) => bytes_read)).toBe(4 * (costAt(kv_read_bytes!, PADDED) + queries + mask))
    const written = decodeRows(analysis, /SET_ROWS/).filter(({ role }) => role.startsWith('cache_'))
    expect(sum(written, ({ bytes_written }) => bytes_written)).toBe(4 * kv_written_bytes!)
    const decode = analysis.rooflines.find(({ scope, what }) => scope === 'phase' && what === 'decode')!
    expect(decode).toMatchObject({ count: 4, flop: 4 * costAt(flop!, PADDED), mfu_share: null, bound: null })
  })

  test.each(['tinyDense', 'tinyMoe'] as const)(
    '%s: the recorded graph gives the figures of the GGUF',
    async (preset) => {
      const { made, log } = await record(preset, [])
      const [graph, gguf] = [await analyze(inputOf(log)), await analyze([inputOf(log), inputOf(made.path)])]
      expect(graph.model?.source).toBe('graph')
      for (const key of ['layers', 'width', 'vocabulary', 'experts', 'experts_used', 'attention', 'decode'] as const) {
        expect([key, graph.model![key]]).toEqual([key, gguf.model![key]])
      }
      for (const key of ['parameters', 'active_parameters', 'bytes', 'by_type', 'by_block', 'activations'] as const) {
        expect([key, graph.model![key]]).toEqual([key, gguf.model![key]])
      }
      expect(graph.undetermined.map(({ what }) => what)).toContain('model.architecture')
      const { bytes, peak_bytes } = graph.model!.activations!
      expect(peak_bytes).toBeGreaterThanOrEqual(made.spec.vocabulary * 4) // the result
      expect(bytes).toBeGreaterThan(peak_bytes!)
    },
  )

  test('a mixture of experts: bytes by the experts that the program reports as chosen', async () => {
    const { made, log, result } = await record('tinyMoe', ['--topk'])
    const analysis = await analyze([inputOf(log), inputOf(made.path)])
    const expert = sum(
      made.tensors.filter(({ name }) => name.startsWith('blk.0.') && name.includes('_exps')),
      ({ size }) => size / made.spec.experts!,
    )
    const read = (phase: string) =>
      sum(
        analysis.operators.rows.filter((row) => row.phase === phase && row.op === 'MUL_MAT_ID'),
        ({ weight_bytes }) => weight_bytes,
      )
    const chosen = (is: (call: number) => boolean) =>
      sum(
        result.topk.filter(({ call }) => is(call)),
        ({ ids }) => new Set(ids.flat()).size,
      )
    expect(read('prefill')).toBe(expert * chosen((call) => call === 0))
    expect(read('decode')).toBe(expert * chosen((call) => call > 0))
    expect(analysis.model?.recorded_matmul_weight_bytes).toBe(analysis.model?.decode.matmul_weight_bytes)
  })

  test('the GGUF of another model is noticed', async () => {
    const { log } = await record('tinyDense', [])
    const other = await model({
      layers: 1,
      width: 64,
      feedForward: 96,
      heads: 2,
      kvHeads: 1,
      vocabulary: 300,
      context: 128,
    })
    const { undetermined } = await analyze([inputOf(log), inputOf(other.path)])
    expect(undetermined.find(({ what }) => what === 'model')?.why).toMatch(/it may be another one$/)
  })
})
