/** Below this, bytes and ASCII texts are copied in a loop: the built-in calls cost more than they save. */
export const SHORT = 48

/** Appends to one growing buffer. */
export class ByteWriter {
  protected bytes = new Uint8Array(1 << 16)
  protected position = 0

  /** Bytes written since the last {@link take}. */
  get size(): number {
    return this.position
  }

  /** The bytes written since the last call, as a copy; the buffer is empty afterwards. No message may be open. */
  take(): Uint8Array {
    const taken = this.bytes.slice(0, this.position)
    this.position = 0
    return taken
  }

  /** Appends bytes that were encoded before. */
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

  /** Makes room for that many more bytes. */
  protected reserve(bytes: number): void {
    const needed = this.position + bytes
    if (needed <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2))
    grown.set(this.bytes.subarray(0, this.position))
    this.bytes = grown
  }
}
