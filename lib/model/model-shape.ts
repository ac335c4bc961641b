/** A weight of a model. */
export interface Weight {
  /** In llama.cpp's names: `blk.3.attn_q.weight`. */
  readonly name: string
  /** ggml's name of the element type. */
  readonly type: string
  /** Elements per dimension, innermost first. */
  readonly ne: readonly number[]
  /** -1: not known. */
  readonly bytes: number
}

/** The attention of one layer. */
export interface AttentionShape {
  readonly heads: number
  readonly kvHeads: number
  /** Elements of a head's key and value. */
  readonly keyLength: number
  readonly valueLength: number
  /** It attends to so many of the last positions; 0: to all. */
  readonly window: number
  /** Are values cached separately? Of multi-head latent attention they are a part of the keys. */
  readonly cachesValues: boolean
}

/** A fact of a model that its description does not contain. */
export interface UnknownOfModel {
  readonly what: string
  readonly why: string
  readonly hint?: string | undefined
}

/** What a model is made of, from whatever describes it. null: not known. */
export interface ModelShape {
  readonly source: 'gguf' | 'config' | 'graph'
  readonly architecture: string | null
  readonly name: string | null
  readonly layers: number | null
  /** Elements of the embedding of a token. */
  readonly width: number | null
  readonly vocabulary: number | null
  /** Positions that it was trained with. */
  readonly contextLength: number | null
  /** Experts of a layer, and those used for a token; 0: it is not a mixture of experts. */
  readonly experts: number | null
  readonly expertsUsed: number | null
  /** One for each layer with attention; empty where it is not known. */
  readonly attention: readonly AttentionShape[]
  /** Types of the KV cache, where they were recorded. */
  readonly cacheTypes?: { readonly k: string; readonly v: string } | undefined
  readonly weights: readonly Weight[]
  readonly unknown: readonly UnknownOfModel[]
}

/** Largest number of layers; more are damage. Objects are made for each layer. */
export const LAYERS_MAX = 1 << 14
/** Largest size of a model: elements, positions, experts. */
export const SIZE_MAX = 2 ** 40

/** Is it a number of elements, of layers or of positions that a model can have? */
export const isModelSize = (value: unknown, max = SIZE_MAX): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max

/** Number of elements of a tensor. */
export const elementsOf = (ne: readonly number[]): number => ne.reduce((product, n) => product * n, 1)
