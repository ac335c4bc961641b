import { readWebStream, type WebStream } from '../bytes/web-stream.ts'
import { UsageError } from '../errors.ts'

/**
 * A source of bytes, in chunks cut anywhere: the bytes themselves, (async) iterables of them such as Node's `Readable`,
 * web streams, `Blob` and `File`, and objects with a `body`, such as `fetch`'s `Response`. Streams are read once.
 */
export type ByteSource =
  | Uint8Array
  | ArrayBuffer
  | Iterable<Uint8Array>
  | AsyncIterable<Uint8Array>
  | WebStream
  | BlobSource
  | BodySource
  | RangedSource

/** A `Blob` or `File`, by its shape. */
export interface BlobSource {
  stream(): WebStream
}

/** Bytes of which any part can be read at any time, such as a file on disk. */
export interface RangedSource extends AsyncIterable<Uint8Array> {
  /** The chunks of `[start, end)`, fewer where the source ends earlier. */
  range: ByteRange
  /** For files: the size of the file in the same folder whose name is this file's name and an ending; 0: no such file. */
  beside?: SizeBeside | undefined
}

/** The size of the file whose name is an input's name and `ending`; 0: no such file. */
export type SizeBeside = (ending: string) => Promise<number>

/** The chunks of bytes `[start, end)`, fewer where the source ends earlier. */
export type ByteRange = (start: number, end: number) => AsyncIterable<Uint8Array>

/** A `Response` or `Request`, by its shape. */
export interface BodySource {
  readonly body: WebStream | null
  readonly ok?: boolean
  readonly status?: number
  readonly statusText?: string
}

/**
 * The chunks of a source; `name` is its name in errors. Throws UsageError for a value that is no source of bytes and for
 * the response of a failed request; errors of the source pass through.
 */
export async function* chunksOf(source: ByteSource, name: string): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of iterableOf(source, name)) {
    if (!isBytes(chunk)) throw new UsageError(`${name}: expected chunks of bytes (Uint8Array), found ${kindOf(chunk)}`)
    yield chunk
  }
}

/** Reads any part of a source at any time, for sources that allow it: bytes, blobs and files. */
export function rangeOf(source: ByteSource): ByteRange | undefined {
  if (typeof source !== 'object' || source === null) return undefined
  if ('range' in source) return source.range
  if (isBytes(source) || isArrayBuffer(source)) {
    const bytes = isBytes(source) ? source : new Uint8Array(source)
    return async function* (start, end) {
      yield bytes.subarray(start, Math.min(end, bytes.length))
    }
  }
  if (!('stream' in source && 'slice' in source && 'size' in source)) return undefined
  const blob = source as BlobSource & { readonly size: number; slice(start: number, end: number): BlobSource }
  return (start, end) => readWebStream(blob.slice(start, Math.min(end, blob.size)).stream())
}

/** Finds files next to a source, for sources that are files of a file system. */
export function besideOf(source: ByteSource): SizeBeside | undefined {
  return typeof source === 'object' && source !== null && 'beside' in source ? source.beside : undefined
}

/** Tests methods, not the class: bundles, test runners and polyfills have separate classes. */
function iterableOf(source: ByteSource, name: string): Iterable<unknown> | AsyncIterable<unknown> {
  if (isBytes(source)) return [source]
  if (isArrayBuffer(source)) return [new Uint8Array(source)]
  if (typeof source === 'object' && source !== null) {
    if ('getReader' in source) return readWebStream(source)
    // Before `body`: frameworks put one on Node's requests, which are read as the streams that they are.
    if (Symbol.asyncIterator in source || Symbol.iterator in source) return source
    if ('stream' in source) return readWebStream(source.stream())
    if ('body' in source) return bodyOf(source, name)
  }
  throw new UsageError(`${name}: expected bytes, a stream, a Blob or a Response, found ${kindOf(source)}`)
}

function bodyOf(
  { body, ok, status, statusText }: BodySource,
  name: string,
): Iterable<unknown> | AsyncIterable<unknown> {
  if (ok === false) throw new UsageError(`${name}: the request failed: HTTP ${status} ${statusText}`.trimEnd())
  return body === null ? [] : readWebStream(body)
}

function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
}

function isBytes(value: unknown): value is Uint8Array {
  return Object.prototype.toString.call(value) === '[object Uint8Array]'
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return 'a string: a text of which encoding? (a stream after setEncoding)'
  if (typeof value !== 'object' || value === null) return `${value === null ? 'null' : typeof value}`
  return (value as object).constructor?.name ?? 'an object'
}
