import { UsageError } from '../../errors.ts'
import { dictionary } from '../../model/dictionary.ts'
import { bytesOfType } from '../../model/ggml-types.ts'
import {
  type AttentionShape,
  elementsOf,
  isModelSize,
  LAYERS_MAX,
  type ModelShape,
  SIZE_MAX,
  type UnknownOfModel,
  type Weight,
} from '../../model/model-shape.ts'

/** Names of types in PyTorch, and in ggml. */
const TYPES: Readonly<Record<string, string>> = dictionary({ bfloat16: 'bf16', float16: 'f16', float32: 'f32' })

/** Is this a `config.json` of Hugging Face? */
export function isHfConfig(text: string): boolean {
  return (
    /^\s*\{/.test(text) &&
    /"(model_type|architectures)"\s*:/.test(text) &&
    !/"(?:traceEvents|build_commit)"\s*:/.test(text)
  )
}

/** The values of a config, by the first of several keys that it contains. null is as if a key were missing; a value of another kind is an error. */
class Config {
  constructor(
    private readonly values: Readonly<Record<string, unknown>>,
    private readonly name: string,
  ) {}

  /** Is there one of these keys? */
  has(key: string): boolean {
    return this.find([key]) !== undefined
  }

  number(key: string, also = key, min = 1, max = SIZE_MAX): number {
    return this.optional([key, also], min, max) ?? this.refuse(key, `a whole number from ${min} to ${max}`)
  }

  optional(keys: readonly string[], min = 0, max = SIZE_MAX): number | undefined {
    const isOf = (value: unknown) => isModelSize(value, max) && value >= min
    return this.of(keys, isOf, `a whole number from ${min} to ${max}`) as number | undefined
  }

  text(...keys: readonly string[]): string | undefined {
    return this.of(keys, (value) => typeof value === 'string', 'a text') as string | undefined
  }

  flag(key: string): boolean | undefined {
    return this.of([key], (value) => typeof value === 'boolean', 'true or false') as boolean | undefined
  }

  list(key: string): readonly unknown[] | undefined {
    return this.of([key], Array.isArray, 'an array') as readonly unknown[] | undefined
  }

  /** Throws UsageError for the value of a key. */
  refuse(key: string, expected: string): never {
    throw new UsageError(`${this.name}: expected ${expected} for "${key}"`)
  }

  private of(keys: readonly string[], isOf: (value: unknown) => boolean, expected: string): unknown {
    const key = this.find(keys)
    if (key === undefined || isOf(this.values[key])) return key && this.values[key]
    return this.refuse(key, expected)
  }

  private find(keys: readonly string[]): string | undefined {
    return keys.find((key) => Object.hasOwn(this.values, key) && this.values[key] != null)
  }
}

/**
 * The model that a `config.json` of Hugging Face describes: the weights that its family has at these sizes, in llama.cpp's names.
 * Throws UsageError for a family that is not known.
 */
export function shapeOfConfig(text: string, name: string): ModelShape {
  const json = parse(text, name)
  // Models for images and texts have the language model's values in an object.
  const inner = json['text_config']
  const values = typeof inner === 'object' && inner !== null ? { ...json, ...inner } : json
  const config = new Config(values, name)
  const type = config.text('model_type') ?? ''
  const family = Object.hasOwn(FAMILIES, type) ? FAMILIES[type] : undefined
  if (!family) {
    throw new UsageError(
      `${name}: the model type ${JSON.stringify(type.slice(0, TYPE_LENGTH_MAX))} is not known; known ones: ${KNOWN_FAMILIES.join(', ')}\n` +
        'hint: give the GGUF of the model, or --flops-per-token',
    )
  }
  return new Shape(config, family, type).build(config.text('_name_or_path') || null)
}

const TYPE_LENGTH_MAX = 40

function parse(text: string, name: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (error) {
    throw new UsageError(`${name}: not valid JSON: ${(error as Error).message.replaceAll('\n', '\\n')}`)
  }
}

/** Makes the weights of one model. */
class Shape {
  private readonly weights: Weight[] = []
  private readonly unknown: UnknownOfModel[] = []
  private readonly type: string
  private readonly width: number
  private readonly layers: number
  private readonly heads: number
  private readonly kvHeads: number
  private readonly head: number
  private readonly experts: number

  constructor(
    private readonly config: Config,
    private readonly family: Family,
    private readonly architecture: string,
  ) {
    this.width = config.number('hidden_size', 'n_embd')
    this.layers = config.number('num_hidden_layers', 'n_layer', 1, LAYERS_MAX)
    this.heads = config.number('num_attention_heads', 'n_head')
    this.kvHeads = config.optional(['num_key_value_heads'], 1, this.heads) ?? this.heads
    this.head = config.optional(['head_dim'], 1) ?? this.width / this.heads
    if (!Number.isInteger(this.head)) config.refuse('hidden_size', `a multiple of the ${this.heads} attention heads`)
    this.experts = family.moe ? config.number('num_local_experts', 'num_experts', 0) : 0
    const dtype = config.text('torch_dtype', 'dtype') ?? ''
    const isQuantised = config.has('quantization_config')
    this.type = isQuantised ? 'quantised' : (TYPES[dtype] ?? (dtype || 'unknown'))
    if (bytesOfType(this.type, 1) < 0) {
      const why = isQuantised
        ? 'the weights are quantised; config.json does not contain their sizes'
        : `config.json contains no known type of the weights (torch_dtype: "${dtype}")`
      this.unknown.push({ what: 'model.bytes', why, hint: 'give the GGUF of the model' })
    }
  }

  build(name: string | null): ModelShape {
    const { config, family, width } = this
    const vocabulary = config.number('vocab_size')
    const contextLength = config.optional(['max_position_embeddings', 'n_positions', 'n_ctx']) ?? null
    this.add('token_embd.weight', width, vocabulary)
    if (family.positions) this.add('position_embd.weight', width, contextLength ?? 0)
    for (let layer = 0; layer < this.layers; layer++) this.layer(layer)
    this.norm('output_norm')
    const isTied = config.flag('tie_word_embeddings') ?? family.isTied ?? false
    if (!isTied) this.add('output.weight', width, vocabulary)
    if (family.headBias) this.add('output.bias', vocabulary)
    return {
      source: 'config',
      architecture: this.architecture,
      name,
      layers: this.layers,
      width,
      vocabulary,
      contextLength,
      experts: this.experts,
      expertsUsed: family.moe ? config.number('num_experts_per_tok', undefined, 0) : 0,
      attention: Array.from({ length: this.layers }, (_, layer) => this.attention(layer)),
      weights: this.weights,
      unknown: this.unknown,
    }
  }

  private add(name: string, ...ne: readonly number[]): void {
    this.weights.push({ name, type: this.type, ne, bytes: bytesOfType(this.type, elementsOf(ne)) })
  }

  private norm(name: string, size = this.width): void {
    this.add(`${name}.weight`, size)
    if (this.family.normBias) this.add(`${name}.bias`, size)
  }

  private matrix(name: string, from: number, to: number, hasBias = false): void {
    this.add(`${name}.weight`, from, to)
    if (hasBias) this.add(`${name}.bias`, to)
  }

  private layer(layer: number): void {
    const { config, family, width, head } = this
    const nameOf = (name: string) => `blk.${layer}.${name}`
    const names = ['attn_norm', 'ffn_norm', 'post_attention_norm', 'post_ffw_norm'].slice(0, family.norms ?? 2)
    for (const name of names) this.norm(nameOf(name))
    const bias = family.qkvBias ?? config.flag('attention_bias') ?? false
    this.matrix(nameOf('attn_q'), width, head * this.heads, bias)
    this.matrix(nameOf('attn_k'), width, head * this.kvHeads, bias)
    this.matrix(nameOf('attn_v'), width, head * this.kvHeads, bias)
    this.matrix(nameOf('attn_output'), head * this.heads, width, family.outputBias ?? (!family.qkvBias && bias))
    if (family.qkNorm) for (const name of ['attn_q_norm', 'attn_k_norm']) this.norm(nameOf(name), head)
    if (this.isSparse(layer)) this.sparse(nameOf)
    else this.dense(nameOf, '', config.optional(['intermediate_size', 'n_inner'], 1) ?? 4 * width)
  }

  /** Some layers of a mixture of experts are dense. */
  private isSparse(layer: number): boolean {
    const { config, experts } = this
    if (config.list('mlp_only_layers')?.includes(layer)) return false
    return experts > 0 && (layer + 1) % (config.optional(['decoder_sparse_step']) || 1) === 0
  }

  private dense(nameOf: (name: string) => string, ending: string, size: number): void {
    const { family, width, config } = this
    const bias = family.ffnBias ?? config.flag('mlp_bias') ?? false
    if (family.gated ?? true) this.matrix(nameOf(`ffn_gate${ending}`), width, size, bias)
    this.matrix(nameOf(`ffn_up${ending}`), width, size, bias)
    this.matrix(nameOf(`ffn_down${ending}`), size, width, bias)
  }

  private sparse(nameOf: (name: string) => string): void {
    const { config, width, experts, family } = this
    const size = config.number(family.moe === 'mixtral' ? 'intermediate_size' : 'moe_intermediate_size')
    this.matrix(nameOf('ffn_gate_inp'), width, experts)
    this.add(nameOf('ffn_gate_exps.weight'), width, size, experts)
    this.add(nameOf('ffn_up_exps.weight'), width, size, experts)
    this.add(nameOf('ffn_down_exps.weight'), size, width, experts)
    if (family.moe !== 'qwen2') return
    this.dense(nameOf, '_shexp', config.number('shared_expert_intermediate_size'))
    this.matrix(nameOf('ffn_gate_inp_shexp'), width, 1)
  }

  private attention(layer: number): AttentionShape {
    const { heads, kvHeads, head } = this
    return { heads, kvHeads, keyLength: head, valueLength: head, window: this.window(layer), cachesValues: true }
  }

  private window(layer: number): number {
    const { config, family } = this
    const window = config.optional(['sliding_window']) ?? 0
    const types = config.list('layer_types')
    if (types && types.length < this.layers) config.refuse('layer_types', `an array of ${this.layers}`)
    if (types) return types[layer] === 'sliding_attention' ? window : 0
    if (config.flag('use_sliding_window') === false || family.windows === undefined) return 0
    if (family.windows === 'all') return window
    const period = config.optional(['sliding_window_pattern'], 1) ?? family.windows
    return layer % period < period - 1 ? window : 0
  }
}

/** How the layers of a family of models differ from llama's. Sources: src/transformers/models/<model_type> of Hugging Face. */
interface Family {
  /** Biases of query, key and value; of the output of attention; of the FFN; of the LM head. */
  readonly qkvBias?: boolean
  readonly outputBias?: boolean
  readonly ffnBias?: boolean
  readonly headBias?: boolean
  /** Norms of the heads of query and key. */
  readonly qkNorm?: boolean
  /** Norms of a layer; llama has 2. */
  readonly norms?: number
  /** Norms have biases (LayerNorm). */
  readonly normBias?: boolean
  /** The FFN has a gate; llama's has one. */
  readonly gated?: boolean
  /** Query, key and value in one matrix, gate and up too: it changes names only. */
  readonly isTied?: boolean
  /** Positions have a table of embeddings. */
  readonly positions?: boolean
  /** Layers with a sliding window, where the file does not list them: all, or all but each n-th. */
  readonly windows?: 'all' | number
  readonly moe?: 'mixtral' | 'qwen2' | 'qwen3'
}

/** By `model_type` of config.json. */
const FAMILIES: Readonly<Record<string, Family>> = {
  llama: {},
  mistral: { windows: 'all' },
  mixtral: { moe: 'mixtral', windows: 'all' },
  qwen2: { qkvBias: true },
  qwen2_moe: { qkvBias: true, moe: 'qwen2' },
  qwen3: { qkNorm: true },
  qwen3_moe: { qkNorm: true, moe: 'qwen3' },
  gemma: { isTied: true },
  gemma2: { isTied: true, norms: 4, windows: 2 },
  gemma3_text: { isTied: true, norms: 4, qkNorm: true, windows: 6 },
  phi: { qkvBias: true, outputBias: true, ffnBias: true, headBias: true, norms: 1, normBias: true, gated: false },
  phi3: { windows: 'all' },
  gpt2: {
    ...{ qkvBias: true, outputBias: true, ffnBias: true, normBias: true },
    ...{ gated: false, isTied: true, positions: true },
  },
}

/** The model types that are known. */
const KNOWN_FAMILIES: readonly string[] = Object.keys(FAMILIES)
