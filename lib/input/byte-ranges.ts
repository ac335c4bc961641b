import { firstIndex } from '../bytes/search.ts'
import { FormatError } from '../errors.ts'
import type { ByteRange } from './byte-source.ts'

/** A stream's bytes are kept where something after them is needed first: at most so many. */
const KEPT_BYTES_MAX = 128 << 20

interface Chunk {
  readonly offset: number
  readonly bytes: Uint8Array
}

/**
 * An input whose parts are read in any order. Where the source allows that, nothing is kept. A stream's bytes are kept
 * after they are read, until they are released, up to 128 MiB.
 */
export class ByteRanges {
  private kept: Chunk[] = []
  private releasedTo = 0
  private streamedTo = 0
  private readonly chunks: AsyncIterator<Uint8Array>

  /** `hint`: for the FormatError (of `format`) of a stream of which too many bytes would be kept. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly range: ByteRange | undefined,
    private readonly format: string,
    private readonly hint: string,
  ) {
    this.chunks = source[Symbol.asyncIterator]()
  }

  /** The chunks of `[start, end)`, fewer where the input ends earlier. */
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

  /** As {@link read}, for the last time: releases the part and all bytes before it. */
  async *take(start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start
    this.release(start)
    for await (const piece of this.read(start, end)) {
      at += piece.length
      yield piece
      this.release(at)
    }
  }

  /** Frees the bytes before an offset: they are not read again. */
  release(offset: number): void {
    this.releasedTo = Math.max(this.releasedTo, offset)
    const { kept, releasedTo } = this
    let released = 0
    while (released < kept.length && kept[released]!.offset + kept[released]!.bytes.length <= releasedTo) released++
    if (released > 0) kept.splice(0, released)
  }

  private async chunkAt(at: number): Promise<Chunk | undefined> {
    while (this.streamedTo <= at) {
      const next = await this.chunks.next()
      if (next.done) return undefined
      this.kept.push({ offset: this.streamedTo, bytes: next.value })
      this.streamedTo += next.value.length
      this.release(0)
      if (this.kept.length > 0 && this.streamedTo - this.kept[0]!.offset > KEPT_BYTES_MAX) throw this.tooFar(at)
    }
    const { kept } = this
    const chunk = kept[firstIndex(0, kept.length, (i) => kept[i]!.offset > at) - 1]
    if (!chunk) throw this.tooFar(at)
    return chunk
  }
  private tooFar(byte: number): FormatError {
    const found = 'a stream, or a compressed file, too long to be kept in memory'
    return new FormatError(this.format, { byte }, 'a file that can be read at any place', found, this.hint)
  }
}
