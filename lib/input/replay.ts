/**
 * A stream, of bytes or of batches of events, whose beginning can be looked at before it is read:
 *
 *     look    a b c        keeps the chunks that it passes to `see`, until `see` returns true
 *     look    a b c d      starts from the beginning again
 *     next    a b c d e …  the kept chunks, which are freed, then the rest of the source
 */
export class Replay<T> implements AsyncIterableIterator<T, void> {
  /** The chunks of the look; those that were passed on are undefined. */
  private kept: (T | undefined)[] = []
  private passed = 0
  private readonly source: AsyncIterator<T, unknown>

  constructor(source: AsyncIterable<T>) {
    this.source = source[Symbol.asyncIterator]()
  }

  /** Calls `see` with the chunks that are not read yet, until it returns true or the source ends. */
  async look(see: (chunk: T) => boolean): Promise<void> {
    for (let i = this.passed; i < this.kept.length; i++) if (see(this.kept[i]!)) return
    for (let next = await this.source.next(); !next.done; next = await this.source.next()) {
      this.kept.push(next.value)
      if (see(next.value)) return
    }
  }

  async next(): Promise<IteratorResult<T, void>> {
    if (this.passed < this.kept.length) {
      const value = this.kept[this.passed]!
      this.kept[this.passed++] = undefined
      return { done: false, value }
    }
    this.kept = []
    this.passed = 0
    const next = await this.source.next()
    return next.done ? { done: true, value: undefined } : next
  }

  /** Closes the source, also where nothing was read. */
  async return(): Promise<IteratorResult<T, void>> {
    this.kept = []
    this.passed = 0
    await this.source.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
