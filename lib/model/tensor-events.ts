import {
  type Bounds,
  orUnknown,
  outOfRange,
  type Wrong,
  wrongAmount,
  wrongNumber,
  wrongSpan,
  wrongTime,
} from './bounds.ts'
import { ID_MAX } from './limits.ts'

/** Contents of a ggml backend buffer. `weights` is the model file itself: offsets in it are GGUF file offsets. */
export type BufferUsage = 'weights' | 'kv-cache' | 'compute' | 'other'

/** A backend buffer, or the model file: defined once, before its first tensor. */
export interface BufferEvent {
  readonly kind: 'buffer'
  /** Small integer, unique in the input. */
  readonly id: number
  readonly usage: BufferUsage
  /** The logger's id of the buffer, such as the address of the ggml_backend_buffer. */
  readonly label: string
  /** The origin of offsets in this buffer, in words, for the track's description. */
  readonly offsetsFrom: string
  /** Name of the buffer, if recorded. */
  readonly name?: number | undefined
  /** Of weights: path of the file that it maps, or from which they were copied; if recorded. */
  readonly file?: number | undefined
  /** Address of its first byte, if recorded. */
  readonly address?: number | undefined
  /** Size of the buffer, if recorded. */
  readonly sizeBytes?: number | undefined
}

/** A tensor as ggml knows it, defined once before its first use: a node of the graph, a weight or an input. */
export interface TensorEvent {
  readonly kind: 'tensor'
  /** Small integer, unique in the input. A tensor with another shape, address or op has another id. */
  readonly id: number
  readonly name: number
  /** -1: in no layer, or not recorded. */
  readonly layer: number
  /** Name of the op that computes it, without `GGML_OP_`; 0 for leaves. */
  readonly op: number
  /** Name of the element type; 0 = not recorded. */
  readonly type: number
  /** Number of elements per dimension, innermost first, as in ggml. */
  readonly ne: readonly number[] | undefined
  /** Ids of the sources, in order; defined earlier. */
  readonly sources: readonly number[]
  /** Id of the tensor that this one is a view of (ggml's `view_src`), if recorded. */
  readonly viewOf?: number | undefined
  /** -1 = not recorded. */
  readonly sizeBytes: number
  /** Buffer id, or -1. */
  readonly buffer: number
  /** Byte offset in the buffer (weights: in the GGUF file), where known; below 0 where the buffer's base is inferred. */
  readonly offset: number | undefined
  /** Address of the data, or 0. */
  readonly address: number
  /** Address of the `ggml_tensor` struct, or 0: it identifies the tensor, and is not the address of its data. */
  readonly structAddress: number
  /** {@link Inferred} bits. */
  readonly inferred: number
}

/** A transfer of a tensor's data: read from a buffer (get), written into one (set), or copied between two. */
export interface CopyEvent {
  readonly kind: 'copy'
  readonly what: 'get' | 'set' | 'copy'
  readonly startNs: number
  readonly endNs: number
  readonly bytes: number
  /** Names of the buffers; 0 is memory outside of backend buffers. */
  readonly from: number
  readonly to: number
  /** Tensor id, or -1. */
  readonly tensor: number
  readonly tid: number
}

/** A backend buffer was allocated or freed. */
export interface AllocationEvent {
  readonly kind: 'allocation'
  /** Name of the buffer type, shared by all its buffers. */
  readonly buffer: number
  readonly atNs: number
  /** Below 0 if it was freed. */
  readonly bytes: number
  /** It was allocated at an unknown time before `atNs`, at which the log begins: in the middle of the run. */
  readonly isEarlier?: boolean
}

/** Their ranges. */
export const TENSOR_BOUNDS: Bounds<BufferEvent | TensorEvent | CopyEvent | AllocationEvent> = {
  // The buffer stays, as tensors are in it.
  buffer: (event) => {
    const size = orUnknown('sizeBytes', event.sizeBytes ?? 0)
    return (
      wrongNumber('id', event.id, ID_MAX) ??
      (size && { ...size, instead: { sizeBytes: undefined } }) ??
      wrongAmount(event)
    )
  },
  tensor: (event) =>
    wrongNumber('id', event.id, ID_MAX) ?? orUnknown('layer', event.layer) ?? wrongSize(event) ?? wrongAmount(event),
  copy: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    orUnknown('tid', event.tid) ??
    orUnknown('tensor', event.tensor, ID_MAX) ??
    wrongAmount(event),
  allocation: (event) => wrongTime(event.atNs) ?? wrongAmount(event),
}

/** Elements or bytes that no memory can have: work and sums of them would not be numbers. */
function wrongSize({ ne, sizeBytes, buffer, offset }: TensorEvent): Wrong | undefined {
  if (ne && !isShape(ne)) {
    const expected = 'of whole numbers, with at most 2^53 elements'
    return { code: 'value-out-of-range', field: 'a shape', expected, found: ne.join('×'), instead: { ne: undefined } }
  }
  const wrong = orUnknown('sizeBytes', sizeBytes) ?? orUnknown('buffer', buffer, ID_MAX)
  if (wrong || offset === undefined || Number.isSafeInteger(offset)) return wrong
  return outOfRange('offset', offset, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, { offset: undefined })
}

function isShape(ne: readonly number[]): boolean {
  let elements = 1
  for (const size of ne) {
    if (!(size >= 0 && Number.isInteger(size))) return false
    elements *= Math.max(size, 1)
  }
  return elements <= Number.MAX_SAFE_INTEGER
}
