/** Writes the header of a GGUF file, of either byte order and any version, for tests of the reader. */

type Scalar = number | bigint | string | boolean

/** An array of elements of a type; or one value, of another type than those that `ggufFile` writes for values of JavaScript. */
export type GgufTestValue =
  | Scalar
  | { readonly type: number; readonly values: readonly GgufTestValue[] }
  | { readonly type: number; readonly value: Scalar }

export interface GgufParts {
  readonly version?: number
  readonly bigEndian?: boolean
  readonly metadata?: Readonly<Record<string, GgufTestValue>>
  /** Keys with their values after those of `metadata`, for keys that are there twice. */
  readonly further?: readonly (readonly [string, GgufTestValue])[]
  /** Name, number of the type, elements per dimension, place. */
  readonly tensors?: readonly (readonly [string, number, readonly number[], number?])[]
}

/** A number in the header: a count, a length, a type, a dimension, a place. */
export interface GgufField {
  readonly at: number
  readonly size: 4 | 8
}

export const ggufFile = (parts: GgufParts): Uint8Array => ggufWithFields(parts).bytes

/** The file, and the numbers in it. */
export function ggufWithFields({
  version = 3,
  bigEndian = false,
  metadata = {},
  further = [],
  tensors = [],
}: GgufParts): {
  readonly bytes: Uint8Array
  readonly fields: readonly GgufField[]
} {
  const bytes: number[] = []
  const fields: GgufField[] = []
  const put = (size: number, set: (view: DataView, little: boolean) => void) => {
    if (size === 4 || size === 8) fields.push({ at: bytes.length, size })
    const part = new Uint8Array(size)
    set(new DataView(part.buffer), !bigEndian)
    bytes.push(...part)
  }
  const u32 = (value: number) => put(4, (view, little) => view.setUint32(0, value, little))
  const u64 = (value: number | bigint) => put(8, (view, little) => view.setBigUint64(0, BigInt(value), little))
  const size = version === 1 ? u32 : u64
  const text = (value: string) => {
    const utf8 = new TextEncoder().encode(value)
    size(utf8.length)
    bytes.push(...utf8)
  }
  const scalar = (type: number, value: Scalar) => {
    if (type === 8) text(String(value))
    else if (type === 7 || type === 0 || type === 1) bytes.push(Number(value) & 0xff)
    else if (type === 2 || type === 3) put(2, (view, little) => view.setUint16(0, Number(value), little))
    else if (type === 6) put(4, (view, little) => view.setFloat32(0, Number(value), little))
    else if (type === 10 || type === 11) u64(BigInt(value))
    else if (type === 12) put(8, (view, little) => view.setFloat64(0, Number(value), little))
    else u32(Number(value))
  }
  const typeOf = (value: GgufTestValue) => {
    if (typeof value === 'object') return 'values' in value ? 9 : value.type
    return typeof value === 'string' ? 8 : typeof value === 'boolean' ? 7 : 4
  }
  const content = (value: GgufTestValue, type = typeOf(value)) => {
    if (typeof value !== 'object') return scalar(type, value)
    if ('value' in value) return scalar(value.type, value.value)
    u32(value.type)
    size(value.values.length)
    for (const element of value.values) content(element, value.type)
  }
  bytes.push(...new TextEncoder().encode('GGUF'))
  u32(version)
  size(tensors.length)
  const entries = [...Object.entries(metadata), ...further]
  size(entries.length)
  for (const [key, value] of entries) {
    text(key)
    u32(typeOf(value))
    content(value)
  }
  for (const [name, type, ne, offset = 0] of tensors) {
    text(name)
    u32(ne.length)
    for (const n of ne) u64(n)
    u32(type)
    u64(offset)
  }
  return { bytes: new Uint8Array(bytes), fields }
}

/** A model of two layers, with experts, a window, and a type that is not known. */
export const SMALL_MODEL = {
  metadata: {
    'general.architecture': 'llama',
    'general.name': 'm',
    'general.alignment': 32,
    'llama.block_count': 2,
    'llama.nextn_predict_layers': 0,
    'llama.embedding_length': 64,
    'llama.context_length': 128,
    'llama.vocab_size': 100,
    'llama.attention.head_count': 4,
    'llama.attention.head_count_kv': { type: 5, values: [2, 2] },
    'llama.attention.key_length': 16,
    'llama.attention.sliding_window': 8,
    'llama.attention.sliding_window_pattern': 2,
    'llama.expert_count': 4,
    'llama.expert_used_count': 2,
    'tokenizer.ggml.tokens': { type: 8, values: ['a', 'b'] },
    nested: { type: 9, values: [{ type: 4, values: [1, 2] }] },
  },
  tensors: [
    ['token_embd.weight', 2, [64, 100], 0],
    ['blk.0.attn_norm.weight', 0, [64], 3616],
    ['blk.0.attn_q.weight', 2, [64, 64], 3904],
    ['blk.0.attn_k.weight', 2, [64, 32], 6208],
    ['blk.0.ffn_up_exps.weight', 0, [64, 32, 4], 7360],
    ['blk.1.attn_k.weight', 99, [64, 32], 40128],
    ['blk.1.attn_v.weight', 0, [64, 32], 48320],
  ],
} as const satisfies GgufParts
