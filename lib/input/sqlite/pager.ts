import type { RandomAccess } from '../random-access.ts'

/** Bytes that are read at once: the pages of a table mostly follow each other in the file. */
const CHUNK_BYTES = 1 << 18
const CHUNKS_MAX = 16

/** Pages of an SQLite file, numbered from 1; reads ahead, and caches a few megabytes. */
export class Pager {
  private readonly chunks = new Map<number, Uint8Array>()
  private readonly pagesPerChunk: number

  constructor(
    private readonly access: RandomAccess,
    readonly pageBytes: number,
  ) {
    this.pagesPerChunk = Math.max(1, Math.floor(CHUNK_BYTES / pageBytes))
  }

  /** The bytes of a page; undefined where the file does not contain all of them. */
  async page(number: number): Promise<Uint8Array | undefined> {
    const chunk = Math.floor((number - 1) / this.pagesPerChunk)
    const bytes = this.chunks.get(chunk) ?? (await this.load(chunk))
    const start = (number - 1 - chunk * this.pagesPerChunk) * this.pageBytes
    return start + this.pageBytes <= bytes.length ? bytes.subarray(start, start + this.pageBytes) : undefined
  }

  private async load(chunk: number): Promise<Uint8Array> {
    const length = this.pagesPerChunk * this.pageBytes
    const bytes = await this.access.read(chunk * length, length)
    if (this.chunks.size === CHUNKS_MAX) this.chunks.delete(this.chunks.keys().next().value!) // the oldest
    this.chunks.set(chunk, bytes)
    return bytes
  }
}
