import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat, unlink } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import * as self from 'node:process'
import { UsageError } from '../errors.ts'
import { atExit, removeNow } from './at-exit.ts'

/** Checks who may create files in a folder, and which files in it can be trusted. */

/** As many links as Linux follows. */
const LINKS_MAX = 40
/** Permission of a folder in which only owners replace files. */
export const STICKY = 0o1000
/** Anybody may create files in a sticky folder that is writable for all. */
const SHARED = STICKY | 0o002
/** Permissions of new files, before the umask. */
const NEW_FILE = 0o666

/** Links to open files, not to paths. */
const DESCRIPTOR = /^\/proc\/[^/]+\/fd\/[^/]+$/

/** A hidden, unpredictable name in the same folder. */
export function hiddenNextTo(path: string): string {
  return join(dirname(path), `.${basename(path).slice(0, 200)}.${randomBytes(8).toString('hex')}.tmp`)
}

/** A new file in the folder of an output, for what is to become its content, without a name: however this process ends, no file remains. */
export async function namelessFile(output: string): Promise<FileHandle> {
  const path = hiddenNextTo(output)
  const release = atExit(() => removeNow(path))
  try {
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return file
  } finally {
    release()
  }
}

/**
 * The path of an output after its symbolic links are followed, except those of other users: in a folder that is writable for
 * all, such as /tmp, another user's link could point to any of our files. With fs.protected_symlinks Linux does not follow
 * such links; this function also protects systems where it is off. Throws UsageError for such a link, pipe or device.
 */
export async function outputTarget(path: string): Promise<string> {
  if (self.geteuid === undefined) return realpath(path).catch(() => path)
  return followed(path, 'write', async (at, stats, folder) => {
    if (!stats.isDirectory() && !stats.isFile() && (await isForeign(stats, folder))) throw foreign(path, at, stats)
  })
}

/**
 * A path after its symbolic links are followed. `look` is called with each folder, link and file on the way, before it is followed, and
 * may refuse it by an error.
 */
export async function followed(
  path: string,
  doing: 'read' | 'write',
  look: (at: string, stats: Stats, folder: string) => Promise<void> | void,
): Promise<string> {
  if (path === '' || path.endsWith('/')) return path
  const parts = partsOf(isAbsolute(path) ? path : `${resolve('.')}/${path}`)
  let at = '/'
  for (let links = 0; parts.length > 0 && !DESCRIPTOR.test(at); ) {
    const name = parts.shift()!
    const next = join(at, name)
    const stats = name === '..' ? undefined : await lstat(next).catch(() => undefined)
    if (stats) await look(next, stats, at)
    if (!stats?.isSymbolicLink() || DESCRIPTOR.test(next)) {
      at = next
      continue
    }
    if (++links > LINKS_MAX) throw new UsageError(`${path}: cannot ${doing}: too many symbolic links`)
    const to = await readlink(next)
    parts.unshift(...partsOf(to))
    if (isAbsolute(to)) at = '/'
  }
  return join(at, ...parts)
}

const partsOf = (path: string) => path.split('/').filter((part) => part !== '' && part !== '.')

/** Does it belong to a user who could create it only because the folder is writable for all? */
async function isForeign({ uid }: Stats, folder: string): Promise<boolean> {
  const { mode, uid: owner } = await stat(folder)
  return (mode & SHARED) === SHARED && uid !== owner && uid !== self.geteuid?.()
}

function foreign(path: string, found: string, stats: Stats): UsageError {
  const what = stats.isSymbolicLink() ? 'a symbolic link' : 'no regular file, but'
  return new UsageError(
    `${path}: cannot write: ${found} is ${what} of another user (uid ${stats.uid}), in a folder that everybody may write ` +
      'to\nhint: name another file',
  )
}

/** May this process replace the file? In a sticky folder only its owner may. */
export async function isReplaceable(path: string): Promise<boolean> {
  const [there, folder] = await Promise.all([path, dirname(path)].map((at) => lstat(at).catch(() => undefined)))
  const uid = self.geteuid?.()
  return !there || !folder || !(folder.mode & STICKY) || uid === 0 || there.uid === uid || folder.uid === uid
}

/** The permissions of a new file that replaces an older one, if there is one: no more than those of the older file. */
export async function modeFor(target: string): Promise<number> {
  const older = await lstat(target).catch(() => undefined)
  return older?.isFile() ? older.mode & NEW_FILE : NEW_FILE
}

/** Under sudo, the user who called sudo, and the group. */
export function callerOfSudo(): { readonly uid: number; readonly gid: number } | undefined {
  const [uid, gid] = [self.env['SUDO_UID'], self.env['SUDO_GID']].map((text) => Number(text || NaN))
  if (self.geteuid?.() !== 0 || !Number.isInteger(uid) || !Number.isInteger(gid)) return undefined
  return { uid: uid!, gid: gid! }
}

/** Under sudo, gives a new file to the user who called sudo. Uses the open file, because its name may lead elsewhere by now. */
export async function giveToCaller(file: FileHandle): Promise<void> {
  const caller = callerOfSudo()
  // Some file systems have no owners; this error is harmless.
  if (caller) await file.chown(caller.uid, caller.gid).catch(() => undefined)
}

/** The same, for a file or folder that this process or another program of this user has just made. */
export async function giveMadeToCaller(path: string): Promise<void> {
  if (!callerOfSudo()) return
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  if (!file) return
  try {
    const stats = await file.stat()
    // In a folder of another user, the name may be one of another file of root by now.
    if (stats.uid === 0 && (stats.isDirectory() || (stats.isFile() && stats.nlink === 1))) await giveToCaller(file)
  } finally {
    await file.close()
  }
}

/** Makes a folder and those above it, which under sudo belong to the user who called sudo. */
export async function makeOutputFolder(path: string): Promise<void> {
  for (const made of await makeFolders(resolve(path))) await giveMadeToCaller(made)
}

/** How often a folder is made that another process, which has ended its work there, removes before there is anything in it. */
const MAKES_MAX = 10

/**
 * Makes a folder and those above it; returns those that were made. Node's own recursive mkdir never ends in /proc, where a new folder "does not exist",
 * and fails on a read-only file system with that reason.
 */
export async function makeFolders(path: string, mode?: number, tries = MAKES_MAX): Promise<string[]> {
  if (await isFolder(path)) return []
  const above = await makeFolders(dirname(path), mode)
  try {
    await mkdir(path, mode)
    return [...above, path]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await isFolder(path))) return above
    if (code !== 'ENOENT' || tries === 1) throw error
    return [...above, ...(await makeFolders(path, mode, tries - 1))]
  }
}

const isFolder = (path: string) =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )
