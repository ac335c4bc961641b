import { createReadStream, statSync, unlinkSync } from 'node:fs'
import { open, rename, stat, unlink } from 'node:fs/promises'
import { UsageError } from '../errors.ts'
import type { ByteRange, RangedSource, SizeBeside } from '../input/byte-source.ts'
import { giveToCaller, hiddenBeside, modeFor, outputTarget } from './outputs.ts'

/** Bytes are read in pieces of this size. */
const CHUNK_BYTES = 1 << 18

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EISDIR: 'is a directory, expected a file',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOSPC: 'no space left on the device',
  EROFS: 'the file system is read-only',
  EDQUOT: 'disk quota exceeded',
  EFBIG: 'file too large',
  ENOTDIR: 'a part of the path is not a directory',
  EIO: 'input/output error',
  ENAMETOOLONG: 'name too long',
  ELOOP: 'too many symbolic links',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files',
  ENXIO: 'no such device or address',
  EPIPE: 'the reader of the pipe is gone',
}

/** The error of a failed file operation, in words; errors of another kind are returned as they are. */
export function explainFileError(path: string, doing: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  const reason = code === undefined ? undefined : REASONS[code]
  // Of a name with a line feed, each line could pass for one of ours.
  return reason === undefined ? error : new UsageError(`${path.replaceAll('\n', '\\n')}: cannot ${doing}: ${reason}`)
}

/** A file's size in bytes, or undefined for what has none (a pipe). Throws UsageError if it cannot be read. */
export async function fileSize(path: string): Promise<number | undefined> {
  try {
    const stats = await stat(path)
    if (stats.isDirectory()) throw new UsageError(`${path}: cannot read: is a directory, expected a file`)
    return stats.isFile() ? stats.size : undefined
  } catch (error) {
    throw explainFileError(path, 'read', error)
  }
}

/** A file as an input: any part of it can be had at any time, unless it is a pipe. `onRead` as in {@link readFileChunks}. */
export function fileSource(path: string, onRead?: (bytes: number) => void): AsyncIterable<Uint8Array> | RangedSource {
  const source = { [Symbol.asyncIterator]: () => readFileChunks(path, onRead) }
  const range = fileRange(path, onRead)
  return range ? { ...source, range, beside: sizeBeside(path) } : source
}

/** How to look for files beside a file. */
export function sizeBeside(path: string): SizeBeside {
  return async (ending) => (await stat(`${path}${ending}`).catch(() => undefined))?.size ?? 0
}

/** How to have any part of a file at any time; undefined for what is no file on a disk. */
export function fileRange(path: string, onRead?: (bytes: number) => void): ByteRange | undefined {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined
  return (start, end) => readFileChunks(path, onRead, start, end)
}

/**
 * A file's bytes, by default all of them. `onRead` is told how far the file was read. Throws UsageError if it cannot be
 * read.
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

/** Temporary files of outputs that are being written now. */
const unfinished = new Set<string>()

/** Removes every half-written output at once. For handlers of signals, which cannot wait. */
export function removeUnfinished(): void {
  for (const path of unfinished) {
    try {
      unlinkSync(path)
    } catch {
      // It is gone, or it cannot be removed: either way there is nothing more to do.
    }
  }
}

/**
 * Writes a file that appears under its name only when it is complete: pieces go to a temporary file beside it, which
 * is renamed at the end. On any error the temporary file is removed and an older file stays as it was. Devices and
 * pipes (`/dev/null`) are written straight, not replaced; of a symbolic link, the file behind it is replaced, unless it is
 * another user's link in a folder such as /tmp. The new file has the rights that the umask leaves, and none that an older one
 * has not; under sudo it belongs to the user who called it. Returns what `pieces` returns and the bytes written. Throws
 * UsageError if it cannot be written, and what `pieces` throws.
 */
export async function writeFileWhole<R>(
  path: string,
  pieces: AsyncGenerator<Uint8Array, R>,
): Promise<{ result: R; bytes: number }> {
  const target = await outputTarget(path)
  const straight = await isDeviceOrPipe(path)
  const temporary = straight ? path : hiddenBeside(target)
  const failed = (error: unknown) => explainFileError(path, 'write', error)
  if (!straight) unfinished.add(temporary)
  const mode = await modeFor(target)
  // wx: O_EXCL, which follows no link either
  const file = await open(temporary, straight ? 'w' : 'wx', mode).catch((error) => {
    unfinished.delete(temporary)
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
    unfinished.delete(temporary)
  }
}

async function isDeviceOrPipe(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isDirectory()) return false
  // A file that is somebody's standard output is theirs to write to: replacing it would leave them with the old one.
  const isDescriptor = /^\/(dev\/(fd\/|std(out|err)$)|proc\/[^/]+\/fd\/)/.test(path)
  return isDescriptor || (stats !== undefined && !stats.isFile())
}

/** Are two paths the same file, however they are written? */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)))
  return first !== undefined && second?.isFile() === true && first.ino === second.ino && first.dev === second.dev
}
