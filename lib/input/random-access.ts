import { joined } from '../bytes/joined.ts'
import { UsageError } from '../errors.ts'
import type { ByteRange } from './byte-source.ts'

/** Bytes that can be read at any offset, for formats that are not read from start to end. */
export interface RandomAccess {
  /** The bytes `[offset, offset + length)`; fewer where the input ends earlier. They do not change later. */
  read(offset: number, length: number): Promise<Uint8Array>
}

/** Bytes in memory. */
export function memoryAccess(bytes: Uint8Array): RandomAccess {
  return { read: async (offset, length) => bytes.subarray(offset, offset + length) }
}

/** An input of which any part can be read. */
export function rangeAccess(range: ByteRange): RandomAccess {
  return { read: async (offset, length) => read(range(offset, offset + length), length) }
}

/**
 * A whole stream in memory, for inputs from a pipe or compressed ones. Throws UsageError where it is longer than
 * `bytesMax`.
 */
export async function collected(source: AsyncIterable<Uint8Array>, bytesMax: number): Promise<RandomAccess> {
  return memoryAccess(await read(source, bytesMax, true))
}

async function read(source: AsyncIterable<Uint8Array>, bytesMax: number, isLimit = false): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    size += chunk.length
    if (size <= bytesMax || !isLimit) continue
    throw new UsageError(
      `expected at most ${bytesMax >> 20} MiB through a pipe or compressed, found more: this format is not read from ` +
        'start to end\nhint: give the path of the decompressed file',
    )
  }
  return joined(chunks)
}
