import { createReadStream, statSync } from 'node:fs'
import { open, rename, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../errors.ts'
import type { ByteRange, RangedSource, SizeBeside } from '../input/byte-source.ts'
import { atExit, removeNow } from './at-exit.ts'
import { giveToCaller, hiddenNextTo, modeFor, outputTarget } from './outputs.ts'

/** Bytes are read in pieces of this size. */
const CHUNK_BYTES = 1 << 17

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EISDIR: 'is a directory, expected a file',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOSPC: 'no space left on the device',
  EROFS: 'the file system is read-only',
  EDQUOT: 'disk quota exceeded',
  EFBIG: 'file too large',
  EEXIST: 'a file of this name is there',
  ENOTDIR: 'a part of the path is not a directory',
  EIO: 'input/output error',
  ENAMETOOLONG: 'name too long',
  ELOOP: 'too many symbolic links',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files',
  ENXIO: 'no such device or address',
  EPIPE: 'the reader of the pipe is gone',
}

/** Does a file or a folder exist? */
export const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** The error of a failed file operation as a message; other errors are returned unchanged. */
export function explainFileError(path: string, doing: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  const isFolder = code === 'ENOENT' && doing === 'write'
  const reason = isFolder ? `no such folder: ${dirname(path)}` : code === undefined ? undefined : REASONS[code]
  // A line feed in a name could make a part of the name look like a message of this program.
  return reason === undefined
    ? error
    : new UsageError(`${path}: cannot ${doing}: ${reason}`.replaceAll('\n', '\\n'), { code, cause: error })
}

/** The result of a file operation. Rejects with the error of {@link explainFileError}. */
export function explained<T>(path: string, doing: string, operation: Promise<T>): Promise<T> {
  return operation.catch((error) => {
    throw explainFileError(path, doing, error)
  })
}

/** A file's size in bytes, or undefined if it has none (a pipe). Throws UsageError if it cannot be read. */
export async function fileSize(path: string): Promise<number | undefined> {
  try {
    const stats = await stat(path)
    if (stats.isDirectory()) throw new UsageError(`${path}: cannot read: is a directory, expected a file`)
    return stats.isFile() ? stats.size : undefined
  } catch (error) {
    throw explainFileError(path, 'read', error)
  }
}

/** The path of a file, from its `file:` URL, too. Throws UsageError for another URL. */
export function pathOf(file: string | URL): string {
  if (typeof file === 'string') return file
  if (file.protocol === 'file:') return fileURLToPath(file)
  throw new UsageError(
    `${file.href}: expected a path or a file: URL\nhint: { name, source: await fetch(url) } is an input`,
  )
}

/**
 * A file as an input: any part of it can be read at any time, unless it is a pipe. `onRead` as in {@link readFileChunks}. Throws
 * UsageError for a URL of something else.
 */
export function fileSource(
  file: string | URL,
  onRead?: (bytes: number) => void,
): AsyncIterable<Uint8Array> | RangedSource {
  const path = pathOf(file)
  const source = { [Symbol.asyncIterator]: () => readFileChunks(path, onRead) }
  const range = fileRange(path, onRead)
  return range ? { ...source, range, beside: sizeBeside(path) } : source
}

/** Returns a function that returns the size of the file `<path><ending>`, or 0 if it does not exist. */
export function sizeBeside(path: string): SizeBeside {
  return async (ending) => (await stat(`${path}${ending}`).catch(() => undefined))?.size ?? 0
}

/** Returns a function that reads any part of a file; undefined if it is not a file on a disk. */
export function fileRange(path: string, onRead?: (bytes: number) => void): ByteRange | undefined {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined
  return (start, end) => readFileChunks(path, onRead, start, end)
}

/**
 * A file's bytes, by default all of them. `onRead` is called with the number of bytes read so far. Throws UsageError if the file
 * cannot be read.
 */
export async function* readFileChunks(
  path: string,
  onRead?: (bytes: number) => void,
  start = 0,
  end = Infinity,
): AsyncGenerator<Uint8Array> {
  if (end <= start) return
  const part = start === 0 && end === Infinity ? {} : { start, end: end - 1 } // a pipe has no parts
  const stream = createReadStream(path, { highWaterMark: CHUNK_BYTES, ...part })
  let bytes = start
  try {
    for await (const chunk of stream) {
      bytes += chunk.length
      onRead?.(bytes)
      yield chunk
    }
  } catch (error) {
    throw explainFileError(path, 'read', error)
  } finally {
    stream.destroy()
  }
}

/**
 * Writes a file that appears under its name only when it is complete: pieces go to a temporary file in the same folder, which
 * is renamed at the end. On any error the temporary file is removed and an older file stays unchanged. Devices and
 * pipes (`/dev/null`) are written directly, not replaced. For a symbolic link, its target is replaced, unless the link
 * belongs to another user, in a folder such as /tmp. The permissions of the new file are those that the umask leaves, and no
 * more than those of the older file; under sudo it belongs to the user who called sudo. Returns what `pieces` returns and the
 * bytes written. Throws UsageError if the file cannot be written, and what `pieces` throws.
 */
export async function writeFileWhole<R>(
  path: string,
  pieces: AsyncGenerator<Uint8Array, R>,
): Promise<{ result: R; bytes: number }> {
  const target = await outputTarget(path)
  const straight = await isDeviceOrPipe(path)
  const temporary = straight ? path : hiddenNextTo(target)
  const failed = (error: unknown) => explainFileError(path, 'write', error)
  const release = straight ? () => undefined : atExit(() => removeNow(temporary))
  const mode = await modeFor(target)
  // wx: O_EXCL, which does not follow links either
  const file = await open(temporary, straight ? 'w' : 'wx', mode).catch((error) => {
    release()
    throw failed(error)
  })
  let bytes = 0
  try {
    if (!straight) await giveToCaller(file)
    let next = await pieces.next()
    for (; !next.done; next = await pieces.next()) {
      bytes += next.value.length
      await file.writeFile(next.value).catch((error) => Promise.reject(failed(error)))
    }
    await file.close().catch((error) => Promise.reject(failed(error)))
    if (!straight) await rename(temporary, target).catch((error) => Promise.reject(failed(error)))
    return { result: next.value, bytes }
  } catch (error) {
    await pieces.return(undefined as R).catch(() => undefined)
    await file.close().catch(() => undefined)
    if (!straight) await unlink(temporary).catch(() => undefined)
    throw error
  } finally {
    release()
  }
}

async function isDeviceOrPipe(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isDirectory()) return false
  // A file that is some process's standard output must not be replaced: that process would keep the old one.
  const isDescriptor = /^\/(dev\/(fd\/|std(out|err)$)|proc\/[^/]+\/fd\/)/.test(path)
  return isDescriptor || (stats !== undefined && !stats.isFile())
}

/** Are two paths the same file? */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)))
  return first !== undefined && second?.isFile() === true && first.ino === second.ino && first.dev === second.dev
}
