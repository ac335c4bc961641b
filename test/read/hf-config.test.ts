import { describe, expect, test } from '@jest/globals'
import { modelOf } from '../../lib/analysis.ts'
import { noNumbersIn } from './made.ts'

/**
 * Models from a config.json. The numbers of parameters are those that the model's page on Hugging Face gives for its safetensors files
 * (huggingface.co/<model>, "Model size"), of gpt2 that of transformers' documentation.
 */

const source = (config: object) => ({
  name: 'config.json',
  source: new TextEncoder().encode(JSON.stringify(config)),
})

const config = (
  model_type: string,
  [hidden_size, intermediate_size, num_hidden_layers]: readonly [number, number, number],
  [num_attention_heads, num_key_value_heads, head_dim]: readonly [number, number, number?],
  vocab_size: number,
  more: object = {},
) => ({
  model_type,
  hidden_size,
  intermediate_size,
  num_hidden_layers,
  num_attention_heads,
  num_key_value_heads,
  ...(head_dim === undefined ? {} : { head_dim }),
  vocab_size,
  torch_dtype: 'bfloat16',
  max_position_embeddings: 4096,
  ...more,
})

const TIED = { tie_word_embeddings: true }

const MODELS: readonly (readonly [string, object, number])[] = [
  ['meta-llama/Llama-2-7b-hf', config('llama', [4096, 11008, 32], [32, 32], 32000), 6_738_415_616],
  ['meta-llama/Meta-Llama-3-8B', config('llama', [4096, 14336, 32], [32, 8], 128256), 8_030_261_248],
  ['meta-llama/Llama-3.2-1B', config('llama', [2048, 8192, 16], [32, 8, 64], 128256, TIED), 1_235_814_400],
  ['mistralai/Mistral-7B-v0.1', config('mistral', [4096, 14336, 32], [32, 8], 32000), 7_241_732_096],
  [
    'mistralai/Mixtral-8x7B-v0.1',
    config('mixtral', [4096, 14336, 32], [32, 8], 32000, { num_local_experts: 8, num_experts_per_tok: 2 }),
    46_702_792_704,
  ],
  ['Qwen/Qwen2.5-0.5B', config('qwen2', [896, 4864, 24], [14, 2], 151936, TIED), 494_032_768],
  ['Qwen/Qwen2-7B', config('qwen2', [3584, 18944, 28], [28, 4], 152064), 7_615_616_512],
  ['Qwen/Qwen3-0.6B', config('qwen3', [1024, 3072, 28], [16, 8, 128], 151936, TIED), 596_049_920],
  ['Qwen/Qwen3-8B', config('qwen3', [4096, 12288, 36], [32, 8, 128], 151936), 8_190_735_360],
  [
    'Qwen/Qwen3-30B-A3B',
    config('qwen3_moe', [2048, 6144, 48], [32, 4, 128], 151936, {
      moe_intermediate_size: 768,
      num_experts: 128,
      num_experts_per_tok: 8,
      decoder_sparse_step: 1,
      mlp_only_layers: [],
    }),
    30_532_122_624,
  ],
  [
    'Qwen/Qwen1.5-MoE-A2.7B',
    config('qwen2_moe', [2048, 5632, 24], [16, 16], 151936, {
      moe_intermediate_size: 1408,
      shared_expert_intermediate_size: 5632,
      num_experts: 60,
      num_experts_per_tok: 4,
    }),
    14_315_784_192,
  ],
  ['google/gemma-2b', config('gemma', [2048, 16384, 18], [8, 1, 256], 256000), 2_506_172_416],
  ['google/gemma-2-2b', config('gemma2', [2304, 9216, 26], [8, 4, 256], 256000), 2_614_341_888],
  ['google/gemma-3-1b-it', config('gemma3_text', [1152, 6912, 26], [4, 1, 256], 262144), 999_885_952],
  ['microsoft/phi-2', config('phi', [2560, 10240, 32], [32, 32], 51200), 2_779_683_840],
  ['microsoft/Phi-3-mini-4k-instruct', config('phi3', [3072, 8192, 32], [32, 32], 32064), 3_821_079_552],
  [
    'openai-community/gpt2',
    { model_type: 'gpt2', n_embd: 768, n_layer: 12, n_head: 12, vocab_size: 50257, n_positions: 1024 },
    124_439_808,
  ],
]

test.each(MODELS)('%s has as many parameters as published', async (_, config, parameters) => {
  const { model } = await modelOf(source(config))
  expect(model.parameters).toBe(parameters)
  expect(model.source).toBe('config')
})

test('bytes come from the type of the weights', async () => {
  const { model } = await modelOf(source(MODELS[0]![1]))
  expect(model.bytes).toBe(2 * 6_738_415_616)
  // All but the table, of which a token reads a row.
  expect(model.decode.weight_bytes).toBe(2 * (6_738_415_616 - 31_999 * 4096))
  // 32 layers of 32 heads of 128 elements for keys and as many for values.
  expect(model.decode.kv_read_bytes).toEqual({ constant: 0, per_position: 32 * 2 * 4096 * 2, windows: [] })
})

test('Mixtral uses 12.9 G parameters for a token (mistral.ai/news/mixtral-of-experts)', async () => {
  const { model } = await modelOf(source(MODELS[4]![1]))
  const table = 32000 * 4096
  expect(Math.round((model.active_parameters + table) / 1e8)).toBe(129)
})

describe('sliding windows', () => {
  const windowsOf = async (config: object) => (await modelOf(source(config))).model.attention
  const gemma3 = config('gemma3_text', [1152, 6912, 26], [4, 1, 256], 262144, { sliding_window: 512 })

  test('of five in six layers of gemma3', async () => {
    expect((await windowsOf(gemma3)).map(({ layers, window }) => [layers, window])).toEqual([
      [22, 512],
      [4, 0],
    ])
  })

  test('of the layers that the file lists', async () => {
    const layer_types = Array.from({ length: 26 }, (_, i) => (i < 3 ? 'sliding_attention' : 'full_attention'))
    const found = await windowsOf({ ...gemma3, layer_types })
    expect(found.map(({ layers, window }) => [layers, window])).toEqual([
      [3, 512],
      [23, 0],
    ])
  })

  test('of no layer where the file turns them off', async () => {
    const off = config('qwen2', [896, 4864, 24], [14, 2], 151936, { sliding_window: 32768, use_sliding_window: false })
    expect((await windowsOf(off)).map(({ window }) => window)).toEqual([0])
  })
})

test('a model type that is not known is an error that lists those that are', async () => {
  await expect(modelOf(source({ model_type: 'mamba', hidden_size: 1 }))).rejects.toThrow(
    /model type "mamba" is not known; known ones: llama, mistral, .*\nhint: give the GGUF/,
  )
})

/** Numbers that no model has. */
const IMPOSSIBLE = [-1, 0.5, 1e9, 1e15, 1e300]

test.each([MODELS[4]![1], MODELS[10]![1]])('a number that no model has is an error, or not used', async (sound) => {
  for (const key of Object.keys(sound).filter((of) => typeof sound[of as keyof typeof sound] === 'number')) {
    for (const number of IMPOSSIBLE) {
      const made = await modelOf(source({ ...sound, [key]: number })).catch((error: Error) => error)
      if (made instanceof Error)
        expect(made.message).toMatch(
          /^config.json: expected a (whole number from [01] to \d+|multiple of the \d+ attention heads) for "\w+"$/,
        )
      else expect(noNumbersIn(made)).toEqual([])
    }
  }
})

test('what is missing or damaged is an error', async () => {
  await expect(modelOf(source({ model_type: 'llama' }))).rejects.toThrow('expected a whole number from 1 to')
  const text = { name: 'config.json', source: new TextEncoder().encode('{"model_type": "llama", oops') }
  await expect(modelOf(text)).rejects.toThrow('config.json: not valid JSON')
})

test('quantised weights: bytes are not known, with the reason', async () => {
  const { model, undetermined } = await modelOf(source({ ...MODELS[0]![1], quantization_config: { bits: 4 } }))
  expect([model.bytes, model.decode.weight_bytes]).toEqual([null, null])
  expect(undetermined[0]).toMatchObject({ what: 'model.bytes', why: expect.stringContaining('quantised') })
})

test('the language model of a model for images', async () => {
  const text_config = config('gemma3_text', [1152, 6912, 26], [4, 1, 256], 262144)
  const { model } = await modelOf(source({ model_type: 'gemma3', vision_config: {}, text_config }))
  expect(model.parameters).toBe(999_885_952)
})
