import { DefaultMap } from '../../model/default-map.ts'
import type { TensorEvent } from '../../model/events.ts'
import type { AttentionShape, ModelShape, Weight } from '../../model/model-shape.ts'
import type { Names } from '../../model/names.ts'
import { parseTensorName } from '../../model/tensors.ts'
import type { Defined } from '../graph/defined.ts'

/**
 * The model, from the tensors of a graph: weights are those that operators read, sizes of heads are those of attention (FLASH_ATTN_EXT, or
 * the products KQ and KQV), experts those of MUL_MAT_ID. undefined where the log contains no weights with shapes.
 */
export function shapeOfGraph({ tensors, names, isWeight }: Defined): ModelShape | undefined {
  const weights = new Map<string, Weight>()
  for (const tensor of tensors) {
    if (!tensor?.ne || !isWeight(tensor)) continue
    const name = names.text(tensor.name)
    weights.set(name, { name, type: names.text(tensor.type), ne: tensor.ne, bytes: tensor.sizeBytes })
  }
  if (weights.size === 0) return undefined
  const all = [...weights.values()]
  const layers = Math.max(-1, ...all.map(({ name }) => parseTensorName(name).layer)) + 1
  const table = weights.get('token_embd.weight') ?? weights.get('output.weight')
  const attention = attentionOf(tensors, names)
  const moe = tensors.find((tensor) => tensor && names.text(tensor.op) === 'MUL_MAT_ID')
  const [stack, , ids] = moe?.sources.map((source) => tensors[source]) ?? []
  return {
    source: 'graph',
    architecture: null,
    name: null,
    layers,
    width: table?.ne[0] ?? null,
    vocabulary: table?.ne[1] ?? null,
    contextLength: null,
    experts: moe ? (stack?.ne?.[2] ?? null) : 0,
    expertsUsed: moe ? (ids?.ne?.[0] ?? null) : 0,
    ...attention,
    weights: all,
    unknown: [
      {
        what: 'model.architecture',
        why: 'a recorded graph contains neither architecture nor name nor trained context of its model',
        hint: 'give the GGUF too: ggml2perfetto stats run.ggtrace model.gguf',
      },
      {
        what: 'model.attention',
        why: 'a recorded graph does not say which layers have a sliding window: all are counted without one',
      },
    ],
  }
}

/** Sources of attention: query, key and value, each with the size of a head and the number of heads. */
function attentionOf(tensors: readonly TensorEvent[], names: Names): Pick<ModelShape, 'attention' | 'cacheTypes'> {
  const layers = new DefaultMap<number, { -readonly [K in keyof AttentionShape]?: AttentionShape[K] }>(() => ({}))
  let [k, v] = ['', '']
  const text = (id: number | undefined) => names.text(id ?? 0)
  for (const tensor of tensors) {
    if (!tensor?.ne) continue
    const op = text(tensor.op)
    const { role, layer: named } = parseTensorName(text(tensor.name))
    const [first, second, third] = tensor.sources.map((source) => tensors[source])
    // FLASH_ATTN_EXT has no name: its keys are a view of `cache_k_l<layer>`.
    const ofKeys = second ? parseTensorName(text(second.name)).layer : -1
    const layer = [tensor.layer, named, ofKeys].find((layer) => layer >= 0) ?? -1
    if (op === 'FLASH_ATTN_EXT' && first?.ne && second?.ne && third?.ne) {
      const [query, key, value] = [first.ne, second.ne, third.ne]
      const lengths = { keyLength: key[0]!, valueLength: value[0]! }
      layers.set(layer, { heads: query[2] ?? 1, kvHeads: key[2] ?? 1, ...lengths })
      ;[k, v] = [text(second.type), text(third.type)]
    } else if (op === 'MUL_MAT' && role === 'kq' && first?.ne && second?.ne) {
      Object.assign(layers.of(layer), { heads: second.ne[2] ?? 1, kvHeads: first.ne[2] ?? 1, keyLength: first.ne[0] })
      k = text(first.type)
    } else if (op === 'MUL_MAT' && role === 'kqv' && first?.ne) {
      layers.of(layer).valueLength = first.ne[1] ?? 1
      v = text(first.type)
    }
  }
  const attention = [...layers.values()].flatMap(({ heads, kvHeads, keyLength, valueLength }) =>
    heads && kvHeads && keyLength && valueLength
      ? [{ heads, kvHeads, keyLength, valueLength, window: 0, cachesValues: true }]
      : [],
  )
  return { attention, cacheTypes: k && v ? { k, v } : undefined }
}
