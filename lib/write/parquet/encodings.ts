import { ByteWriter } from '../byte-writer.ts'

// Encodings of Parquet: https://github.com/apache/parquet-format/blob/master/Encodings.md

/** Values of a block of DELTA_BINARY_PACKED, and of each of its four parts, which have a width of their own. */
const BLOCK = 128
const PART = 32
/** A run of equal values is at least this long; shorter ones are packed. */
const RUN_MIN = 16
/** Bits that are packed at once: with 7 left over, they fit into 32. */
const PACKED_BITS = 24
const encoder = new TextEncoder()

/** Writes the values of one column in the encodings of Parquet. */
export class EncodingWriter extends ByteWriter {
  /** Bits that do not fill a byte yet. */
  private bits = 0
  private bitCount = 0
  private readonly deltas = new Float64Array(BLOCK)

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.position++] = value
  }

  /** A whole number from 0 to 2^53, seven bits a byte. */
  varint(value: number): void {
    this.reserve(10)
    let rest = value
    while (rest > 0x7fffffff) {
      this.bytes[this.position++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    let small = rest | 0
    while (small > 127) {
      this.bytes[this.position++] = (small & 127) | 0x80
      small >>>= 7
    }
    this.bytes[this.position++] = small
  }

  /** A whole number between −2^52 and 2^52: small numbers of both signs need few bytes. */
  zigzag(value: number): void {
    this.varint(value < 0 ? -2 * value - 1 : 2 * value)
  }

  int32(value: number): void {
    this.reserve(4)
    this.view.setInt32(this.position, value, true)
    this.position += 4
  }

  /** A whole number as 64 bits. */
  int64(value: number | bigint): void {
    this.reserve(8)
    if (typeof value === 'bigint') {
      this.view.setBigInt64(this.position, value, true)
      this.position += 8
      return
    }
    this.view.setInt32(this.position, (value % 2 ** 32) | 0, true)
    this.view.setInt32(this.position + 4, Math.floor(value / 2 ** 32), true)
    this.position += 8
  }

  double(value: number): void {
    this.reserve(8)
    this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  /** A text with its length; returns its bytes. */
  text(value: string): Uint8Array {
    const bytes = encoder.encode(value)
    this.int32(bytes.length)
    this.raw(bytes)
    return bytes
  }

  /** One bit for each value. */
  flags(values: Uint8Array): void {
    for (let i = 0; i < values.length; i++) this.pack(values[i]! === 0 ? 0 : 1, 1)
    this.endPacking()
  }

  /** Levels of definition, 1 where a value is there: with their length in front. */
  levels(isThere: Uint8Array): void {
    const at = this.position
    this.int32(0)
    this.runs(isThere, 1)
    this.view.setInt32(at, this.position - at - 4, true)
  }

  /** The hybrid of runs and packed groups of eight (RLE). Values have `width` bits, 0 to 24. */
  runs(values: ArrayLike<number>, width: number): void {
    const { length } = values
    let packedFrom = 0
    for (let i = 0; i < length; ) {
      const value = values[i]!
      let end = i + 1
      while (end < length && values[end] === value) end++
      // Packed values before a run fill groups of eight.
      const from = packedFrom + Math.ceil((i - packedFrom) / 8) * 8
      if (end - from >= RUN_MIN) {
        this.packed(values, packedFrom, from, width)
        this.varint((end - from) * 2)
        for (let bits = 0, rest = value; bits < width; bits += 8, rest >>>= 8) this.byte(rest & 255)
        packedFrom = end
      }
      i = end
    }
    this.packed(values, packedFrom, length, width)
  }

  private packed(values: ArrayLike<number>, from: number, to: number, width: number): void {
    if (to <= from) return
    const groups = Math.ceil((to - from) / 8)
    this.varint(groups * 2 + 1)
    this.reserve(groups * width)
    for (let i = from; i < to; i++) this.pack(values[i]!, width)
    for (let i = to - from; i < groups * 8; i++) this.pack(0, width)
    this.endPacking()
  }

  /**
   * DELTA_BINARY_PACKED: whole numbers whose range is below 2^52. Where many of them repeat the one before, widths are whole bytes: compression finds
   * repeated bytes, not repeated bits (waits within operators become smaller by two thirds).
   */
  delta(values: Float64Array): void {
    const { length } = values
    let repeats = 0
    for (let i = 1; i < length; i++) if (values[i] === values[i - 1]) repeats++
    const unit = 8 * repeats > length ? 8 : 1
    this.varint(BLOCK)
    this.varint(BLOCK / PART)
    this.varint(length)
    this.zigzag(length === 0 ? 0 : values[0]!)
    for (let from = 1; from < length; from += BLOCK) this.block(values.subarray(from - 1, from + BLOCK), unit)
  }

  /** A block: the differences of values to those before them. Widths are multiples of `unit` bits. */
  private block(values: Float64Array, unit: number): void {
    const { deltas } = this
    const count = values.length - 1
    let least = Infinity
    for (let i = 0; i < count; i++) {
      const delta = values[i + 1]! - values[i]!
      deltas[i] = delta
      if (delta < least) least = delta
    }
    this.zigzag(least)
    this.reserve(BLOCK / PART + BLOCK * 8)
    const widthsAt = this.position
    this.position += BLOCK / PART
    for (let part = 0; part * PART < BLOCK; part++) {
      const begin = part * PART
      let most = 0
      for (let i = begin; i < Math.min(count, begin + PART); i++)
        if (deltas[i]! - least > most) most = deltas[i]! - least
      const width = begin < count ? Math.ceil(widthOf(most) / unit) * unit : 0
      this.bytes[widthsAt + part] = width
      if (width === 0) continue
      for (let i = begin; i < begin + PART; i++) this.packWide(i < count ? deltas[i]! - least : 0, width)
      this.endPacking()
    }
  }

  private packWide(value: number, width: number): void {
    if (width <= PACKED_BITS) return this.pack(value, width)
    this.pack(value % 2 ** PACKED_BITS, PACKED_BITS)
    this.packWide(Math.floor(value / 2 ** PACKED_BITS), width - PACKED_BITS)
  }

  /** Appends `width` bits, at most 24. Space must be reserved, but for flags. */
  private pack(value: number, width: number): void {
    let bits = this.bits | (value << this.bitCount)
    let count = this.bitCount + width
    if (this.position + 4 > this.bytes.length) this.reserve(4)
    const { bytes } = this
    while (count >= 8) {
      bytes[this.position++] = bits
      bits >>>= 8
      count -= 8
    }
    this.bits = bits
    this.bitCount = count
  }

  private endPacking(): void {
    if (this.bitCount > 0) this.byte(this.bits)
    this.bits = 0
    this.bitCount = 0
  }
}

/** Bits of the whole numbers from 0 to `most`. */
export function widthOf(most: number): number {
  return most < 2 ** 32 ? 32 - Math.clz32(most) : 32 + widthOf(Math.floor(most / 2 ** 32))
}
