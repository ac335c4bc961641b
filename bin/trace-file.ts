import { randomBytes } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ServedTrace, UsageError } from '../lib/cli.ts'
import { systemReason } from './terminal.ts'

/** Bytes are read in pieces of this size. */
const CHUNK_BYTES = 1 << 18

/** A trace in a file. */
export async function traceInFile(name: string, path: string): Promise<ServedTrace> {
  const file = await open(path)
  return traceOf(name, file, (await file.stat()).size)
}

/**
 * Stores a trace in a temporary file without a name: the system removes it when this process ends, for any reason. Also
 * returns what `pieces` returns.
 */
export async function keptTrace<R>(
  name: string,
  pieces: AsyncIterator<Uint8Array, R, void>,
): Promise<{ trace: ServedTrace; result: R }> {
  const file = await writing(namelessFile())
  let bytes = 0
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next()) {
    bytes += next.value.length
    await writing(file.writeFile(next.value))
  }
  return { trace: traceOf(name, file, bytes), result: next.value }
}

async function namelessFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `ggml2perfetto-${randomBytes(8).toString('hex')}.tmp`)
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

async function writing<T>(done: Promise<T>): Promise<T> {
  try {
    return await done
  } catch (error) {
    const reason = systemReason(error)
    if (reason === undefined) throw error
    throw new UsageError(
      `${tmpdir()}: cannot keep the trace here: ${reason}\nhint: TMPDIR=<folder> names another place`,
    )
  }
}

function traceOf(name: string, file: FileHandle, bytes: number): ServedTrace {
  const range = { start: 0, end: bytes - 1, autoClose: false, highWaterMark: CHUNK_BYTES }
  return { name, bytes, read: () => file.createReadStream(range) }
}
