/** How the layers of a family of models differ from llama's. Sources: src/transformers/models/<model_type> of Hugging Face. */
export interface Family {
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
export const FAMILIES: Readonly<Record<string, Family>> = {
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
export const KNOWN_FAMILIES: readonly string[] = Object.keys(FAMILIES)
