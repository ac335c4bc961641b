/**
 * ggml's op numbers, by version. Numbers shift when an op is inserted: with the wrong table, a log without op names is
 * mislabelled. Names are `ggml_op` without the `GGML_OP_` prefix; index = number. Source: ggml/include/ggml.h of the
 * versions named.
 */
export interface OpTable {
  /** The value of `--op-table`. */
  readonly name: string
  /** Source of the numbers, in words. */
  readonly about: string
  readonly ops: readonly string[]
}

const UP_TO_IM2COL_3D = `NONE DUP ADD ADD_ID ADD1 ACC SUB MUL DIV SQR SQRT LOG SIN COS SUM SUM_ROWS CUMSUM MEAN ARGMAX
  COUNT_EQUAL REPEAT REPEAT_BACK CONCAT SILU_BACK NORM RMS_NORM RMS_NORM_BACK GROUP_NORM L2_NORM MUL_MAT MUL_MAT_ID
  OUT_PROD SCALE SET CPY CONT RESHAPE VIEW PERMUTE TRANSPOSE GET_ROWS GET_ROWS_BACK SET_ROWS DIAG DIAG_MASK_INF
  DIAG_MASK_ZERO SOFT_MAX SOFT_MAX_BACK ROPE ROPE_BACK CLAMP CONV_TRANSPOSE_1D IM2COL IM2COL_BACK IM2COL_3D`

const CONV_2D_TO_SOLVE_TRI = `CONV_2D CONV_3D CONV_2D_DW CONV_TRANSPOSE_2D POOL_1D POOL_2D POOL_2D_BACK UPSCALE PAD
  PAD_REFLECT_1D ROLL ARANGE TIMESTEP_EMBEDDING ARGSORT TOP_K LEAKY_RELU TRI FILL FLASH_ATTN_EXT FLASH_ATTN_BACK
  SSM_CONV SSM_SCAN WIN_PART WIN_UNPART GET_REL_POS ADD_REL_POS RWKV_WKV6 GATED_LINEAR_ATTN RWKV_WKV7 SOLVE_TRI`

const UNARY_TO_GLU = `UNARY MAP_CUSTOM1 MAP_CUSTOM2 MAP_CUSTOM3 CUSTOM CROSS_ENTROPY_LOSS CROSS_ENTROPY_LOSS_BACK
  OPT_STEP_ADAMW OPT_STEP_SGD GLU`

const table = (name: string, about: string, ...parts: string[]): OpTable => ({
  name,
  about,
  ops: parts.join(' ').split(/\s+/),
})

/** The known tables, newest first. */
export const OP_TABLES: readonly OpTable[] = [
  table(
    'v0.5.0',
    'llama.cpp v0.5.0 (2026-09)',
    UP_TO_IM2COL_3D,
    'COL2IM_1D',
    CONV_2D_TO_SOLVE_TRI,
    'GATED_DELTA_NET LIGHTNING_INDEXER DSV4_HC_COMB DSV4_HC_PRE DSV4_HC_POST',
    UNARY_TO_GLU,
  ),
  table(
    '2026-01',
    'llama.cpp of January 2026 (the TensorTrace logger)',
    UP_TO_IM2COL_3D,
    CONV_2D_TO_SOLVE_TRI,
    UNARY_TO_GLU,
  ),
]
