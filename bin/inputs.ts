import { fstatSync } from 'node:fs'
import { basename } from 'node:path'
import { constants, gunzipSync } from 'node:zlib'
import {
  type ByteRange,
  fileRange,
  readFileChunks,
  sizeBeside,
  sniffFormat,
  type TraceKind,
  UsageError,
} from '../lib/index.ts'
import { systemReason } from './terminal.ts'

/** An input whose start was looked at. */
export interface Opened {
  /** What it is called in messages. */
  readonly name: string
  /** `log`: a format we know; `trace`: Perfetto packets or Chrome JSON; `unknown`: neither. */
  readonly kind: 'log' | 'trace' | 'unknown'
  /** Chrome JSON is both: a trace to look at, and a log that can be converted. */
  readonly isTrace: boolean
  /** Is it compressed by gzip? */
  readonly isZipped: boolean
  /** As much of it as was looked at. */
  readonly head: Uint8Array
  /** The whole input; to be read once. Of a file, parts can be had at any time, too. */
  readonly source: AsyncGenerator<Uint8Array> & { readonly range?: ByteRange }
}

/** As much as format detection looks at. */
const HEAD_BYTES = 4096

/** `stdin` for `-`, else the path. */
export function inputName(path: string): string {
  return path === '-' ? 'stdin' : path
}

const ENDINGS: Readonly<Record<TraceKind, string>> = { perfetto: 'pftrace', json: 'json' }

/** `<input>.pftrace`, or `.json`, in the current folder. */
export function defaultOutput(path: string, kind: TraceKind): string {
  return `${basename(inputName(path)).replace(/(?<=.)\.gz$/, '')}.${ENDINGS[kind]}`
}

/** `<input>.zip` in the current folder. */
export function zipOutput(path: string): string {
  return defaultOutput(path, 'perfetto').replace(/pftrace$/, 'zip')
}

/** Bytes of a file, or of standard input for `-`. Throws UsageError if it cannot be read. */
export function readInput(path: string, onRead?: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  return path === '-' ? readStandardInput(onRead) : readFileChunks(path, onRead)
}

/** Opens an input and tells what it is. Throws UsageError if it is empty or cannot be read. */
export async function openInput(path: string, onRead?: (bytes: number) => void): Promise<Opened> {
  const name = inputName(path)
  const { head, source } = await peek(readInput(path, onRead))
  if (head.length === 0) throw new UsageError(`${name}: the input is empty (0 bytes)`)
  const plain = unzipped(head)
  const format = sniffFormat(plain)?.name
  const isTrace = format === 'chrome-json' || looksLikeTrace(plain) || looksLikeJsonTrace(plain)
  const kind = format !== undefined ? 'log' : isTrace ? 'trace' : 'unknown'
  const range = path === '-' ? undefined : fileRange(path, onRead)
  return {
    name,
    kind,
    isTrace,
    isZipped: isZipped(head),
    head,
    source: range ? Object.assign(source, { range, beside: sizeBeside(path) }) : source,
  }
}

/** An input as one piece. */
export async function readWhole(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function* readStandardInput(onRead?: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    // Node takes a folder for an empty input.
    if (fstatSync(0).isDirectory()) throw new UsageError('standard input: cannot read: is a directory')
    for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
      bytes += chunk.length
      onRead?.(bytes)
      yield chunk
    }
  } catch (error) {
    const reason = systemReason(error)
    throw reason === undefined ? error : new UsageError(`standard input: cannot read: ${reason}`)
  }
}

/** The first bytes of an input, and the whole input again. */
async function peek(
  chunks: AsyncGenerator<Uint8Array>,
): Promise<{ head: Uint8Array; source: AsyncGenerator<Uint8Array> }> {
  const seen: Uint8Array[] = []
  for (let length = 0; length < HEAD_BYTES; length += seen.at(-1)!.length) {
    const next = await chunks.next()
    if (next.done) break
    seen.push(next.value)
  }
  return { head: Buffer.concat(seen).subarray(0, HEAD_BYTES), source: again(seen, chunks) }
}

async function* again(seen: Uint8Array[], chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for (let piece = seen.shift(); piece; piece = seen.shift()) yield piece
    yield* chunks
  } finally {
    await chunks.return(undefined)
  }
}

function isZipped(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b
}

function unzipped(head: Uint8Array): Uint8Array {
  if (!isZipped(head)) return head
  try {
    // The head is the start of a longer stream: what it gives so far is enough.
    return gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, HEAD_BYTES)
  } catch {
    return head
  }
}

/** A packet's tag, its length, and the tag of a field in it: what every Perfetto trace starts with. */
function looksLikeTrace(head: Uint8Array): boolean {
  if (head[0] !== 0x0a) return false
  const end = head.findIndex((byte, i) => i > 0 && byte < 0x80)
  const field = head[end + 1]
  return end > 0 && end <= 5 && (head.length === end + 1 || (field !== undefined && field >= 8 && (field & 7) <= 5))
}

/** Chrome's JSON: an object with `traceEvents`, or an array of events, each of which has a phase. */
function looksLikeJsonTrace(head: Uint8Array): boolean {
  const text = Buffer.from(head).toString('latin1').trimStart()
  return /^(\{\s*"|\[\s*\{)/.test(text) && /"(traceEvents|ph)"\s*:/.test(text)
}
