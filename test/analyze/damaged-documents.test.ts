import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { issueText, redacted } from '../../bin/report/issue.ts'
import { predictionsOf } from '../../bin/report/predictions.ts'
import { modelSections } from '../../bin/stats/model.ts'
import { toText } from '../../bin/stats/section.ts'
import {
  type Analysis,
  analyze,
  compareRuns,
  modelOf,
  parseKernelFile,
  parsePeakFile,
  readAnalysis,
  type WhatIf,
  whatIf,
} from '../../lib/analysis.ts'
import { isOwnError } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { inParts, isLong } from '../long.ts'
import { faultsOfTexts, noNumbersIn, textsOf, textsOfComparison } from '../read/made.ts'
import { damaged, withValue } from '../read/other-values.ts'
import { kernelsOf } from './made-kernels.ts'

/**
 * Documents that commands read next to logs, in which one value is another: each is refused with its name and the place, or what is printed of it contains
 * no number that is none.
 */

const RUNS = isLong ? 3000 : 120
const SERIES = ['calls', 'steps', 'requests', 'memory', 'graph'] as const
const analysisOf = async (path: string) => analyze(await inputOf(path), { series: SERIES })
const prompt = await analysisOf('test/recorded/prompt.ggtrace.gz')

/** What `made` prints of a document has no fault; undefined: it was refused, in one line that begins with its name, and a hint. */
async function faultsOf<T>(
  name: string,
  read: () => T | Promise<T>,
  made: (document: T) => Iterable<string> | Promise<Iterable<string>>,
) {
  let document: T
  try {
    document = await read()
  } catch (error) {
    if (!isOwnError(error)) return [(error as Error).stack]
    const [sentence = '', ...more] = error.message.split('\n')
    const isClear =
      sentence.startsWith(`${name}: `) &&
      /expected .*|not valid JSON: |the model type ".{0,40}" is not known/.test(sentence) &&
      sentence.length < 600
    return isClear && more.every((line) => line.startsWith('hint: ')) ? [] : [error.message]
  }
  try {
    return faultsOfTexts([...(await made(document))])
  } catch (error) {
    return isOwnError(error) ? [] : [(error as Error).stack]
  }
}

const property = (document: object, faults: (text: string) => Promise<unknown[]>, numRuns = RUNS) =>
  fc.assert(
    fc.asyncProperty(damaged(document), async ({ text, what }) => {
      expect([what, await faults(text)]).toEqual([what, []])
    }),
    { numRuns },
  )

const CHANGES = [
  { context: 200 },
  { threads: 1 },
  { type: 'q8_0' },
  { batch: 4 },
  { without: ['preempted', 'faults'] },
] as const
const textsOfPrediction = (prediction: WhatIf) => [prediction.sentence, ...prediction.basis, ...noNumbersIn(prediction)]

async function predictedTexts(analysis: Analysis, kernels?: ReturnType<typeof parseKernelFile>) {
  const texts: string[] = []
  for (const change of CHANGES) texts.push(...textsOfPrediction(await whatIf(analysis, change, { kernels })))
  return texts
}

const rate = {
  ...{ instruction_set: 'AVX2', one: 5e9, all: 1e10 },
  by_threads: [1, 2].map((threads) => ({ threads, rate: 5e9 * threads, median: 5e9 * threads })),
}
const PEAKS = {
  ...{ cpu: prompt.run.cpu, cpus: prompt.run.cpus, threads: 2, load_share: 0.01, disturbed: null },
  ...{ read_bytes: rate, fp32_flops: rate, int8_ops: rate, measured_at: '2026-11-29T00:00:00Z' },
}
const PRODUCTS = kernelsOf(
  prompt,
  ['q4_0', 'q8_0'].flatMap((type) =>
    [1, 4, 64].flatMap((tokens) => [1, 2].map((threads) => [type, tokens, threads] as const)),
  ),
  (_, tokens, threads, elements) => (elements * tokens) / threads,
  {
    attention: [
      {
        ...{ heads: 4, kv_heads: 2, head_size: 16, value_size: 16, k_type: 'f16', v_type: 'f16', copies: 1 },
        ...{ tokens: 1, context: 64, cache: 256, threads: 2, ns: 1000, second_ns: 1010, best_ns: 900 },
      },
    ],
  },
)

const CONFIG = {
  ...{ architectures: ['x'], model_type: 'llama', _name_or_path: 'm', hidden_size: 64, intermediate_size: 128 },
  ...{ num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: 16, vocab_size: 300 },
  ...{ torch_dtype: 'bfloat16', max_position_embeddings: 4096, tie_word_embeddings: false, attention_bias: false },
  ...{ mlp_bias: false, sliding_window: 8, layer_types: ['sliding_attention', 'full_attention'] },
}
const SPARSE = {
  ...{ ...CONFIG, model_type: 'qwen2_moe', num_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 32 },
  ...{ shared_expert_intermediate_size: 64, decoder_sparse_step: 1, mlp_only_layers: [0] },
}

describe('measurements of a machine', () => {
  test('its peaks', () =>
    property(
      PEAKS,
      (text) =>
        faultsOf(
          '--peaks p.json',
          () => parsePeakFile(text, '--peaks p.json'),
          async (peaks) => {
            const analysis = await analyze(await inputOf('test/recorded/prompt.ggtrace.gz'), { peaks, series: SERIES })
            return [...textsOf(analysis), ...noNumbersIn(analysis), ...(await predictedTexts(analysis))]
          },
        ),
      isLong ? 1000 : 25,
    ))

  test('its products', () =>
    property(PRODUCTS, (text) =>
      faultsOf(
        '--kernels k.json',
        () => parseKernelFile(text, '--kernels k.json'),
        (kernels) => predictedTexts(prompt, kernels),
      ),
    ))
})

test.each([CONFIG, SPARSE, { model_type: 'gemma3', text_config: { ...CONFIG, model_type: 'gemma3_text' } }])(
  'a config.json: $model_type',
  (config) =>
    property(config, (text) =>
      faultsOf(
        'config.json',
        () => modelOf({ name: 'config.json', source: new TextEncoder().encode(text) }),
        ({ model, undetermined }) => [
          ...toText(modelSections(model), 200),
          ...undetermined.map(({ why }) => why),
          ...noNumbersIn(model),
        ],
      ),
    ),
)

const LOGS = [
  'test/recorded/preempted.ggtrace.gz',
  'test/gpu/logs/nano.ggtrace.gz',
  'test/printed/logs/server.ggtrace.gz',
  'test/numa/distribute.ggtrace.gz',
  'examples/moe.csv',
]

describe('a stored Analysis', () => {
  inParts(test).each(LOGS)('of %s', async (path) => {
    const analysis = await analysisOf(path)
    await property(
      JSON.parse(JSON.stringify(analysis)),
      (text) =>
        faultsOf(
          'run.json',
          () => readAnalysis({ name: 'run.json', source: new TextEncoder().encode(text) }),
          async (read) => {
            const comparison = compareRuns({ name: 'a', runs: [read] }, { name: 'b', runs: [analysis] })
            return [
              ...textsOf(read),
              ...issueText(redacted(read), 'run.json').split('\n'),
              ...textsOfComparison(comparison),
              ...noNumbersIn(comparison),
              ...(await predictedTexts(read)),
              ...predictionsOf(read, [analysis]).flatMap(textsOfPrediction),
            ]
          },
        ),
      isLong ? 1000 : 12,
    )
  })

  test('of a tensor whose name has a larger number than a model has layers is read', async () => {
    const text = withValue(await analysisOf(LOGS[0]!), ['operators', 'rows', 0, 'layer'], 20_000)
    expect((await readAnalysis(text)).operators.rows[0]!.layer).toBe(20_000)
  })

  test('of a graph whose views are of each other', async () => {
    const analysis = await analysisOf(LOGS[0]!)
    // Ids are places: without the first node, each refers to the next one.
    const text = withValue(analysis, ['series', 'graph', 'nodes', 0], undefined)
    expect(faultsOfTexts(textsOf(await readAnalysis(text)))).toEqual([])
  })
})
