import type { Summary } from '../analyze/summary/figures.ts'
import { checkNames, restoreError, UsageError } from '../errors.ts'
import { CONVERT_IN_WORKER_OPTIONS } from '../generated/option-names.ts'
import { besideOf, chunksOf, rangeOf } from '../input/byte-source.ts'
import type { LogInput } from '../pipeline/inputs.ts'
import type { ConvertOptions } from '../pipeline/options.ts'
import { stoppable } from '../pipeline/turns.ts'
import {
  type AnyWorker,
  type FromWorker,
  type Port,
  type PostedInput,
  type Result,
  type Start,
  storedError,
  type ToWorker,
  workerThreads,
} from './messages.ts'

/** How a trace is written in a worker. */
export interface WorkerOptions extends Omit<ConvertOptions, 'formats'> {
  /**
   * Makes the worker, which calls `serveConversions`; by default the package's. For bundlers that do not know `new Worker(new URL(…, import.meta.url))`,
   * such as esbuild, and bundles for Node.
   */
  readonly worker?: (() => AnyWorker) | undefined
}

/**
 * Converts logs to one trace as `convert` does, in a worker of its own, which ends with the conversion, or at once where the signal aborts. Bytes
 * and blobs are posted; streams are read here, chunk by chunk as the worker needs them. Errors have their fields. Custom formats and events of
 * programs cannot be posted: convert them in a worker of yours.
 */
export function convertInWorker(
  from: LogInput | readonly LogInput[],
  options: WorkerOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  checkNames('convertInWorker', options, CONVERT_IN_WORKER_OPTIONS)
  return stoppable((signal) => converted([from].flat() as readonly LogInput[], options, signal), options.signal)
}

async function* converted(
  logs: readonly LogInput[],
  { worker = packagedWorker, onProgress, onFirstReading, bundle, signal: _, ...options }: WorkerOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, Summary[]> {
  const inputs = bundle ? [...logs, bundle] : logs
  const posted = inputs.map(postedInput)
  const thread = worker()
  const { port1, port2 } = new MessageChannel() as unknown as { readonly port1: Port; readonly port2: Port }
  const results = new Results(signal)
  const sources = new ReadSources(inputs, port1)
  port1.onmessage = ({ data }) => {
    const message = data as FromWorker
    if (message.kind === 'progress') onProgress?.(message.progress)
    else if (message.kind === 'first-reading') onFirstReading?.(message.inputs)
    else if (message.kind === 'piece' || message.kind === 'end' || message.kind === 'error') results.add(message)
    else void sources.answer(message)
  }
  listenToErrors(thread, (error) => results.fail(error))
  try {
    const start: Start = {
      inputs: posted,
      options,
      hasBundle: bundle !== undefined,
      hasProgress: onProgress !== undefined,
      port: port2,
    }
    thread.postMessage(start, [port2 as never])
    for (;;) {
      const result = await results.next()
      if (result.kind === 'end') return result.summaries
      if (result.kind === 'error') throw restoreError(result.error)
      yield result.bytes
      port1.postMessage({ kind: 'more' } satisfies ToWorker)
    }
  } finally {
    port1.close()
    void thread.terminate()
    results.close()
    await sources.close()
  }
}

/** What the worker posted, in order. */
class Results {
  private readonly all: Result[] = []
  private failure: { readonly error: unknown } | undefined
  private wake: () => void = () => {}
  private readonly abort = () => this.fail(this.signal.reason)

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', this.abort)
    if (signal.aborted) this.abort()
  }

  add(result: Result): void {
    this.all.push(result)
    this.wake()
  }

  fail(error: unknown): void {
    this.failure ??= { error }
    this.wake()
  }

  async next(): Promise<Result> {
    for (;;) {
      if (this.failure) throw this.failure.error
      const result = this.all.shift()
      if (result) return result
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
  }

  close(): void {
    this.signal.removeEventListener('abort', this.abort)
  }
}

/** Sources that are read here, as the worker asks for their chunks. */
class ReadSources {
  private readonly streams = new Map<number, AsyncIterator<Uint8Array, void>>()

  constructor(
    private readonly inputs: readonly LogInput[],
    private readonly port: Port,
  ) {}

  async answer(message: Exclude<FromWorker, Result | { kind: 'progress' | 'first-reading' }>): Promise<void> {
    if (message.kind === 'beside') {
      const size = await besideOf(this.inputs[message.input]!.source)!(message.ending)
      this.post({ kind: 'size', question: message.question, size })
    } else if (message.kind === 'open') {
      const { name, source } = this.inputs[message.input]!
      const chunks = message.range ? rangeOf(source)!(...message.range) : chunksOf(source, name)
      this.streams.set(message.stream, chunks[Symbol.asyncIterator]())
    } else if (message.kind === 'pull') await this.pull(message.stream)
    else {
      const stream = this.streams.get(message.stream)
      this.streams.delete(message.stream)
      await stream?.return?.()
    }
  }

  private async pull(stream: number): Promise<void> {
    try {
      const next = await this.streams.get(stream)!.next()
      // A copy: the chunk is the program's, and may be a part of more.
      const bytes = next.done ? undefined : new Uint8Array(next.value)
      this.post({ kind: 'chunk', stream, ...(bytes && { bytes }) }, bytes ? [bytes.buffer] : [])
    } catch (error) {
      this.post({ kind: 'chunk', stream, error: storedError(error) })
    }
  }

  private post(message: ToWorker, transfer: readonly unknown[] = []): void {
    this.port.postMessage(message, transfer)
  }

  async close(): Promise<void> {
    // A source that gives nothing does not end before it does.
    for (const stream of this.streams.values()) void Promise.resolve(stream.return?.()).catch(() => {})
  }
}

/** Bytes and blobs can be posted; of other sources, the worker asks. */
function postedInput(input: LogInput): PostedInput {
  if (typeof input !== 'object' || input === null || !('source' in input))
    throw new UsageError(
      `convertInWorker: expected inputs with a name and a source, found ${JSON.stringify(input)}\nhint: events of programs cannot be posted; convert them in a worker of yours`,
    )
  const { name, source } = input
  if (/^\[object (Uint8Array|ArrayBuffer|Blob|File)\]$/.test(Object.prototype.toString.call(source)))
    return { name, source }
  const { size } = source as { readonly size?: unknown }
  return {
    ...{ name, source: undefined },
    asked: {
      hasRange: rangeOf(source) !== undefined,
      hasBeside: besideOf(source) !== undefined,
      size: typeof size === 'number' ? size : undefined,
    },
  }
}

declare const Worker: (new (script: URL, options: { readonly type: 'module' }) => AnyWorker) | undefined

/** In this form, bundlers make a file of the worker. */
function packagedWorker(): AnyWorker {
  try {
    if (typeof Worker !== 'undefined')
      return new Worker(new URL('./worker-script.js', import.meta.url), { type: 'module' })
    const { Worker: NodeWorker } = workerThreads()!
    return new NodeWorker(new URL('./worker-script.js', import.meta.url))
  } catch (cause) {
    throw withoutWorker(String(cause), cause)
  }
}

function withoutWorker(reason: string, cause?: unknown): UsageError {
  const hint = 'the option worker makes one whose program calls serveConversions() of ggml2perfetto/worker'
  return new UsageError(`convertInWorker: the worker cannot be started: ${reason}\nhint: ${hint}`, { cause })
}

function listenToErrors(thread: AnyWorker, fail: (error: unknown) => void): void {
  if (thread.on) {
    thread.on('error', (error: never) => fail(withoutWorker(String(error), error)))
    thread.on('exit', (code: never) => fail(withoutWorker(`it ended with ${code}`)))
    return
  }
  thread.onerror = (event: { readonly message?: string; preventDefault?(): void }) => {
    event.preventDefault?.()
    fail(withoutWorker(event.message ?? 'its file cannot be loaded'))
  }
}
