/**
 * A window over chunks that are cut anywhere. Readers take whole records from the window and leave the rest for the
 * next {@link fill}, which stitches chunks together.
 */
export class ByteCursor {
  /** The bytes around the window; read `[start, end)` only. Changes with every {@link fill}. */
  bytes: Uint8Array = new Uint8Array(0)
  start = 0
  end = 0
  private startOffset = 0
  private stitched: Uint8Array = new Uint8Array(0)
  private readonly chunks: AsyncIterator<Uint8Array>

  constructor(source: AsyncIterable<Uint8Array>) {
    this.chunks = source[Symbol.asyncIterator]()
  }

  /** Bytes in the window. */
  get available(): number {
    return this.end - this.start
  }

  /** Offset of the window's first byte in the input. */
  get offset(): number {
    return this.startOffset
  }

  /** Moves the window's start. */
  skip(bytes: number): void {
    this.start += bytes
    this.startOffset += bytes
  }

  /** Adds the next chunk to the window; false at the end of the input. */
  async fill(): Promise<boolean> {
    const next = await this.chunks.next()
    if (next.done) return false
    const chunk = next.value
    const rest = this.end - this.start
    if (rest === 0) {
      this.bytes = chunk
      this.start = 0
      this.end = chunk.length
    } else this.stitch(chunk, rest)
    return true
  }

  /** Fills the window up to so many bytes; false where the input has fewer. */
  async has(bytes: number): Promise<boolean> {
    while (this.available < bytes) if (!(await this.fill())) return false
    return true
  }

  /** The next `bytes` bytes, fewer where the input ends, as copies. */
  async *take(bytes: number): AsyncGenerator<Uint8Array, void> {
    let left = bytes
    while (left > 0 && (this.available > 0 || (await this.fill()))) {
      const piece = Math.min(left, this.available)
      const taken = new Uint8Array(this.bytes.subarray(this.start, this.start + piece)) // `slice` of a Node Buffer is no copy
      this.skip(piece)
      left -= piece
      yield taken
    }
  }

  /** Ends the input early, so that its source can close files. */
  async close(): Promise<void> {
    await this.chunks.return?.()
  }

  private stitch(chunk: Uint8Array, rest: number): void {
    const inPlace = this.bytes === this.stitched && this.end + chunk.length <= this.stitched.length
    if (!inPlace) {
      const needed = rest + chunk.length
      const target = this.stitched.length >= needed * 2 ? this.stitched : new Uint8Array(needed * 2)
      target.set(this.bytes.subarray(this.start, this.end)) // overlapping copies within one buffer are safe
      this.stitched = target
      this.bytes = target
      this.start = 0
      this.end = rest
    }
    this.stitched.set(chunk, this.end)
    this.end += chunk.length
  }
}
