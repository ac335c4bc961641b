import { dictionary } from '../../model/dictionary.ts'
import {
  type AttentionShape,
  isModelSize,
  LAYERS_MAX,
  type ModelShape,
  type UnknownOfModel,
  type Weight,
} from '../../model/model-shape.ts'
import { plural } from '../../model/units.ts'
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
  /** Keys whose values no model has. */
  readonly impossible = new Set<string>()

  constructor(
    private readonly metadata: ReadonlyMap<string, GgufValue>,
    readonly architecture: string,
  ) {}

  get(key: string): GgufValue | undefined {
    return this.metadata.get(`${this.architecture}.${key}`)
  }

  number(key: string, max?: number): number | undefined {
    return this.possible(key, this.get(key), max)
  }

  /** Layers that compute a token; undefined: no number that a model can have. */
  get layers(): number | undefined {
    const all = this.number('block_count', LAYERS_MAX)
    return all && Math.max(0, all - (this.number('nextn_predict_layers') ?? 0))
  }

  /** The value of a layer: of an array, its element. */
  ofLayer(key: string, layer: number): number | undefined {
    const value = this.get(key)
    return this.possible(key, Array.isArray(value) ? value[layer] : value)
  }

  private possible(key: string, value: GgufValue | undefined, max?: number): number | undefined {
    if (isModelSize(value, max)) return value
    if (value !== undefined && typeof value !== 'object') this.impossible.add(`${this.architecture}.${key}`)
    return undefined
  }
}

/** Types that are not known are listed up to so many. */
const TYPES_SHOWN = 4

/** The model that a GGUF file contains. Keys are those of llama.cpp (src/llama-arch.cpp); ggml: docs/gguf.md. */
export function shapeOfGguf({ metadata, tensors, unknownTypes }: GgufHeader): ModelShape {
  const text = (key: string) => {
    const value = metadata.get(key)
    return typeof value === 'string' ? value : null
  }
  const architecture = text('general.architecture')
  const values = new Values(metadata, architecture ?? '')
  const unknown: UnknownOfModel[] = unknownTypes.slice(0, TYPES_SHOWN).map((number, i) => {
    const others = i === TYPES_SHOWN - 1 ? unknownTypes.length - TYPES_SHOWN : 0
    const types = others > 0 ? `type ${number} of ggml, as ${others} others, is` : `type ${number} of ggml is`
    const why = `${types} not known; the sizes of its tensors are the distances of their places in the file`
    return { what: 'model.by_type', why }
  })
  const tokens = metadata.get('tokenizer.ggml.tokens')
  const vocabulary = values.number('vocab_size') ?? (typeof tokens === 'object' ? tokens.length : undefined)
  const table = tensors.find(({ name }) => name === 'token_embd.weight')
  const used = values.get('expert_used_count')
  const eachUsed = Array.isArray(used) ? used.filter((size) => isModelSize(size)) : []
  const shape = {
    source: 'gguf' as const,
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
  for (const key of values.impossible)
    unknown.push({ what: 'model', why: `the file has a value of "${key}" that no model has: it is not used` })
  return shape
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
  let without = 0
  const shapes = layersWithAttention(tensors, values.layers ?? 0).flatMap((layer): AttentionShape[] => {
    const heads = values.ofLayer('attention.head_count', layer)
    const kvHeads =
      values.get('attention.head_count_kv') === undefined ? heads : values.ofLayer('attention.head_count_kv', layer)
    if (heads === 0) return []
    if (heads === undefined || kvHeads === undefined || width === undefined) {
      without++
      return []
    }
    const window = windowOf(layer)
    const length = (what: 'key' | 'value') =>
      (window > 0 ? values.number(`attention.${what}_length_swa`) : undefined) ??
      values.number(`attention.${what}_length`) ??
      Math.floor(width / heads) // as llama.cpp
    const cachesValues = values.number('attention.key_length_mla') === undefined
    return [{ heads, kvHeads, keyLength: length('key'), valueLength: length('value'), window, cachesValues }]
  })
  if (shapes.length === 0) {
    unknown.push({
      what: 'model.decode.kv_read_bytes',
      why: `no layer of "${values.architecture}" is known to have attention with a KV cache`,
    })
  } else if (without > 0) {
    const why = `the file does not contain the heads of ${plural(without, 'layer')} with attention, which are not counted`
    unknown.push({ what: 'model.decode.kv_read_bytes', why })
  }
  return shapes
}

/** The window of a layer; 0: it attends to all positions. */
function windows(values: Values, unknown: UnknownOfModel[]): (layer: number) => number {
  const window = values.number('attention.sliding_window') ?? 0
  if (window === 0) return () => 0
  const pattern = values.get('attention.sliding_window_pattern')
  if (Array.isArray(pattern) && pattern.length >= (values.layers ?? 0)) return (layer) => (pattern[layer] ? window : 0)
  const known = WINDOW_PERIODS[values.architecture]
  const period = isModelSize(pattern) ? pattern : known?.period
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
