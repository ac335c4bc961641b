import type { Summary } from '../analyze/summary/figures.ts'
import type { StoredError } from '../errors.ts'
import type { ConvertOptions } from '../pipeline/options.ts'
import type { Progress } from '../pipeline/progress.ts'

/** One end of a `MessageChannel`, by its shape. */
export interface Port {
  postMessage(message: unknown, transfer?: readonly unknown[]): void
  onmessage: ((event: { readonly data: unknown }) => void) | null
  close(): void
}

/** An input as it is posted: bytes and blobs are, of other sources only what can be asked of them. */
export interface PostedInput {
  readonly name: string
  readonly source: unknown
  readonly asked?: { readonly hasRange: boolean; readonly hasBeside: boolean; readonly size: number | undefined }
}

/** What a worker gets first. `bundle` is the last of the inputs, if there is one. */
export interface Start {
  readonly inputs: readonly PostedInput[]
  readonly options: Omit<ConvertOptions, 'formats' | 'bundle' | 'signal' | 'onProgress' | 'onFirstReading'>
  readonly hasBundle: boolean
  readonly hasProgress: boolean
  readonly port: Port
}

/** What a worker posts. Streams of chunks have numbers. */
export type FromWorker =
  | {
      readonly kind: 'open'
      readonly stream: number
      readonly input: number
      readonly range?: readonly [number, number]
    }
  | { readonly kind: 'pull'; readonly stream: number }
  | { readonly kind: 'close'; readonly stream: number }
  | { readonly kind: 'beside'; readonly question: number; readonly input: number; readonly ending: string }
  | { readonly kind: 'progress'; readonly progress: Progress }
  | { readonly kind: 'first-reading'; readonly inputs: readonly number[] | undefined }
  | Result

/** What of it the program gets. */
export type Result =
  | { readonly kind: 'piece'; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly summaries: Summary[] }
  | { readonly kind: 'error'; readonly error: StoredError }

/** What a worker gets later. */
export type ToWorker =
  | { readonly kind: 'more' }
  | { readonly kind: 'chunk'; readonly stream: number; readonly bytes?: Uint8Array; readonly error?: StoredError }
  | { readonly kind: 'size'; readonly question: number; readonly size: number }

/** An error as plain data. */
export function storedError(error: unknown): StoredError {
  const { name = 'Error', message = String(error), toJSON } = error as Error & { toJSON?(): StoredError }
  return toJSON ? toJSON.call(error) : { name, message }
}

/** What Node, Deno and Bun have for workers; undefined in browsers. */
export function workerThreads(): WorkerThreads | undefined {
  const host = globalThis as unknown as Readonly<Record<string, Host | undefined>>
  return host['process']?.getBuiltinModule?.('node:worker_threads')
}

/** `process` of these. */
interface Host {
  getBuiltinModule?(name: string): WorkerThreads | undefined
}

interface WorkerThreads {
  readonly Worker: new (script: URL) => AnyWorker
  readonly parentPort: { once(event: 'message', then: (message: unknown) => void): void } | null
}

/** A worker of a browser, or of Node. */
export interface AnyWorker {
  postMessage(message: unknown, transfer: readonly never[]): void
  terminate(): unknown
  onerror?: unknown
  on?(event: string, listener: (value: never) => void): unknown
}
