import { randomBytes } from 'node:crypto'
import { createReadStream, fstatSync, openSync, unlinkSync, writeFile } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ServedTrace, UsageError } from '../lib/cli.ts'
import { systemReason } from './terminal.ts'

/** Bytes are read in pieces of this size. */
const CHUNK_BYTES = 1 << 18

/** A trace in a file. */
export async function traceInFile(name: string, path: string): Promise<ServedTrace> {
  const file = openSync(path, 'r')
  return traceOf(name, file, fstatSync(file).size)
}

/**
 * Stores a trace in a temporary file without a name: the system removes it when this process ends, for any reason. Also
 * returns what `pieces` returns.
 */
export async function keptTrace<R>(
  name: string,
  pieces: AsyncIterator<Uint8Array, R, void>,
  folder = tmpdir(),
): Promise<{ trace: ServedTrace; result: R }> {
  const file = await writing(folder, namelessFile(folder))
  let bytes = 0
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next()) {
    bytes += next.value.length
    await writing(folder, write(file, next.value))
  }
  return { trace: traceOf(name, file, bytes), result: next.value }
}

/** Both in one turn: no handler of a signal, which ends the process, runs while the file has a name. */
async function namelessFile(folder: string): Promise<number> {
  const path = join(folder, `ggml2perfetto-${randomBytes(8).toString('hex')}.tmp`)
  const file = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  return file
}

/** At the position of the file. */
const write: (file: number, bytes: Uint8Array) => Promise<void> = promisify(writeFile)

async function writing<T>(folder: string, done: Promise<T>): Promise<T> {
  try {
    return await done
  } catch (error) {
    const reason = systemReason(error)
    if (reason === undefined) throw error
    throw new UsageError(`${folder}: cannot keep the trace here: ${reason}\nhint: TMPDIR=<folder> names another place`)
  }
}

function traceOf(name: string, fd: number, bytes: number): ServedTrace {
  const range = { fd, start: 0, end: bytes - 1, autoClose: false, highWaterMark: CHUNK_BYTES }
  return { name, bytes, read: () => createReadStream('', range) }
}
