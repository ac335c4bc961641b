import { UsageError } from '../errors.ts'
import type { ByteSource } from './byte-source.ts'

/** Bytes that can be read at any place, for formats that are not read front to back. */
export interface RandomAccess {
  /** In bytes. */
  readonly size: number
  /** The bytes `[offset, offset + length)`; fewer where the input ends before. They are not changed afterwards. */
  read(offset: number, length: number): Promise<Uint8Array>
  /** Lets go of a file. */
  close(): Promise<void>
}

/** A `Blob` or `File`, as far as it can be cut. */
interface Sliceable {
  readonly size: number
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** Bytes in memory. */
export function memoryAccess(bytes: Uint8Array): RandomAccess {
  return {
    size: bytes.length,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
    close: async () => {},
  }
}

/** Random access to a source that has it: bytes in memory, or a `Blob`; undefined for streams. */
export function accessOf(source: ByteSource): RandomAccess | undefined {
  const kind = Object.prototype.toString.call(source)
  if (kind === '[object Uint8Array]') return memoryAccess(source as Uint8Array)
  if (kind === '[object ArrayBuffer]') return memoryAccess(new Uint8Array(source as ArrayBuffer))
  if (kind !== '[object Blob]' && kind !== '[object File]') return undefined
  const blob = source as unknown as Sliceable
  return {
    size: blob.size,
    read: async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
    close: async () => {},
  }
}

/**
 * A whole stream in memory, for what comes through a pipe or compressed. Throws UsageError where it is longer than
 * `bytesMax`.
 */
export async function collected(source: AsyncIterable<Uint8Array>, bytesMax: number): Promise<RandomAccess> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.length
    if (size <= bytesMax) continue
    throw new UsageError(
      `expected at most ${bytesMax >> 20} MiB through a pipe or compressed, found more: this format is not read front to ` +
        'back\nhint: give the path of the decompressed file',
    )
  }
  const whole = new Uint8Array(size)
  let filled = 0
  for (const chunk of chunks) {
    whole.set(chunk, filled)
    filled += chunk.length
  }
  return memoryAccess(whole)
}
