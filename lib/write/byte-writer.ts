import { resized } from '../bytes/resized.ts'

/** Below this, bytes and ASCII texts are copied in a loop: the built-in calls cost more than they save. */
export const SHORT = 48
/** The same of pieces. */
const PIECE_SHORT = 160

/** Bytes that are written often. They are copied in words, in half the time. */
export class Piece {
  readonly bytes: Uint8Array
  readonly view: DataView

  /** Copies the bytes. `length` of them are valid; `room` is the capacity. */
  constructor(
    bytes: Uint8Array,
    public length = bytes.length,
    room = length,
  ) {
    this.bytes = new Uint8Array((room + 3) & ~3)
    this.bytes.set(bytes)
    this.view = new DataView(this.bytes.buffer)
  }
}

/** Appends to one growing buffer. */
export class ByteWriter {
  protected bytes = new Uint8Array(1 << 16)
  /** View of the same buffer. */
  protected view = new DataView(this.bytes.buffer)
  protected position = 0

  /** Bytes written since the last {@link take}. */
  get size(): number {
    return this.position
  }

  /** The bytes written since the last call, as a copy; the buffer is empty afterwards. No message may be open. */
  take(): Uint8Array {
    const taken = new Uint8Array(this.bytes.subarray(0, this.position)) // not by `slice`, which clears the copy first
    this.position = 0
    return taken
  }

  /** Appends encoded bytes. */
  raw(encoded: Uint8Array): void {
    const length = encoded.length
    this.reserve(length)
    if (length > SHORT) this.bytes.set(encoded, this.position)
    else {
      const bytes = this.bytes
      const position = this.position
      for (let i = 0; i < length; i++) bytes[position + i] = encoded[i]!
    }
    this.position += length
  }

  /** Appends a piece. */
  piece(piece: Piece): void {
    this.reserve(piece.length + 3)
    this.position = this.put(this.position, piece)
  }

  /** Copies a piece to `at`, where three more bytes than its length are reserved. Returns the end. */
  protected put(at: number, { bytes, view: from, length }: Piece): number {
    const { view } = this
    if (length > PIECE_SHORT && bytes.length - length < 4) this.bytes.set(bytes, at)
    else for (let i = 0; i < length; i += 4) view.setInt32(at + i, from.getInt32(i, true), true)
    return at + length
  }

  /** Reserves space for further bytes. */
  protected reserve(bytes: number): void {
    const needed = this.position + bytes
    if (needed <= this.bytes.length) return
    this.bytes = resized(this.bytes, Math.max(needed, this.bytes.length * 2))
    this.view = new DataView(this.bytes.buffer)
  }
}
