import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { lstat, mkdir, readdir, rm, utimes } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import self from 'node:process'
import { atExit, removeNow } from './at-exit.ts'
import { FOR_THIS_USER, isOwn } from './own-files.ts'

/** Folders of a process that it removes in the end, and that another process removes if it was killed. */

/** Folders of processes that cannot be seen from here are removed if nothing was written there for this long. */
const AGE_MS = 24 * 3600e3
/** As long as its process runs, a temporary folder is never older than this. */
const TOUCH_MS = 3600e3

/**
 * The processes among which a number means one: those of one boot and one PID namespace, since containers have names and numbers in
 * common. Where neither is known, those of a host.
 */
const space = (() => {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1')} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return self.platform === 'linux' ? randomBytes(8).toString('hex') : hostname()
  }
})()
const SPACE = createHash('sha256').update(space).digest('hex').slice(0, 16)

/** The part of a folder's name that says whose it is. */
export const ownerMark = (): string => `${self.pid}-${SPACE}`

/**
 * Was the process of this file or folder killed? `mark`: what {@link ownerMark} returned there; `ageMs`: how long nothing was written if the
 * process cannot be seen from here.
 */
export async function isLeft(path: string, mark: string, ageMs = AGE_MS): Promise<boolean> {
  const [, pid, space] = /^(\d+)-(.*)$/.exec(mark) ?? []
  if (space === SPACE) return !isRunning(Number(pid))
  const names = await readdir(path).catch(() => [])
  const all = await Promise.all(
    [path, ...names.map((name) => join(path, name))].map((at) => lstat(at).catch(() => undefined)),
  )
  return all.every((stats) => !stats || Date.now() - stats.mtimeMs > ageMs)
}

/** Is it running? A process that was killed has its number until its parent, such as a container's first process, has waited for it. */
function isRunning(pid: number): boolean {
  try {
    return self.kill(pid, 0) && !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function isZombie(pid: number): boolean {
  try {
    return /^[ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, ''))
  } catch {
    return false // not Linux, or it has just ended
  }
}

const NAME = /^ggml2perfetto-(\d+-[0-9a-f]{16})-[0-9a-f]{16}$/

/** Keeps a file or folder young while this process runs, and removes it in the end. Returns a function that removes it now. */
export function ownUntilEnd(path: string, touchMs = TOUCH_MS): () => void {
  const touch = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), touchMs).unref()
  const remove = () => removeNow(path)
  const release = atExit(remove)
  return () => {
    clearInterval(touch)
    release()
    remove()
  }
}

/** Removes what a process, a child of this one that has ended, left in these folders and in the temporary one. */
export async function removeLeftOf(pid: number, ...folders: readonly string[]): Promise<void> {
  for (const folder of [...folders, tmpdir()])
    for (const name of await readdir(folder).catch(() => []))
      if (name.includes(`${pid}-${SPACE}`)) removeNow(join(folder, name))
}

/** A folder for temporary files, which only this user can read. */
export interface TemporaryFolder {
  readonly path: string
  /** Removes it; the end of this process does, too. */
  remove(): void
}

/** Makes one, and removes those that processes of this user left. Throws UsageError if another user could replace it. */
export async function temporaryFolder(parent = tmpdir()): Promise<TemporaryFolder> {
  await isOwn(parent, { hint: 'set TMPDIR to a folder of yours' })
  await removeLeft(parent)
  const path = join(parent, `ggml2perfetto-${ownerMark()}-${randomBytes(8).toString('hex')}`)
  await mkdir(path, { mode: FOR_THIS_USER })
  return { path, remove: ownUntilEnd(path) }
}

async function removeLeft(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const mark = NAME.exec(name)?.[1]
    if (mark === undefined) continue
    const path = join(folder, name)
    const stats = await lstat(path).catch(() => undefined)
    if (!stats?.isDirectory() || (self.geteuid && stats.uid !== self.geteuid())) continue
    if (await isLeft(path, mark)) await rm(path, { recursive: true, force: true }).catch(() => undefined)
  }
}
