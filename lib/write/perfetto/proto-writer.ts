import { ByteWriter, SHORT } from '../byte-writer.ts'

/** Wire types. */
enum Wire {
  Varint,
  Fixed64,
  Delimited,
}

const TAG_BYTES_MAX = 5
/** The longest varint, of 64 bits. */
export const VARINT_BYTES_MAX = 10
const LENGTH_BYTES_MAX = 5

/** The tag of a field whose number is below 16: a byte. */
export const tagOf = (field: number, kind: 'message' | 'varint'): number =>
  (field << 3) | (kind === 'message' ? Wire.Delimited : Wire.Varint)

const encoder = new TextEncoder()

/**
 * Appends protobuf fields to one growing buffer. Independent of Perfetto.
 *
 * The length of a message is not known until it ends, so `begin` reserves one byte for the length and `end` fills it in. Nearly
 * every packet is shorter than 128 bytes; `end` moves the content of longer ones to the right.
 */
export class ProtoWriter extends ByteWriter {
  /** Starts a nested message; pass the returned mark to {@link end}. */
  begin(field: number): number {
    this.reserve(TAG_BYTES_MAX + 1)
    this.putVarint((field << 3) | Wire.Delimited)
    return this.position++
  }

  /** Ends the message that `begin` started and returned `mark` for. */
  end(mark: number): void {
    const start = mark + 1
    const length = this.position - start
    if (length < 0x80) {
      this.bytes[mark] = length
      return
    }
    const shift = varintSize(length) - 1
    this.reserve(shift)
    this.bytes.copyWithin(start + shift, start, this.position)
    this.position = mark
    this.putVarint(length)
    this.position += length
  }

  /** Any integer from 0 to 2^53 - 1. Throws RangeError on others. */
  varint(field: number, value: number): void {
    this.reserve(TAG_BYTES_MAX + VARINT_BYTES_MAX)
    this.putVarint((field << 3) | Wire.Varint)
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not an integer from 0 to 2^53 - 1: ${value}`)
    this.putVarint(value)
  }

  /** An int64 field: any safe integer; negatives take ten bytes. */
  int64(field: number, value: number): void {
    if (value >= 0) this.varint(field, value)
    else this.bigVarint(field, BigInt(value))
  }

  /** An integer beyond 2^53, or a negative one (as two's complement). */
  bigVarint(field: number, value: bigint): void {
    this.reserve(TAG_BYTES_MAX + VARINT_BYTES_MAX)
    this.putVarint((field << 3) | Wire.Varint)
    this.putBig(value)
  }

  /** A packed field of safe integers, negative ones as two's complement; `first` comes before them. */
  packed(field: number, values: readonly number[], first?: bigint): void {
    const mark = this.begin(field)
    this.reserve(VARINT_BYTES_MAX * (values.length + 1))
    if (first !== undefined) this.putBig(first)
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!
      if (value < 0) this.putBig(BigInt(value))
      else this.putVarint(value)
    }
    this.end(mark)
  }

  double(field: number, value: number): void {
    this.reserve(TAG_BYTES_MAX + 8)
    this.putVarint((field << 3) | Wire.Fixed64)
    this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  fixed64(field: number, value: number): void {
    this.reserve(TAG_BYTES_MAX + 8)
    this.putVarint((field << 3) | Wire.Fixed64)
    this.view.setBigUint64(this.position, BigInt(value), true)
    this.position += 8
  }

  string(field: number, text: string): void {
    const lengthMax = text.length * 3
    this.reserve(TAG_BYTES_MAX + LENGTH_BYTES_MAX + lengthMax)
    const mark = this.begin(field)
    if (text.length > SHORT || !this.putAscii(text)) {
      this.position = mark + 1
      this.position += encoder.encodeInto(text, this.bytes.subarray(this.position)).written
    }
    this.end(mark)
  }

  // The loops below use local variables: V8 keeps them in registers, but not always fields of `this`.

  private putAscii(text: string): boolean {
    const bytes = this.bytes
    let position = this.position
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return false
      bytes[position++] = code
    }
    this.position = position
    return true
  }

  private putVarint(value: number): void {
    this.position = encodeVarint(this.bytes, this.position, value)
  }

  private putBig(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    while (rest > 0x7fn) {
      this.bytes[this.position++] = Number(rest & 0x7fn) | 0x80
      rest >>= 7n
    }
    this.bytes[this.position++] = Number(rest)
  }
}

/** Bytes of an integer from 0 to 2^53 - 1 as a varint. */
function varintSize(value: number): number {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  if (value < 0x200000) return 3
  if (value < GROUPS_4) return 4
  return 4 + varintSize(Math.floor(value / GROUPS_4))
}

const GROUPS_4 = 0x10000000

/** Writes an integer from 0 to 2^53 - 1 as a varint at `at`. Returns the end. */
export function encodeVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value
  if (rest >= GROUPS_4) {
    // Not by `%`: on doubles, it is a call of C, and takes as long as all else.
    rest = Math.floor(value / GROUPS_4)
    const low = value - rest * GROUPS_4 // the low 28 bits: four whole groups of seven
    bytes[at++] = low | 0x80
    bytes[at++] = (low >>> 7) | 0x80
    bytes[at++] = (low >>> 14) | 0x80
    bytes[at++] = (low >>> 21) | 0x80
    if (rest >= GROUPS_4) return encodeVarint(bytes, at, rest)
  }
  while (rest > 0x7f) {
    bytes[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  bytes[at++] = rest
  return at
}
