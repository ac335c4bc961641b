/** A web ReadableStream, by its shape: Safari's cannot be iterated, a polyfill's or another realm's is of another class. */
export interface WebStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(reason?: unknown): Promise<void>
  }
}

/** The chunks of a web stream, which is cancelled where reading ends early. Throws what the stream fails with. */
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
 * Pieces as a web ReadableStream, made as they are asked for: for `new Response(…)`, `pipeTo` and `pipeThrough`. (What
 * `ReadableStream.from` does where there is one.) The stream fails with what `pieces` throws; when it is cancelled,
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
 * Passes pieces through one of the platform's transforms and returns what `pieces` returns. What `pieces` throws is
 * thrown as it is. Should the transform itself fail, `onBroken` is told and the pieces end there; without it, that is
 * thrown.
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
