/** The part of a model that an operator belongs to. */
export type ModelBlock = 'attention' | 'FFN' | 'MoE' | 'norm' | 'embedding' | 'LM head' | 'copy' | 'other'

/** Ops that only move data. (SET_ROWS into a KV cache belongs to attention by its role.) */
const COPIES: ReadonlySet<string> = new Set(['CPY', 'DUP', 'CONT', 'CONCAT', 'REPEAT', 'PAD', 'SET', 'ACC'])

/** Patterns of roles ({@link parseTensorName}), in the names of llama.cpp's graph callback (src/llama-graph.cpp, src/models). */
const ROLES: readonly (readonly [ModelBlock, RegExp])[] = [
  ['LM head', /^(result_output|output(?!_norm)|lm_head|cls|result_embd)/],
  [
    'MoE',
    /^(ffn_moe|ffn_shexp|shared_expert|moe|exp_probs|ffn_(gate|up|down|gate_up)_(exps|shexp|inp)|ffn_(gate|up|down)\.\d)/,
  ],
  ['norm', /norm/],
  [
    'embedding',
    /^(inp_embd|inp_scaled|inp_pos|embd|token_embd|token_types|per_layer_token_embd|position_embd|pos_embd|embedding)/,
  ],
  ['FFN', /^(ffn|mlp|l_out_ffn)/],
  [
    'attention',
    /^([qkv](cur|_|$)|kq|qk|attn|cache_[kv]|wq|wk|wv|wo|self_|kv|rope|q_|k_|v_|Qcur|Kcur|Vcur|fattn|__fattn__)/i,
  ],
]

/** The block of an operator, from its role and its op, without `GGML_OP_`. */
export function blockOf(role: string, op: string): ModelBlock {
  if (op === 'FLASH_ATTN_EXT' || op === 'ROPE') return 'attention'
  if (op === 'MUL_MAT_ID') return 'MoE'
  for (const [block, pattern] of ROLES) if (pattern.test(role)) return block
  if (op === 'RMS_NORM' || op === 'NORM') return 'norm'
  return COPIES.has(op) ? 'copy' : 'other'
}
