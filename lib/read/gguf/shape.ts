import { dictionary } from '../../model/dictionary.ts'
import {
  type AttentionShape,
  isModelSize,
  LAYERS_MAX,
  type ModelShape,
  type UnknownOfModel,
  type Weight,
} from '../../model/model-shape.ts'
import type { GgufHeader, GgufValue } from './gguf.ts'

/**
 * Of architectures with sliding windows: the period of their layers, of which the last one (or the first one: `first`) attends to all
 * positions. Where the file does not contain it, llama.cpp assumes it (src/models: `swa_period`, `set_swa_pattern`). The
 * windows of llama and phi3 are ignored there.
 */
const WINDOW_PERIODS: Readonly<Record<string, { readonly period: number; readonly first?: boolean }>> = dictionary({
  'exaone-moe': { period: 4 },
  exaone4: { period: 4 },
  gemma2: { period: 2 },
  gemma3: { period: 6 },
  gemma3n: { period: 5 },
  'gemma-embedding': { period: 6 },
  'gpt-oss': { period: 2 },
  olmo2: { period: 4 },
  plamo3: { period: 8 },
  llama4: { period: 4 },
  cohere2: { period: 4 },
  cohere2moe: { period: 4, first: true },
  afmoe: { period: 4 },
  smallthinker: { period: 4, first: true },
  'modern-bert': { period: 3, first: true },
  llama: { period: 1 },
  phi3: { period: 1 },
})

/** The values of one architecture. */
class Values {
  constructor(
    private readonly metadata: ReadonlyMap<string, GgufValue>,
    readonly architecture: string,
  ) {}

  get(key: string): GgufValue | undefined {
    return this.metadata.get(`${this.architecture}.${key}`)
  }

  number(key: string): number | undefined {
    const value = this.get(key)
    return isModelSize(value) ? value : undefined
  }

  /** Layers that compute a token; undefined: no number that a model can have. */
  get layers(): number | undefined {
    const all = this.number('block_count')
    if (all === undefined || all > LAYERS_MAX) return undefined
    return Math.max(0, all - (this.number('nextn_predict_layers') ?? 0))
  }

  /** The value of a layer: of an array, its element. */
  ofLayer(key: string, layer: number): number | undefined {
    const value = this.get(key)
    const own = Array.isArray(value) ? value[layer] : value
    return isModelSize(own) ? own : undefined
  }
}

/** The model that a GGUF file contains. Keys are those of llama.cpp (src/llama-arch.cpp); ggml: docs/gguf.md. */
export function shapeOfGguf({ metadata, tensors, unknownTypes }: GgufHeader): ModelShape {
  const text = (key: string) => {
    const value = metadata.get(key)
    return typeof value === 'string' ? value : null
  }
  const architecture = text('general.architecture')
  const values = new Values(metadata, architecture ?? '')
  const unknown: UnknownOfModel[] = unknownTypes.map((number) => ({
    what: 'model.by_type',
    why: `type ${number} of ggml is not known; the sizes of its tensors are the distances of their places in the file`,
  }))
  const tokens = metadata.get('tokenizer.ggml.tokens')
  const vocabulary = values.number('vocab_size') ?? (typeof tokens === 'object' ? tokens.length : undefined)
  const table = tensors.find(({ name }) => name === 'token_embd.weight')
  const used = values.get('expert_used_count')
  const eachUsed = Array.isArray(used) ? used.filter((size) => isModelSize(size)) : []
  return {
    source: 'gguf',
    architecture,
    name: text('general.name'),
    layers: values.layers ?? null,
    width: values.number('embedding_length') ?? null,
    vocabulary: vocabulary ?? table?.ne[1] ?? null,
    contextLength: values.number('context_length') ?? null,
    experts: values.number('expert_count') ?? 0,
    expertsUsed: values.number('expert_used_count') ?? Math.max(0, ...eachUsed),
    attention: attentionOf(values, tensors, unknown),
    weights: tensors,
    unknown,
  }
}

/** Layers with attention have weights for keys; recurrent ones do not. */
function layersWithAttention(tensors: readonly Weight[], layers: number): number[] {
  const names = new Set(tensors.map(({ name }) => name))
  const has = (layer: number, role: string) => names.has(`blk.${layer}.${role}.weight`)
  return Array.from({ length: layers }, (_, layer) => layer).filter(
    (layer) =>
      ['attn_k', 'attn_kv_a_mqa', 'attn_kv'].some((role) => has(layer, role)) ||
      (has(layer, 'attn_qkv') && !['ssm_out', 'ssm_conv1d'].some((role) => has(layer, role))),
  )
}

function attentionOf(values: Values, tensors: readonly Weight[], unknown: UnknownOfModel[]): AttentionShape[] {
  const width = values.number('embedding_length')
  const windowOf = windows(values, unknown)
  const shapes = layersWithAttention(tensors, values.layers ?? 0).flatMap((layer): AttentionShape[] => {
    const heads = values.ofLayer('attention.head_count', layer)
    const kvHeads = values.ofLayer('attention.head_count_kv', layer) ?? heads
    if (!heads || kvHeads === undefined || width === undefined) return []
    const window = windowOf(layer)
    const length = (what: 'key' | 'value') =>
      (window > 0 ? values.number(`attention.${what}_length_swa`) : undefined) ??
      values.number(`attention.${what}_length`) ??
      width / heads
    const cachesValues = values.number('attention.key_length_mla') === undefined
    return [{ heads, kvHeads, keyLength: length('key'), valueLength: length('value'), window, cachesValues }]
  })
  if (shapes.length === 0) {
    unknown.push({
      what: 'model.decode.kv_read_bytes',
      why: `no layer of "${values.architecture}" is known to have attention with a KV cache`,
    })
  }
  return shapes
}

/** The window of a layer; 0: it attends to all positions. */
function windows(values: Values, unknown: UnknownOfModel[]): (layer: number) => number {
  const window = values.number('attention.sliding_window') ?? 0
  if (window === 0) return () => 0
  const pattern = values.get('attention.sliding_window_pattern')
  if (Array.isArray(pattern)) return (layer) => (pattern[layer] ? window : 0)
  const known = WINDOW_PERIODS[values.architecture]
  const period = typeof pattern === 'number' ? pattern : known?.period
  if (period !== undefined) {
    const full = known?.first ? 0 : period - 1
    return (layer) => (period === 0 || layer % period !== full ? window : 0)
  }
  unknown.push({
    what: 'model.decode.kv_read_bytes',
    why: `it is not known which layers of "${values.architecture}" have its window of ${window} positions: all are counted without one`,
  })
  return () => 0
}
