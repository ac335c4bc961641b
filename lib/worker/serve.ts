import { restoreError } from '../errors.ts'
import type { ByteSource } from '../input/byte-source.ts'
import type { LogInput } from '../pipeline/inputs.ts'
import {
  type FromWorker,
  type Port,
  type PostedInput,
  type Start,
  storedError,
  type ToWorker,
  workerThreads,
} from './messages.ts'

/** Pieces that are posted before the program took one. */
const PIECES_AHEAD = 2

/** What a worker does: it converts what `convertInWorker` posts to it. For workers of your own. */
export function serveConversions(): void {
  const { parentPort } = workerThreads() ?? {}
  if (parentPort) parentPort.once('message', (message) => void answer(message as Start))
  else {
    const scope = globalThis as { onmessage?: unknown }
    scope.onmessage = ({ data }: { readonly data: Start }) => void answer(data)
  }
}

async function answer({ inputs, options, hasBundle, hasProgress, port }: Start): Promise<void> {
  const sources = new AskedSources(port)
  const all = inputs.map((input, i) => sources.input(input, i))
  const bundle = hasBundle ? all.pop() : undefined
  try {
    // Not in programs that only ask for conversions.
    const { convert } = await import('../pipeline/known-formats.ts')
    const trace = convert(all, {
      ...options,
      ...(bundle && { bundle }),
      ...(hasProgress && { onProgress: (progress) => sources.post({ kind: 'progress', progress }) }),
      onFirstReading: (indexes) => sources.post({ kind: 'first-reading', inputs: indexes }),
    })
    let next = await trace.next()
    for (; !next.done; next = await trace.next()) {
      await sources.mayPost()
      const bytes = new Uint8Array(next.value) // a copy: the writer keeps its own
      sources.post({ kind: 'piece', bytes }, [bytes.buffer])
    }
    sources.post({ kind: 'end', summaries: next.value })
  } catch (error) {
    sources.post({ kind: 'error', error: storedError(error) })
  }
}

type Chunk = IteratorResult<Uint8Array, void>

/** Sources that are read where the program runs. */
class AskedSources {
  private ahead = PIECES_AHEAD
  private more: (() => void) | undefined
  private number = 0
  private readonly waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()

  constructor(private readonly port: Port) {
    port.onmessage = ({ data }) => this.take(data as ToWorker)
  }

  post(message: FromWorker, transfer: readonly unknown[] = []): void {
    this.port.postMessage(message, transfer)
  }

  /** Waits until the program took enough pieces. */
  async mayPost(): Promise<void> {
    if (this.ahead === 0)
      await new Promise<void>((resolve) => {
        this.more = resolve
      })
    this.ahead--
  }

  input({ name, source, asked }: PostedInput, index: number): LogInput {
    if (!asked) return { name, source: source as ByteSource }
    const { hasRange, hasBeside, size } = asked
    const read = {
      [Symbol.asyncIterator]: () => this.chunks(index),
      ...(size !== undefined && { size }),
      ...(hasRange && { range: (start: number, end: number) => this.chunks(index, [start, end]) }),
      ...(hasBeside && {
        beside: (ending: string) =>
          this.ask<number>((question) => ({ kind: 'beside', question, input: index, ending })),
      }),
    }
    return { name, source: read }
  }

  private async *chunks(input: number, range?: readonly [number, number]): AsyncGenerator<Uint8Array, void> {
    const stream = this.number++
    this.post({ kind: 'open', stream, input, ...(range && { range }) })
    try {
      for (;;) {
        const next = await this.answerTo<Chunk>(stream, { kind: 'pull', stream })
        if (next.done) return
        yield next.value
      }
    } finally {
      this.post({ kind: 'close', stream })
    }
  }

  private ask<T>(question: (number: number) => FromWorker): Promise<T> {
    const number = this.number++
    return this.answerTo(number, question(number))
  }

  private answerTo<T>(number: number, message: FromWorker): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(number, { resolve, reject })
      this.post(message)
    })
  }

  private take(message: ToWorker): void {
    if (message.kind === 'more') {
      this.ahead++
      this.more?.()
      return
    }
    const number = message.kind === 'size' ? message.question : message.stream
    const { resolve, reject } = this.waiting.get(number)!
    this.waiting.delete(number)
    if (message.kind === 'size') resolve(message.size as never)
    else if (message.error) reject(restoreError(message.error))
    else resolve((message.bytes ? { done: false, value: message.bytes } : { done: true, value: undefined }) as never)
  }
}
