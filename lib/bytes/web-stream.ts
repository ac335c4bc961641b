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

/**
 * Pieces as a web ReadableStream, produced on demand: for `new Response(…)`, `pipeTo` and `pipeThrough`. (Same as
 * `ReadableStream.from`, which not all platforms have.) The stream fails with what `pieces` throws; when it is cancelled,
 * `pieces` ends.
 */
export function toWebStream(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      try {
        const next = await iterator.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      } catch (error) {
        controller.error(error)
      }
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}

/**
 * Passes pieces through one of the platform's transforms and returns what `pieces` returns. Throws what `pieces` throws. If
 * the transform itself fails, calls `onBroken` and ends the pieces there; without `onBroken`, throws the error.
 */
export async function* through<R>(
  pieces: AsyncIterableIterator<Uint8Array, R>,
  transform: CompressionStream | DecompressionStream,
  onBroken?: (error: unknown) => void,
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
    if (failure) throw failure.error
    if (!onBroken) throw error
    onBroken(error)
  } finally {
    await pieces.return?.(undefined as R)
  }
  return result as R
}
