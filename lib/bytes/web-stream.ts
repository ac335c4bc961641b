/** A web ReadableStream, described by its shape: Safari's is not iterable, and polyfills and other realms have other classes. */
export interface WebStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(reason?: unknown): Promise<void>
  }
}

/** The chunks of a web stream, which is cancelled if reading ends early. Throws what the stream fails with. */
export async function* readWebStream(stream: WebStream): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value!
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** A web ReadableStream of pieces, with what its generator returns. */
export interface ResultStream<R> extends ReadableStream<Uint8Array> {
  /** What `pieces` returns, such as the summaries of `convert`; undefined if the stream is cancelled. Fails as the stream does. */
  readonly result: Promise<R | undefined>
}

/**
 * Pieces as a web ReadableStream, produced on demand: for `new Response(…)`, `pipeTo` and `pipeThrough`. (Same as
 * `ReadableStream.from`, which not all platforms have.) The stream fails with what `pieces` throws; when it is cancelled,
 * `pieces` ends. Its `result` is what `pieces` returns.
 */
export function toWebStream<R = unknown>(
  pieces: AsyncIterable<Uint8Array> | AsyncGenerator<Uint8Array, R>,
): ResultStream<R> {
  const iterator = pieces[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, R>
  let [end, fail] = [(_result: R | undefined): void => {}, (_error: unknown): void => {}]
  const result = new Promise<R | undefined>((resolve, reject) => {
    ;[end, fail] = [resolve, reject]
  })
  result.catch(() => {}) // who reads the stream gets the error, and need not ask for the result
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await iterator.next()
        if (!next.done) return controller.enqueue(next.value)
        end(next.value)
        controller.close()
      } catch (error) {
        fail(error)
        controller.error(error)
      }
    },
    async cancel() {
      end(undefined)
      await iterator.return?.()
    },
  })
  return Object.assign(stream, { result })
}

/**
 * Passes pieces through one of the platform's transforms and returns what `pieces` returns. Throws what `pieces` throws, and what the
 * transform fails with.
 */
export async function* through<R>(
  pieces: AsyncIterableIterator<Uint8Array, R>,
  transform: CompressionStream | DecompressionStream,
): AsyncGenerator<Uint8Array, R> {
  let result: R | undefined
  let failure: { readonly error: unknown } | undefined
  async function* watched() {
    try {
      result = yield* pieces
    } catch (error) {
      failure = { error }
      throw error
    }
  }
  const plain = toWebStream(watched()) as ReadableStream<Uint8Array<ArrayBuffer>>
  try {
    yield* readWebStream(plain.pipeThrough(transform))
  } catch (error) {
    throw failure ? failure.error : error
  } finally {
    await pieces.return?.(undefined as R)
  }
  return result as R
}
