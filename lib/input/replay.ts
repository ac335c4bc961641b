/**
 * A stream, of bytes or of batches of events, whose beginning can be looked at before it is read:
 *
 *     look    a b c        keeps the chunks that it passes to `see`, until `see` returns true
 *     look    a b c d      starts from the beginning again
 *     next    a b c d e …  the kept chunks, which are freed, then the rest of the source
 */
export class Replay<T> implements AsyncIterableIterator<T, void> {
  private readonly kept: T[] = []
  private readonly source: AsyncIterator<T, unknown>

  constructor(source: AsyncIterable<T>) {
    this.source = source[Symbol.asyncIterator]()
  }

  /** Calls `see` with the chunks that are not read yet, until it returns true or the source ends. */
  async look(see: (chunk: T) => boolean): Promise<void> {
    for (const chunk of this.kept) if (see(chunk)) return
    for (let next = await this.source.next(); !next.done; next = await this.source.next()) {
      this.kept.push(next.value)
      if (see(next.value)) return
    }
  }

  async next(): Promise<IteratorResult<T, void>> {
    if (this.kept.length > 0) return { done: false, value: this.kept.shift()! }
    const next = await this.source.next()
    return next.done ? { done: true, value: undefined } : next
  }

  /** Closes the source, also where nothing was read. */
  async return(): Promise<IteratorResult<T, void>> {
    this.kept.length = 0
    await this.source.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
