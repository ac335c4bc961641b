import { readFileSync, type Stats } from 'node:fs'
import { realpath } from 'node:fs/promises'
import * as self from 'node:process'
import { UsageError } from '../errors.ts'
import { exists } from './files.ts'
import { callerOfSudo, followed, STICKY } from './outputs.ts'

/** Decides whose files are used at places that everybody can guess: in the cache, in the temporary folder, and where models and programs usually are. */

/** Users whose files and programs are trusted: root, this user, and the one who called sudo. */
export const trustedUsers = (): readonly (number | undefined)[] => [0, self.geteuid?.(), callerOfSudo()?.uid]

/** Permissions of folders, which other users cannot look into. */
export const FOR_THIS_USER = 0o700

/** What {@link isOwn} assumes. */
export interface OwnOptions {
  /** A folder of this program, such as that in the cache: neither there nor below it may a group write. */
  readonly within?: string | undefined
  /** What the user can do if the file is not used, as a message. */
  readonly hint: string
}

/** Permissions of others than the owner. */
const [FOR_GROUP, FOR_ALL] = [0o020, 0o002]

/**
 * Is there a file or a folder, which only this user, root and the caller of sudo can have put there? False: there is nothing. A group of which the
 * owner is the only member, by its number, may write to folders that this program has not made: files have this permission where the umask is 002.
 * @throws UsageError with the owner or the permissions, if another user can have made or replaced it, a folder above it or a symbolic link to it
 */
export async function isOwn(path: string, { within, hint }: OwnOptions): Promise<boolean> {
  if (self.geteuid === undefined) return exists(path)
  const made = within === undefined ? undefined : await realpath(within).catch(() => within)
  const isMade = (at: string) => made !== undefined && (at === made || at.startsWith(`${made}/`))
  const end = await followed(path, 'read', (at, stats) => {
    const why = whyForeign(stats, isMade(at))
    if (why === undefined) return
    const what = at === path ? '' : stats.isSymbolicLink() ? `the symbolic link ${at} ` : `${at} `
    throw new UsageError(`${path}: is not used: ${what || 'it '}${why}\nhint: ${hint}`)
  })
  return exists(end)
}

function whyForeign(stats: Stats, isMade: boolean): string | undefined {
  const { uid, gid, mode } = stats
  const isFolderAbove = stats.isDirectory() && !isMade
  if (!trustedUsers().includes(uid) && !(isFolderAbove && isUnmapped(uid)))
    return `belongs to another user (uid ${uid})`
  // Files in a sticky folder are replaced by their owners only.
  if (stats.isSymbolicLink() || (isFolderAbove && mode & STICKY)) return undefined
  const isOfGroup = (mode & FOR_GROUP) !== 0 && (isMade || gid !== uid)
  const who = mode & FOR_ALL ? 'everybody' : isOfGroup ? `the group ${gid}` : undefined
  return who && `can be written by ${who} (mode ${(mode & 0o7777).toString(8)})`
}

/** In a user namespace without the system's root, the system's folders belong to this user. */
const OVERFLOW = 65534
const ALL_USERS = /^\s*0\s+0\s+4294967295$/

function isUnmapped(uid: number): boolean {
  if (uid !== OVERFLOW) return false
  try {
    return !ALL_USERS.test(readFileSync('/proc/self/uid_map', 'latin1').trimEnd())
  } catch {
    return false // not Linux
  }
}
