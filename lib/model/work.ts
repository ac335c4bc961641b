import type { TensorEvent } from './events.ts'

/** The work of a node, computed from shapes and sizes. */
export interface Work {
  /** Floating-point operations of its matrix products; 0 for ops without any, -1 where shapes are not known. */
  readonly flop: number
  /** Bytes of the sources, each read once; -1 where sizes are not known. */
  readonly bytesRead: number
  /** Bytes of the result; -1 where the size is not known. */
  readonly bytesWritten: number
  /** The part of `bytesRead` for the weights of `expertsRead` experts. */
  readonly expertBytes: number
  /** MUL_MAT_ID: the number of experts in `expertBytes`; other ops: 0. */
  readonly expertsRead: number
  /** The chosen experts are not known: fewer may have been read than were counted. */
  readonly isUpperBound: boolean
}

type Sources = readonly (TensorEvent | undefined)[]

const count = (ne: readonly number[]): number => ne.reduce((product, n) => product * n, 1)

/**
 * Floating-point operations of a node, where a multiply-add counts as two; of matrix products only, as
 * llama.cpp's benchmark counts them (tests/test-backend-ops.cpp, `op_flops`). With ggml's dimensions, innermost
 * first:
 *
 * - MUL_MAT, MUL_MAT_ID: 2 × k for each element of the result; k = ne0 of either factor
 * - OUT_PROD: 2 × ne1 of the first factor, for each element of the result
 * - FLASH_ATTN_EXT: 2 × (head size of K + head size of V) × number of K's rows, for each row of each head of Q
 * - CONV_2D: 2 × kernel width × height × input channels, for each element of the result
 */
function flopOf(op: string, result: TensorEvent, [a, b, c]: Sources): number {
  switch (op) {
    case 'MUL_MAT':
    case 'MUL_MAT_ID':
      return a?.ne && result.ne ? 2 * a.ne[0]! * count(result.ne) : -1
    case 'OUT_PROD':
      return a?.ne && result.ne ? 2 * (a.ne[1] ?? 1) * count(result.ne) : -1
    case 'FLASH_ATTN_EXT':
      if (!a?.ne || !b?.ne || !c?.ne) return -1
      return 2 * (a.ne[0]! + c.ne[0]!) * (b.ne[1] ?? 1) * count(a.ne.slice(1))
    case 'CONV_2D':
      return a?.ne && result.ne ? 2 * count(a.ne.slice(0, 3)) * count(result.ne) : -1
    default:
      return 0
  }
}

/** Bytes of `elements` elements of a tensor's type, from the tensor's size: elements of quantised types have fractions of bytes. */
function bytesOf(tensor: TensorEvent, elements: number): number {
  const own = tensor.ne ? count(tensor.ne) : 0
  return own > 0 && tensor.sizeBytes >= 0 ? Math.round((tensor.sizeBytes * elements) / own) : -1
}

/** Number of elements of a source that the op reads. */
function elementsRead(op: string, source: number, result: TensorEvent, sources: Sources): number | undefined {
  if (op === 'GET_ROWS' && source === 0) return result.ne && count(result.ne)
  // The destination is a source, too, but is not read.
  if ((op === 'SET_ROWS' && source === 2) || (op === 'CPY' && source === 1)) return 0
  return sources[source]?.ne && count(sources[source].ne)
}

/** Bytes written: SET_ROWS and CPY write as many elements as their first source has. */
function bytesWritten(op: string, result: TensorEvent, [first]: Sources): number {
  if (op === 'SET_ROWS' || op === 'CPY') return first?.ne ? bytesOf(result, count(first.ne)) : -1
  return result.sizeBytes
}

/**
 * The work of one node. `sizeBytes` of a view that skips elements is its extent, not the size of its elements: such a source
 * is counted too high. `experts`: number of distinct experts that MUL_MAT_ID used; by default the maximum (the chosen ones
 * of each token, but at most all).
 */
export function workOf(
  op: string,
  result: TensorEvent,
  sources: readonly (TensorEvent | undefined)[],
  experts?: number,
): Work {
  const read = { bytes: 0, experts: 0, ofExperts: 0 }
  for (const [i, source] of sources.entries()) {
    if (!source) continue
    const elements = elementsRead(op, i, result, sources)
    let bytes = elements === undefined ? -1 : elements === 0 ? 0 : bytesOf(source, elements)
    if (bytes >= 0 && op === 'MUL_MAT_ID' && i === 0) {
      const all = source.ne?.[2] ?? 1
      read.experts = Math.min(all, experts ?? (result.ne?.[1] ?? all) * (result.ne?.[2] ?? 1))
      if (all > 0) bytes = (bytes / all) * read.experts // without experts, the weights have no bytes
      read.ofExperts = bytes
    }
    read.bytes = read.bytes < 0 || bytes < 0 ? -1 : read.bytes + bytes
  }
  return {
    flop: flopOf(op, result, sources),
    bytesRead: read.bytes,
    bytesWritten: bytesWritten(op, result, sources),
    expertBytes: read.ofExperts,
    expertsRead: read.experts,
    isUpperBound: op === 'MUL_MAT_ID' && experts === undefined && (result.ne?.[2] ?? 1) > 1,
  }
}
