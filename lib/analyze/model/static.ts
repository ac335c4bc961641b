import { UsageError } from '../../errors.ts'
import type { ModelBlock } from '../../model/blocks.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { bytesOfType } from '../../model/ggml-types.ts'
import type { AttentionShape, ModelShape, UnknownOfModel } from '../../model/model-shape.ts'
import { orNull } from '../../model/units.ts'
import { plus } from '../graph/work.ts'
import type { AttentionFigures, ContextFunction, DecodeFigures, ModelAtContext, ModelFigures } from './figures.ts'
import { isTied, type UsedWeight, usedWeights } from './weights.ts'

/** Lengths at which functions are evaluated, up to the model's. */
const CONTEXTS = [1, 512, 4096, 32_768, 131_072]

/** Sums of some weights; bytes are -1 where those of one are not known. */
class Sum {
  tensors = 0
  parameters = 0
  bytes = 0
  flop = 0

  add({ weight, parameters, isMatrix }: UsedWeight, share: number): void {
    this.tensors++
    this.parameters += parameters * share
    this.bytes = plus(this.bytes, weight.bytes < 0 ? -1 : weight.bytes * share)
    if (isMatrix) this.flop += 2 * parameters * share
  }
}

/** Options of {@link modelFigures}. */
export interface StaticOptions {
  /** Types of the KV cache; by default those that were recorded, or f16. */
  readonly cacheTypes?: { readonly k: string; readonly v: string } | undefined
}

/** Throws UsageError for a type of the cache that is not known. */
export function checkCacheTypes({ cacheTypes }: StaticOptions): void {
  const wrong = cacheTypes && [cacheTypes.k, cacheTypes.v].find((type) => bytesOfType(type, 1) < 0)
  if (wrong !== undefined) throw new UsageError(`cache type: "${wrong}" is not a type of ggml, such as f16 or q8_0`)
}

/** Computes what a model contains and what a token costs. Also returns what cannot be determined. */
export function modelFigures(
  shape: ModelShape,
  { cacheTypes }: StaticOptions = {},
): { readonly model: ModelFigures; readonly undetermined: UnknownOfModel[] } {
  const undetermined = [...shape.unknown]
  const used = usedWeights(shape)
  const inFile = used.slice(0, shape.weights.length)
  const all = sumOf(inFile, () => 1)
  const decode = decodeOf(shape, used, cacheTypes, undetermined)
  undetermined.push({
    what: 'model.activations',
    why: 'sizes of results and their places are decided when the graph is built',
    hint: 'add a log of a run with operators',
  })
  const { source, architecture, name, layers, width, vocabulary } = shape
  const model: ModelFigures = {
    ...{ source, architecture, name, layers, width, vocabulary },
    context_length: shape.contextLength,
    experts: shape.experts,
    experts_used: shape.expertsUsed,
    attention: layersOf(shape.attention),
    parameters: all.parameters,
    active_parameters: sumOf(inFile, headOf(used)).parameters,
    bytes: orNull(all.bytes),
    by_type: groups(inFile, ({ weight }) => weight.type).map(([type, sum]) => ({ type, ...sum })),
    by_block: groups(inFile, ({ block }) => block).map(([block, sum]) => ({ block, ...sum })),
    decode,
    at: contextsOf(shape.contextLength).map((context) => contextFigures(decode, context)),
    activations: null,
    recorded_matmul_weight_bytes: null,
  }
  return { model, undetermined }
}

/** Shares of weights, where a table that is also the head is used as a whole. */
function headOf(used: readonly UsedWeight[]): (weight: UsedWeight) => number {
  const whole = new Set(used.filter(({ share }) => share === 1).map(({ weight }) => weight))
  return ({ weight, share }) => (whole.has(weight) ? 1 : share)
}

function sumOf(weights: readonly UsedWeight[], share: (weight: UsedWeight) => number): Sum {
  const sum = new Sum()
  for (const weight of weights) sum.add(weight, share(weight))
  return sum
}

function groups<K>(weights: readonly UsedWeight[], keyOf: (weight: UsedWeight) => K) {
  const sums = new DefaultMap<K, Sum>(() => new Sum())
  for (const weight of weights) sums.of(keyOf(weight)).add(weight, 1)
  return [...sums]
    .sort(([, a], [, b]) => b.bytes - a.bytes || b.parameters - a.parameters)
    .map(([key, { tensors, parameters, bytes }]) => [key, { tensors, parameters, bytes: orNull(bytes) }] as const)
}

function decodeOf(
  shape: ModelShape,
  used: readonly UsedWeight[],
  cacheTypes: StaticOptions['cacheTypes'],
  undetermined: UnknownOfModel[],
): DecodeFigures {
  const sumWhere = (is: (weight: UsedWeight) => boolean) => sumOf(used.filter(is), ({ share }) => share)
  const matrices = sumWhere(({ isMatrix }) => isMatrix)
  const tables = sumWhere(({ share, isMatrix, block }) => block === 'embedding' && !isMatrix && share > 0 && share < 1)
  const blocks = new DefaultMap<ModelBlock, Sum>(() => new Sum())
  for (const weight of used) if (weight.share > 0) blocks.of(weight.block).add(weight, weight.share)
  const cache = cacheOf(shape, cacheTypes)
  if (used.some(({ weight }) => /\.(ssm_|time_mix_|shortconv)/.test(weight.name))) {
    const why = 'the state of recurrent layers is read and written for each token; its size is not computed'
    undetermined.push({ what: 'model.decode.state_bytes', why })
  }
  const attention = shape.attention
  return {
    weight_bytes: orNull(sumWhere(({ share }) => share > 0).bytes),
    matmul_weight_bytes: orNull(matrices.bytes),
    embedding_bytes: orNull(tables.bytes),
    is_head_tied: isTied(shape),
    kv_cache: cache && { ...cache, is_assumed: !(cacheTypes ?? shape.cacheTypes) },
    kv_read_bytes: cache && perPosition(attention, 0, (layer) => rowBytes(layer, cache)),
    kv_written_bytes: cache && attention.reduce((sum, layer) => sum + rowBytes(layer, cache), 0),
    flop:
      attention.length === 0
        ? null
        : perPosition(
            attention,
            matrices.flop,
            ({ heads, keyLength, valueLength }) => 2 * heads * (keyLength + valueLength),
          ),
    lm_head_flop: blocks.get('LM head')?.flop ?? 0,
    by_block: [...blocks]
      .map(([block, { bytes, flop }]) => ({ block, weight_bytes: orNull(bytes), flop }))
      .sort((a, b) => (b.weight_bytes ?? 0) - (a.weight_bytes ?? 0)),
  }
}

interface CacheTypes {
  readonly k: string
  readonly v: string
}

/** llama.cpp's default is f16 (llama_context_default_params). */
function cacheOf(shape: ModelShape, given: CacheTypes | undefined): CacheTypes | null {
  if (shape.attention.length === 0) return null
  const types = given ?? shape.cacheTypes ?? { k: 'f16', v: 'f16' }
  return bytesOfType(types.k, 1) < 0 || bytesOfType(types.v, 1) < 0 ? null : types
}

/** Bytes of one position in the cache of a layer. */
function rowBytes({ kvHeads, keyLength, valueLength, cachesValues }: AttentionShape, { k, v }: CacheTypes): number {
  return bytesOfType(k, kvHeads * keyLength) + (cachesValues ? bytesOfType(v, kvHeads * valueLength) : 0)
}

function perPosition(
  attention: readonly AttentionShape[],
  constant: number,
  figureOf: (layer: AttentionShape) => number,
): ContextFunction {
  const sums = new DefaultMap<number, { sum: number }>(() => ({ sum: 0 }))
  for (const layer of attention) sums.of(layer.window).sum += figureOf(layer)
  const { sum: unlimited = 0 } = sums.get(0) ?? {}
  sums.delete(0)
  const windows = [...sums].map(([window, { sum }]) => ({ window, per_position: sum }))
  return { constant, per_position: unlimited, windows }
}

function layersOf(attention: readonly AttentionShape[]): AttentionFigures[] {
  const counts = new Map<string, AttentionFigures>()
  for (const { heads, kvHeads, keyLength, valueLength, window } of attention) {
    const key = [heads, kvHeads, keyLength, valueLength, window].join()
    const layers = (counts.get(key)?.layers ?? 0) + 1
    const lengths = { key_length: keyLength, value_length: valueLength }
    counts.set(key, { layers, heads, kv_heads: kvHeads, ...lengths, window })
  }
  return [...counts.values()]
}

function contextsOf(max: number | null): number[] {
  if (max === null) return CONTEXTS.slice(0, 4)
  return [...CONTEXTS.filter((context) => context < max), max]
}

/** A cost at a length of the context. */
export function costAt({ constant, per_position, windows }: ContextFunction, context: number): number {
  return windows.reduce(
    (sum, { window, per_position }) => sum + per_position * Math.min(context, window),
    constant + per_position * context,
  )
}

/** Sum of a cost over the contexts 1 to n: a prefill of n tokens with causal attention. */
export function costUpTo({ constant, per_position, windows }: ContextFunction, n: number): number {
  const sumTo = (m: number) => (m * (m + 1)) / 2
  const windowed = windows.reduce((sum, { window, per_position }) => {
    const m = Math.min(n, window)
    return sum + per_position * (sumTo(m) + (n - m) * window)
  }, 0)
  return constant * n + per_position * sumTo(n) + windowed
}

/** FLOP of a prefill of n tokens into an empty context: the LM head computes the last one only. */
export function prefillFlop({ flop, lm_head_flop }: DecodeFigures, n: number): number | null {
  return flop && costUpTo(flop, n) - (n - 1) * lm_head_flop
}

/** Bytes that a token of decode reads and writes in memory: weights and KV cache. */
export function decodeBytes(
  { weight_bytes, kv_read_bytes, kv_written_bytes }: DecodeFigures,
  n: number,
): number | null {
  if (weight_bytes === null || kv_read_bytes === null || kv_written_bytes === null) return null
  return weight_bytes + costAt(kv_read_bytes, n) + kv_written_bytes
}

function contextFigures(decode: DecodeFigures, context: number): ModelAtContext {
  const bytes = decodeBytes(decode, context)
  const flop = decode.flop && costAt(decode.flop, context)
  return {
    context,
    decode_bytes: bytes,
    decode_flop: flop,
    decode_intensity: bytes && flop && flop / bytes,
    prefill_flop: prefillFlop(decode, context),
  }
}
