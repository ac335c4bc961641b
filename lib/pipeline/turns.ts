/** Work between two turns of the event loop: about so long, and at most so many events. */
const TURN_MS = 10
const TURN_EVENTS = 1 << 14
/** Bytes that are read between two looks at the clock. */
const PIECE_BYTES = 1 << 16

interface Host {
  readonly setImmediate?: (then: () => void) => unknown
}

/** The event loop's other tasks run. No `setTimeout`: browsers make it wait 4 ms; no `scheduler.yield`: what it resumes precedes timers. */
function macrotask(): Promise<void> {
  const { setImmediate } = globalThis as unknown as Host
  if (setImmediate) return new Promise((resolve) => setImmediate(resolve))
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(0)
  })
}

/** Turns of the event loop while an input is read: timers, pages and an `AbortController` need them. */
export class Turns {
  private events = 0
  private sinceMs = performance.now()

  constructor(private readonly signal: AbortSignal | undefined) {}

  /** Is it time for a turn, after so many more events? */
  isDue(events: number): boolean {
    this.events += events
    return this.events >= TURN_EVENTS || performance.now() - this.sinceMs >= TURN_MS
  }

  /** One turn. Throws the signal's reason where it was aborted. */
  async take(): Promise<void> {
    await macrotask()
    this.signal?.throwIfAborted()
    this.events = 0
    this.sinceMs = performance.now()
  }
}

/** Bytes in pieces, with turns between them. */
export async function* inTurns(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
  const turns = new Turns(signal)
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      if (turns.isDue(0)) await turns.take()
      yield chunk.length <= PIECE_BYTES ? chunk : chunk.subarray(at, at + PIECE_BYTES)
    }
  }
}

/** The chunks of a source; one that is waited for is given up where the signal aborts. `onRead` is called with the length of each. */
export async function* untilAborted(
  chunks: AsyncGenerator<Uint8Array, void>,
  signal: AbortSignal | undefined,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void> {
  // Of the step that is waited for. No promise lives as long as the input: a race against it would hold each chunk up to its end. Nor does
  // a listener: there are as many inputs as are given.
  let giveUp = (_reason: unknown): void => {}
  const abort = () => giveUp(signal!.reason)
  try {
    for (;;) {
      const next = await new Promise<IteratorResult<Uint8Array, void>>((resolve, reject) => {
        giveUp = reject
        signal?.addEventListener('abort', abort)
        if (signal?.aborted) abort()
        chunks.next().then(resolve, reject)
      })
      signal?.removeEventListener('abort', abort)
      if (next.done) return
      onRead(next.value.length)
      yield next.value
    }
  } finally {
    signal?.removeEventListener('abort', abort)
    const closed = chunks.return()
    if (signal?.aborted)
      closed.catch(() => {}) // a source that gives nothing does not end before it does
    else await closed
  }
}

/** A generator that ends soon: `return()` and the signal abort the step that runs. */
export function stoppable<T, R>(
  make: (signal: AbortSignal) => AsyncGenerator<T, R>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, R> {
  const own = new AbortController()
  const abort = () => own.abort(signal!.reason)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  const inner = make(own.signal)
  let isReturned = false
  const generator: AsyncGenerator<T, R> = {
    async next() {
      try {
        own.signal.throwIfAborted()
        const next = await inner.next()
        if (next.done) signal?.removeEventListener('abort', abort)
        return next
      } catch (error) {
        signal?.removeEventListener('abort', abort)
        await inner.return(undefined as R)
        if (isReturned) return { done: true, value: undefined as R }
        throw error
      }
    },
    return(value) {
      isReturned = true
      signal?.removeEventListener('abort', abort)
      own.abort()
      return inner.return(value)
    },
    throw(error) {
      isReturned = true
      own.abort()
      return inner.throw(error)
    },
    [Symbol.asyncIterator]: () => generator,
    ...(Symbol.asyncDispose && { [Symbol.asyncDispose]: async () => void (await generator.return(undefined as R)) }),
  } as AsyncGenerator<T, R>
  return generator
}
