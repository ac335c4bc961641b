import { FormatError } from '../errors.ts'
import { ByteCursor } from './byte-cursor.ts'
import type { ByteRanges } from './byte-ranges.ts'

/** How errors name the end of the input in place of a field. */
export const END_OF_INPUT = 'the end of the input'

/** Longer texts and tables are damage. */
const FIELD_BYTES_MAX = 64 << 20

/** Calls `read` with a reader of the fields from an offset on, which is closed afterwards. */
export type ReadAt = <T>(offset: number, read: (from: FieldReader) => Promise<T>) => Promise<T>

/** Reads fields at any place of an input. Errors are FormatErrors that name `format`. */
export function fieldsIn(ranges: ByteRanges, format: string): ReadAt {
  return async (offset, read) => {
    const from = new FieldReader(ranges, format, offset)
    try {
      return await read(from)
    } finally {
      await from.close()
    }
  }
}

/** Reads the fields of bytes in memory, as {@link fieldsIn} does; such a reader needs no end. */
export function fieldsOf(bytes: Uint8Array, format: string): FieldReader {
  async function* read(start: number) {
    yield bytes.subarray(start)
  }
  return new FieldReader({ read }, format, 0)
}

/** Reads little-endian fields one after the other: for headers and tables, not for events. */
export class FieldReader {
  private cursor: ByteCursor

  constructor(
    private readonly ranges: Pick<ByteRanges, 'read'>,
    private readonly format: string,
    private shift: number,
  ) {
    this.cursor = new ByteCursor(ranges.read(shift, Infinity))
  }

  /** Offset of the next field in the input. */
  get offset(): number {
    return this.shift + this.cursor.offset
  }

  /** Are there `bytes` more bytes? */
  has(bytes: number): Promise<boolean> {
    return this.cursor.has(bytes)
  }

  /** A copy of a field's bytes. Throws FormatError where the input ends within the field. */
  async bytes(count: number, what: string): Promise<Uint8Array> {
    if (count > FIELD_BYTES_MAX) this.fail(`at most ${FIELD_BYTES_MAX} bytes of ${what}`, `${count}`)
    if (!(await this.has(count))) {
      this.fail(`${count} bytes of ${what}`, `${END_OF_INPUT} after ${this.cursor.available}`)
    }
    const { bytes, start } = this.cursor
    this.cursor.skip(count)
    return new Uint8Array(bytes.subarray(start, start + count)) // `slice` of a Node Buffer is no copy
  }

  async u8(what: string): Promise<number> {
    return (await this.bytes(1, what))[0]!
  }

  async u16(what: string): Promise<number> {
    return viewOf(await this.bytes(2, what)).getUint16(0, true)
  }

  async u32(what: string): Promise<number> {
    return viewOf(await this.bytes(4, what)).getUint32(0, true)
  }

  /** A u64 that is an offset or a size; above 2^53 it is damage. */
  async u64(what: string): Promise<number> {
    const value = viewOf(await this.bytes(8, what)).getBigUint64(0, true)
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) this.fail(what, `${value}`)
    return Number(value)
  }

  /** A text of `count` bytes. */
  async text(count: number, what: string): Promise<string> {
    return decoder.decode(await this.bytes(count, what))
  }

  /** A text of at most `most` bytes with a zero byte after it. */
  async textZ(what: string, most = 256): Promise<string> {
    const { cursor } = this
    for (let length = 0; length < most; length++) {
      if (!(await this.has(length + 1))) break
      if (cursor.bytes[cursor.start + length] !== 0) continue
      const text = await this.text(length, what)
      cursor.skip(1)
      return text
    }
    return this.fail(`${what}, ended by a zero byte`, 'none')
  }

  /** Skips bytes, without reading them where the source allows it. */
  async skip(bytes: number): Promise<void> {
    if (bytes <= this.cursor.available) return this.cursor.skip(bytes)
    const start = this.offset + bytes
    await this.cursor.close()
    this.shift = start
    this.cursor = new ByteCursor(this.ranges.read(start, Infinity))
  }

  /** Ends reading. */
  async close(): Promise<void> {
    await this.cursor.close()
  }

  /** Throws FormatError for the next field. */
  fail(expected: string, found: string, hint?: string): never {
    throw new FormatError(this.format, { byte: this.offset }, expected, found, hint)
  }
}

/** A view of the same bytes. */
export const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const decoder = new TextDecoder()
