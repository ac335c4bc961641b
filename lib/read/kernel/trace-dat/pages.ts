import { ByteCursor } from '../../../input/byte-cursor.ts'
import type { ByteRanges } from '../../../input/byte-ranges.ts'
import type { Inflate } from '../../../input/inflate.ts'
import type { IssueCode } from '../../../model/issues.ts'
import type { CpuPages } from './options.ts'

/** Some pages of one CPU, whole ones; the last may be cut. */
export interface PageRun {
  readonly view: DataView<ArrayBufferLike>
  /** Of the first page in `view`, and the end of the last. */
  readonly at: number
  readonly end: number
  /** Of the first page in the input; of compressed ones, where their chunk begins. */
  readonly byte: number
}

/** Called with what is wrong in the pages of a CPU. */
export type OnDamage = (code: IssueCode, detail: string, byte: number) => void

/** trace-cmd compresses some pages at a time; more than this is damage. */
const CHUNK_BYTES_MAX = 64 << 20
const COUNT_BYTES = 4

/** The pages of a CPU, as they lie in the file. */
export async function* plainPages(
  ranges: ByteRanges,
  { offset, bytes }: CpuPages,
  pageBytes: number,
  damage: OnDamage,
): AsyncGenerator<PageRun> {
  const cursor = new ByteCursor(ranges.take(offset, offset + bytes))
  try {
    for (;;) {
      const isLast = !(await cursor.fill())
      const whole = isLast ? cursor.available : cursor.available - (cursor.available % pageBytes)
      if (whole > 0) yield runOf(cursor.bytes, cursor.start, whole, offset + cursor.offset)
      cursor.skip(whole)
      if (isLast) break
    }
    if (cursor.offset < bytes) {
      damage('torn-record', `expected ${bytes} bytes of a CPU's pages, found ${cursor.offset}`, offset + cursor.offset)
    }
  } finally {
    await cursor.close()
  }
}

/**
 * The pages of a CPU, compressed: a u32 count of chunks; of each, two u32 sizes (compressed, decompressed) and the bytes.
 * The size that trace-cmd (3.1) gives them is that of the chunks, without their count.
 */
export async function* packedPages(
  ranges: ByteRanges,
  { offset, bytes }: CpuPages,
  inflate: Inflate,
  damage: OnDamage,
): AsyncGenerator<PageRun> {
  const cursor = new ByteCursor(ranges.take(offset, offset + COUNT_BYTES + bytes))
  const has = async (count: number) => {
    while (cursor.available < count) if (!(await cursor.fill())) return false
    return true
  }
  const torn = () => {
    damage('torn-record', `expected ${bytes} bytes of a CPU's pages, found ${cursor.offset}`, offset + cursor.offset)
  }
  try {
    if (!(await has(COUNT_BYTES))) return torn()
    const chunks = viewAt(cursor).getUint32(0, true)
    cursor.skip(COUNT_BYTES)
    for (let i = 0; i < chunks; i++) {
      if (!(await has(8))) return torn()
      const [packed, plain] = [viewAt(cursor).getUint32(0, true), viewAt(cursor).getUint32(4, true)]
      const byte = offset + cursor.offset
      cursor.skip(8)
      if (packed > CHUNK_BYTES_MAX || plain > CHUNK_BYTES_MAX) {
        return damage(
          'damaged-compression',
          `expected at most ${CHUNK_BYTES_MAX} bytes in it, found ${packed}, ${plain}`,
          byte,
        )
      }
      if (!(await has(packed))) return torn()
      try {
        const pages = await inflate(cursor.bytes.subarray(cursor.start, cursor.start + packed), plain)
        yield runOf(pages, 0, pages.length, byte)
      } catch (error) {
        damage('damaged-compression', `cannot be decompressed: ${(error as Error).message}`, byte)
      }
      cursor.skip(packed)
    }
  } finally {
    await cursor.close()
  }
}

function runOf(bytes: Uint8Array, start: number, length: number, byte: number): PageRun {
  return { view: new DataView(bytes.buffer, bytes.byteOffset + start, length), at: 0, end: length, byte }
}

function viewAt({ bytes, start, end }: ByteCursor): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + start, end - start)
}
