import type { ByteRange } from './byte-source.ts'

/** Bytes of a stream that are held at most, because something behind them is needed first. */
const HELD_BYTES_MAX = 128 << 20

interface Chunk {
  readonly offset: number
  readonly bytes: Uint8Array
}

/**
 * An input whose parts are read in any order. Where the source allows that, nothing is held. Of a stream, what was read
 * is held until it is released, up to 128 MiB.
 */
export class ByteRanges {
  private held: Chunk[] = []
  private releasedTo = 0
  private streamedTo = 0
  private readonly chunks: AsyncIterator<Uint8Array>

  /** `tooFar` makes the error for a stream of which too much would have to be held, or that cannot go back. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly range: ByteRange | undefined,
    private readonly tooFar: (byte: number) => Error,
  ) {
    this.chunks = source[Symbol.asyncIterator]()
  }

  /** The chunks of `[start, end)`, fewer where the input ends before. */
  async *read(start: number, end: number): AsyncGenerator<Uint8Array> {
    if (end <= start) return
    if (this.range) return yield* this.range(start, end)
    for (let at = start; at < end; ) {
      const chunk = await this.chunkAt(at)
      if (!chunk) return
      const piece = chunk.bytes.subarray(at - chunk.offset, end - chunk.offset)
      at += piece.length
      yield piece
    }
  }

  /** The same, of a part that will not be asked for again, nor what lies before it. */
  async *take(start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start
    this.release(start)
    for await (const piece of this.read(start, end)) {
      at += piece.length
      yield piece
      this.release(at)
    }
  }

  /** Lets go of what lies before a place. */
  release(offset: number): void {
    this.releasedTo = Math.max(this.releasedTo, offset)
    const { held, releasedTo } = this
    let gone = 0
    while (gone < held.length && held[gone]!.offset + held[gone]!.bytes.length <= releasedTo) gone++
    if (gone > 0) held.splice(0, gone)
  }

  private async chunkAt(at: number): Promise<Chunk | undefined> {
    while (this.streamedTo <= at) {
      const next = await this.chunks.next()
      if (next.done) return undefined
      this.held.push({ offset: this.streamedTo, bytes: next.value })
      this.streamedTo += next.value.length
      this.release(0)
      if (this.held.length > 0 && this.streamedTo - this.held[0]!.offset > HELD_BYTES_MAX) throw this.tooFar(at)
    }
    const { held } = this
    let low = 0
    for (let high = held.length; high - low > 1; ) {
      const middle = (low + high) >>> 1
      if (held[middle]!.offset <= at) low = middle
      else high = middle
    }
    const chunk = held[low]
    if (!chunk || chunk.offset > at) throw this.tooFar(at)
    return chunk
  }
}
