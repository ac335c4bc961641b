import { createReadStream, fstatSync, type Stats } from 'node:fs'
import { basename } from 'node:path'
import {
  type ByteRange,
  fileRange,
  type Inspected,
  inspect,
  type LogInput,
  readFileChunks,
  sizeBeside,
  type TraceKind,
  UsageError,
} from '../lib/cli.ts'
import { io } from './io.ts'
import { quoted, systemReason } from './terminal.ts'
import { size } from './units.ts'

/** An input of the command line. */
export interface Opened extends Inspected {
  /** Its name in messages. */
  readonly name: string
  /** The whole input; readable once. `range` reads parts of a file at any time. */
  readonly source: Inspected['source'] & { readonly range?: ByteRange }
}

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

/** Opens a log or a trace. Throws UsageError if it is empty, cannot be read, or is an Analysis. */
export async function openInput(path: string, onRead?: (bytes: number) => void): Promise<Opened> {
  const opened = await openAny(path, onRead)
  if (opened.kind !== 'analysis') return opened
  await opened.source.return()
  const hint = `ggml2perfetto stats ${quoted(path)} prints its tables; a trace is made from the log`
  throw new UsageError(`${opened.name}: is an Analysis, not a log or a trace\nhint: ${hint}`)
}

/** Opens an input of any kind. Throws UsageError if it is empty or cannot be read. */
export async function openAny(path: string, onRead?: (bytes: number) => void): Promise<Opened> {
  const name = inputName(path)
  const inspected = await inspect(readInput(path, onRead))
  if (inspected.head.length === 0) throw new UsageError(`${name}: the input is empty (0 bytes)`)
  const range = path === '-' ? undefined : fileRange(path, onRead)
  if (!range) return { ...inspected, name }
  return { ...inspected, name, source: Object.assign(inspected.source, { range, beside: sizeBeside(path) }) }
}

/** Reads an input as one piece. */
export async function readWhole(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Files of options have some KB; calibrations some MB. */
const TEXT_BYTES_MAX = 64 << 20

/** The text of the file of an option. Throws UsageError where it cannot be read, which `explain` words, or is larger than any such file. */
export async function textOfFile(
  option: string,
  path: string,
  explain = (reason: string) => `${option} ${path}: cannot read: ${reason}`,
): Promise<string> {
  try {
    const text = await readWhole(createReadStream(path, { end: TEXT_BYTES_MAX }))
    if (text.length <= TEXT_BYTES_MAX) return new TextDecoder().decode(text)
  } catch (error) {
    const reason = systemReason(error)
    throw reason === undefined ? error : new UsageError(explain(reason))
  }
  throw new UsageError(`${option} ${path}: expected a file of at most ${size(TEXT_BYTES_MAX)}, found more`)
}

/** What standard input is; undefined if it is not of this process. */
export function standardInput(): Stats | undefined {
  const { fd } = io().stdin
  return fd === undefined ? undefined : fstatSync(fd)
}

async function* readStandardInput(onRead?: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    // Node reads a folder as an empty input.
    if (standardInput()?.isDirectory()) throw new UsageError('standard input: cannot read: is a directory')
    for await (const chunk of io().stdin as AsyncIterable<Uint8Array>) {
      bytes += chunk.length
      onRead?.(bytes)
      yield chunk
    }
  } catch (error) {
    const reason = systemReason(error)
    throw reason === undefined ? error : new UsageError(`standard input: cannot read: ${reason}`)
  }
}

/** A log; throws UsageError for a trace or an Analysis. */
export async function logOf(input: string): Promise<LogInput> {
  return asLog(await openInput(input))
}

/** An opened input as a log; throws UsageError for a trace. */
export async function asLog({ name, kind, source }: Opened): Promise<LogInput> {
  if (kind !== 'trace') return { name, source }
  await source.return()
  throw new UsageError(
    `${name}: is a trace, not a log\n` + `hint: ggml2perfetto check ${name}, or: ggml2perfetto query ${name} "<SQL>"`,
  )
}
