import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { costAt, costUpTo, decodeBytes, modelOf, prefillFlop } from '../../../lib/analysis.ts'
import { layoutOf, type ModelSpec } from '../../llama/gguf.mjs'
import { type GgufParts, ggufFile } from './gguf-file.ts'

/** What a model contains and what a token costs, against closed forms and small files that were computed by hand. */

const F32 = 0
const F16 = 1
const Q8_0 = 8

const figures = async (parts: GgufParts) => modelOf({ name: 'model.gguf', source: ggufFile(parts) })

/** Two layers of 4 heads of 8 elements, 2 for keys and values; a vocabulary of 10. */
const METADATA = {
  'general.architecture': 'llama',
  'llama.block_count': 2,
  'llama.context_length': 100,
  'llama.embedding_length': 32,
  'llama.attention.head_count': 4,
  'llama.attention.head_count_kv': 2,
}
const layer = (i: number) =>
  [
    [`blk.${i}.attn_norm.weight`, F32, [32]],
    [`blk.${i}.attn_q.weight`, Q8_0, [32, 32]],
    [`blk.${i}.attn_k.weight`, Q8_0, [32, 16]],
    [`blk.${i}.attn_v.weight`, Q8_0, [32, 16]],
    [`blk.${i}.attn_output.weight`, Q8_0, [32, 32]],
    [`blk.${i}.ffn_norm.weight`, F32, [32]],
    [`blk.${i}.ffn_gate.weight`, Q8_0, [32, 64]],
    [`blk.${i}.ffn_up.weight`, Q8_0, [32, 64]],
    [`blk.${i}.ffn_down.weight`, Q8_0, [64, 32]],
  ] as const
const TENSORS = [
  ['token_embd.weight', F16, [32, 10]],
  ...layer(0),
  ...layer(1),
  ['output_norm.weight', F32, [32]],
  ['output.weight', F16, [32, 10]],
] as const

// By hand. Q8_0: 34 bytes for 32 elements. A layer: 2·32·32 + 2·32·16 = 3072 of attention, 3·32·64 = 6144 of FFN, 64 of norms.
const ATTENTION = 2 * 3072
const FFN = 2 * 6144
const NORMS = 5 * 32
const HEAD = 320

describe('a dense model', () => {
  test('parameters and bytes, by type and block', async () => {
    const { model } = await figures({ metadata: METADATA, tensors: TENSORS })
    expect(model.parameters).toBe(ATTENTION + FFN + NORMS + 2 * HEAD)
    expect(model.active_parameters).toBe(ATTENTION + FFN + NORMS + HEAD + 32)
    expect(model.bytes).toBe(((ATTENTION + FFN) / 32) * 34 + NORMS * 4 + 2 * HEAD * 2)
    expect(model.by_type).toEqual([
      { type: 'q8_0', tensors: 14, parameters: ATTENTION + FFN, bytes: ((ATTENTION + FFN) / 32) * 34 },
      { type: 'f16', tensors: 2, parameters: 2 * HEAD, bytes: 4 * HEAD },
      { type: 'f32', tensors: 5, parameters: NORMS, bytes: 4 * NORMS },
    ])
    expect(Object.fromEntries(model.by_block.map(({ block, parameters }) => [block, parameters]))).toEqual({
      attention: ATTENTION,
      FFN,
      norm: NORMS,
      embedding: HEAD,
      'LM head': HEAD,
    })
  })

  test('a token of decode reads all matrices and norms, and one row of the embedding table', async () => {
    const { decode } = (await figures({ metadata: METADATA, tensors: TENSORS })).model
    const matrices = ((ATTENTION + FFN) / 32) * 34 + HEAD * 2
    expect(decode).toMatchObject({
      matmul_weight_bytes: matrices,
      embedding_bytes: 32 * 2,
      weight_bytes: matrices + NORMS * 4 + 32 * 2,
      is_head_tied: false,
      // Two layers, 2 heads of 8 elements for keys and as many for values, 2 bytes each.
      kv_cache: { k: 'f16', v: 'f16', is_assumed: true },
      kv_read_bytes: { constant: 0, per_position: 2 * 2 * 16 * 2, windows: [] },
      kv_written_bytes: 2 * 2 * 16 * 2,
      // For each position: 4 heads, KQ and KQV of 8 elements, in 2 layers.
      flop: { constant: 2 * (ATTENTION + FFN + HEAD), per_position: 2 * 4 * 16 * 2, windows: [] },
      lm_head_flop: 2 * HEAD,
    })
    expect(decode.by_block.reduce((sum, { weight_bytes }) => sum + weight_bytes!, 0)).toBe(decode.weight_bytes)
    expect(decode.by_block.reduce((sum, { flop }) => sum + flop, 0)).toBe(decode.flop!.constant)
  })

  test('a tied head: the table counts once in the file, and is read as a whole for each token', async () => {
    const tensors = TENSORS.filter(([name]) => name !== 'output.weight')
    const { model } = await figures({ metadata: METADATA, tensors })
    expect(model.parameters).toBe(ATTENTION + FFN + NORMS + HEAD)
    expect(model.active_parameters).toBe(ATTENTION + FFN + NORMS + HEAD)
    expect(model.decode).toMatchObject({
      is_head_tied: true,
      matmul_weight_bytes: ((ATTENTION + FFN) / 32) * 34 + HEAD * 2,
      flop: { constant: 2 * (ATTENTION + FFN + HEAD) },
    })
  })

  test('the cache in another type', async () => {
    const source = ggufFile({ metadata: METADATA, tensors: TENSORS })
    const { model } = await modelOf({ name: 'model.gguf', source }, { cacheTypes: { k: 'q8_0', v: 'f32' } })
    expect(model.decode.kv_cache).toEqual({ k: 'q8_0', v: 'f32', is_assumed: false })
    expect(model.decode.kv_read_bytes?.per_position).toBe(2 * (17 + 64))
    const wrong = modelOf({ name: 'model.gguf', source }, { cacheTypes: { k: 'q9', v: 'f32' } })
    await expect(wrong).rejects.toThrow('"q9" is not a type of ggml')
  })
})

test('a mixture of experts: the chosen ones of each layer', async () => {
  const spec: ModelSpec = {
    ...{ layers: 3, width: 64, feedForward: 96, heads: 2, kvHeads: 1, vocabulary: 300, context: 128 },
    ...{ experts: 8, expertsUsed: 2 },
  }
  const { head, parameters } = layoutOf(spec)
  const { model } = await modelOf({ name: 'moe.gguf', source: head })
  const experts = 3 * 3 * 64 * 96
  expect(model).toMatchObject({ parameters, experts: 8, experts_used: 2 })
  expect(model.active_parameters).toBe(parameters - 6 * experts - 299 * 64)
  expect(model.decode.flop?.constant).toBe(2 * (3 * (2 * 64 * 64 + 2 * 64 * 32 + 64 * 8) + 2 * experts + 300 * 64))
  const moe = model.decode.by_block.find(({ block }) => block === 'MoE')
  expect(moe?.weight_bytes).toBe(((2 * experts) / 32) * 18 + 3 * 64 * 8 * 4)
})

test('layers with a sliding window read no more than it', async () => {
  const metadata = {
    ...Object.fromEntries(Object.entries(METADATA).map(([key, value]) => [key.replace('llama', 'gemma2'), value])),
    'general.architecture': 'gemma2',
    'gemma2.attention.sliding_window': 16,
  }
  const { model } = await figures({ metadata, tensors: TENSORS })
  expect(model.attention.map(({ layers, window }) => [layers, window])).toEqual([
    [1, 16],
    [1, 0],
  ])
  expect(model.decode.kv_read_bytes).toEqual({
    constant: 0,
    per_position: 64,
    windows: [{ window: 16, per_position: 64 }],
  })
  expect(costAt(model.decode.kv_read_bytes!, 10)).toBe(1280)
  expect(costAt(model.decode.kv_read_bytes!, 100)).toBe(6400 + 1024)
})

test('layers may have different numbers of heads; layers without keys have no cache', async () => {
  const metadata = {
    ...METADATA,
    'llama.attention.head_count': { type: 4, values: [4, 2] },
    'llama.attention.head_count_kv': { type: 4, values: [2, 1] },
    'llama.attention.key_length': 8,
    'llama.attention.value_length': 8,
  }
  const { model } = await figures({ metadata, tensors: TENSORS })
  expect(model.attention.map(({ heads, kv_heads }) => [heads, kv_heads])).toEqual([
    [4, 2],
    [2, 1],
  ])
  const hybrid = TENSORS.filter(([name]) => !/^blk\.1\.attn_[qkv]\./.test(name))
  const { model: other, undetermined } = await figures({
    metadata: METADATA,
    tensors: [...hybrid, ['blk.1.ssm_out.weight', Q8_0, [32, 32]]],
  })
  expect(other.attention).toHaveLength(1)
  expect(other.attention[0]).toMatchObject({ layers: 1 })
  expect(undetermined.map(({ what }) => what)).toContain('model.decode.state_bytes')
})

test('an architecture without attention that is known: what the tensors give, and the reason for the rest', async () => {
  const metadata = { 'general.architecture': 'rwkv9', 'rwkv9.block_count': 1, 'rwkv9.embedding_length': 32 }
  const { model, undetermined } = await figures({ metadata, tensors: [['blk.0.time_mix_key.weight', F16, [32, 32]]] })
  expect(model).toMatchObject({ parameters: 1024, bytes: 2048, attention: [] })
  expect(model.decode).toMatchObject({ matmul_weight_bytes: 2048, kv_read_bytes: null, flop: null })
  expect(undetermined).toContainEqual({
    what: 'model.decode.kv_read_bytes',
    why: 'no layer of "rwkv9" is known to have attention with a KV cache',
  })
})

describe('properties', () => {
  const cost = fc.record({
    constant: fc.nat(1000),
    per_position: fc.nat(1000),
    windows: fc.array(fc.record({ window: fc.integer({ min: 1, max: 40 }), per_position: fc.nat(1000) }), {
      maxLength: 3,
    }),
  })

  test('a prefill is the sum of its positions', () => {
    fc.assert(
      fc.property(cost, fc.integer({ min: 1, max: 100 }), (of, n) => {
        const sum = Array.from({ length: n }, (_, i) => costAt(of, i + 1)).reduce((a, b) => a + b, 0)
        expect(costUpTo(of, n)).toBe(sum)
      }),
    )
  })

  test('of any dense model of the testbed, all weights but the table are read for a token', () => {
    const shape = fc.record({
      layers: fc.integer({ min: 1, max: 4 }),
      width: fc.constantFrom(64, 128),
      feedForward: fc.constantFrom(32, 96),
      heads: fc.constantFrom(2, 4),
      kvHeads: fc.constantFrom(1, 2),
      vocabulary: fc.integer({ min: 260, max: 400 }),
      context: fc.constantFrom(128, 4096),
    })
    return fc.assert(
      fc.asyncProperty(shape, async (spec) => {
        const { head, tensors } = layoutOf(spec)
        const { model } = await modelOf({ name: 'model.gguf', source: head })
        const bytes = (is: (name: string) => boolean) =>
          tensors.filter(({ name }) => is(name)).reduce((sum, { size }) => sum + size, 0)
        const table = bytes((name) => name === 'token_embd.weight')
        expect(model.bytes).toBe(bytes(() => true))
        expect(model.decode.matmul_weight_bytes).toBe(bytes((name) => !/norm|token_embd/.test(name)))
        expect(model.decode.weight_bytes).toBe(bytes(() => true) - table + table / spec.vocabulary)
        const [last] = model.at.slice(-1)
        expect(last).toMatchObject({
          context: spec.context,
          decode_bytes: decodeBytes(model.decode, spec.context),
          prefill_flop: prefillFlop(model.decode, spec.context),
        })
      }),
      { numRuns: 30 },
    )
  })
})
