import type { BufferEvent, TensorEvent } from './events.ts'
import type { Names } from './names.ts'

/**
 * The parts of a tensor's name. llama.cpp names weights `blk.<layer>.<role>`, KV caches `cache_k_l<layer>`, intermediate
 * results `<role>-<layer>`, and ggml appends ` (view)`, ` (reshaped)`, ` (permuted)`, ` (copy)` … to derived tensors
 * and calls unnamed nodes `node_<n>` and unnamed inputs `leaf_<n>` (llama.cpp: src/llama-arch.cpp, llama_context's
 * graph callback; ggml: ggml.c).
 */
export interface TensorName {
  /** The name without its layer number and without decorations; empty for unnamed nodes. */
  readonly role: string
  /** Layer number, or -1. */
  readonly layer: number
}

// bounded: ggml's names have 128 bytes at most
const DECORATIONS = /(?: \((?:view|reshaped|permuted|transposed|copy|cont|copy of [^)]*)\))*(?: \([a-z]*)?$/
/** The scheduler calls its copy of a tensor, an input of a split, `<backend>#<tensor>#<n>` (ggml-backend.cpp). */
const COPY = /^[^#]+#(.+)#\d+$/
const WEIGHT = /^blk\.(\d+)\.(.+)$/
const CACHE = /^(cache_[a-z]+)_l(\d+)$/
const RESULT = /^(.+)-(\d+)$/
/** ggml's names have 63 bytes (GGML_MAX_NAME); the patterns are slow on very long texts. */
const NAME_MAX = 256
const UNNAMED = /^(?:node|leaf)_\d+$/

/** The name of the tensor that a scheduler's copy is of; undefined: the name is none of such a copy. */
export const copiedName = (name: string): string | undefined => COPY.exec(name)?.[1]

/**
 * Splits a tensor's name into role and layer: of a scheduler's copy, those of what it copies. Names that a logger truncates (ProfInfer: 15 bytes) lack the layer, or
 * end within a decoration; the rest of either is dropped.
 */
export function parseTensorName(name: string): TensorName {
  if (name.length > NAME_MAX) return { role: name, layer: -1 }
  const bare = (copiedName(name) ?? name).replace(DECORATIONS, '')
  if (UNNAMED.test(bare)) return { role: '', layer: -1 }
  const weight = WEIGHT.exec(bare)
  if (weight) return { role: weight[2]!, layer: Number(weight[1]) }
  const match = CACHE.exec(bare) ?? RESULT.exec(bare)
  if (match) return { role: match[1]!, layer: Number(match[2]) }
  return { role: bare.replace(/-$/, ''), layer: -1 }
}

/** Is a tensor a weight of the model? `buffer`: its buffer. */
export function isWeight({ op, name }: TensorEvent, buffer: BufferEvent | undefined, names: Names): boolean {
  return buffer?.usage === 'weights' || (op === 0 && names.text(name).endsWith('.weight'))
}

/** `512×16`: number of elements per dimension, innermost first, without trailing ones. */
export function formatShape(ne: readonly number[]): string {
  let dimensions = ne.length
  while (dimensions > 1 && ne[dimensions - 1] === 1) dimensions--
  return ne.slice(0, dimensions).join('×')
}
