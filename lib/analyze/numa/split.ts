import type { TensorEvent } from '../../model/events.ts'

/** Rows of a piece of a product with one column (`ggml_compute_forward_mul_mat`). */
const PIECE = 64
/** It makes one piece for each worker where there are fewer than so many for each. */
const PIECES_EACH = 4
/** Types of which other kernels compute products with several columns: their workers take pieces, whatever the nodes. */
const OTHER_KERNELS = /^(f32|f16|bf16|q8_0|q4_0|q5_0|iq)/
/** Rows that repacked weights interleave: pieces begin at a multiple. */
const REPACKED_ROWS = 8

/** How ggml computes. */
export interface Computing {
  /** It knows of several nodes (`ggml_is_numa`): each worker gets the same rows each time. */
  readonly isNuma: boolean
  readonly isRepacked: boolean
  /** Of the weight. */
  readonly type: string
}

/**
 * The rows of a weight at which the parts of the workers of a product begin, and its end. Undefined: a worker takes the next piece when it is
 * done, so that the log does not contain which ones it read, or each worker reads all rows.
 */
export function rowsOf(weight: TensorEvent, columns: number, workers: number, of: Computing): number[] | undefined {
  const rows = weight.ne?.[1] ?? 0
  if (rows === 0) return undefined
  if (workers === 1) return [0, rows]
  const each = Math.ceil(rows / workers)
  const isEven = of.isRepacked
    ? of.isNuma && each >= REPACKED_ROWS
    : (of.isNuma || Math.ceil(rows / PIECE) < workers * PIECES_EACH) &&
      rows > columns &&
      (columns === 1 || (of.isNuma && !OTHER_KERNELS.test(of.type)))
  if (!isEven) return undefined
  const multiple = of.isRepacked ? REPACKED_ROWS : 1
  return Array.from({ length: workers + 1 }, (_, i) => Math.min(rows, Math.ceil((i * each) / multiple) * multiple))
}
