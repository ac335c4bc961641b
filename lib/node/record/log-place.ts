import { createHash, randomBytes } from 'node:crypto'
import { type FSWatcher, constants as files, watch } from 'node:fs'
import { link, lstat, open, readdir, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { UsageError } from '../../errors.ts'
import { explainFileError } from '../files.ts'
import { isLeft, ownerMark, ownUntilEnd } from '../left-overs.ts'
import { hiddenNextTo, isReplaceable, outputTarget } from '../outputs.ts'
import { RECORDER_ENVIRONMENT } from './environment.ts'
import { type Environment, type Program, programName } from './program.ts'

/** Longest path that the recorder accepts. */
const PATH_BYTES_MAX = 4000
/** From this size on, the recorder has written more than the first header. */
const BEGUN_BYTES = 4096

/** Names of logs contain the second: as long as this, another recording could choose the same name. */
const NAME_MS = 2000

/**
 * `<program>-<time>.ggtrace`, or with another ending, in the working directory: a name that does not exist yet, and that no other recording of the same
 * second chooses: a hidden file reserves it, for two seconds or until `release`.
 */
export async function newLogName(program: string, ending = 'ggtrace'): Promise<{ output: string; release(): void }> {
  const now = new Date()
  const two = (value: number) => String(value).padStart(2, '0')
  const date = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`
  const time = `${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`
  const stem = `${program.replace(/^-/, '_')}-${date}-${time}`
  for (let count = 1; ; count++) {
    const output = `${stem}${count === 1 ? '' : `-${count}`}.${ending}`
    const reserved = resolve(`.${output}.reserved`)
    const code = await writeFile(reserved, '', { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => error.code)
    if (code === 'EEXIST') continue
    const release = code === undefined ? ownUntilEnd(reserved) : () => undefined
    if (await lstat(output).catch(() => undefined)) {
      release()
      continue
    }
    setTimeout(release, NAME_MS).unref()
    return { output, release }
  }
}

/** A claim is touched this often, and no longer holds after that time. */
const TOUCH_MS = 10e3
const CLAIM_MS = 60e3
/** How long a recording waits for one that began at the same time to withdraw, and how often it looks. */
const WAIT_MS = 20
const LOOKS = 25

/**
 * Claims the name of a log for this recording, by a hidden file next to it: two that replaced it would lose one of the logs. Returns a function
 * that ends the claim.
 */
async function claimLog(output: string): Promise<() => void> {
  const folder = dirname(resolve(output))
  const stem = `.${createHash('sha256').update(basename(output)).digest('hex').slice(0, 16)}`
  const own = `${stem}.${ownerMark()}.${randomBytes(4).toString('hex')}.recording`
  const isWritten = await writeFile(join(folder, own), '', { flag: 'wx' }).then(
    () => true,
    () => false,
  )
  if (!isWritten) return () => undefined
  const release = ownUntilEnd(join(folder, own), TOUCH_MS)
  for (let look = 1; ; look++) {
    const other = await otherClaim(folder, stem, own)
    if (other === undefined) return release
    // Of two that began at the same time, one withdraws.
    if (other.name < own || look === LOOKS) {
      release()
      throw new UsageError(
        `${output}: cannot write: another recording (process ${other.pid}) writes it\nhint: name another file with -o`,
      )
    }
    await delay(WAIT_MS)
  }
}

/** Another recording's claim, the first by name; removes those of recordings that were killed. */
async function otherClaim(
  folder: string,
  stem: string,
  own: string,
): Promise<{ name: string; pid: string } | undefined> {
  for (const name of (await readdir(folder).catch(() => [])).sort()) {
    if (name === own || !name.startsWith(`${stem}.`)) continue
    const [, mark, pid] = /^\.\w+\.((\d+)-\w+)\.\w+\.recording$/.exec(name) ?? []
    if (mark === undefined) continue
    if (!(await isLeft(join(folder, name), mark, CLAIM_MS))) return { name, pid: pid! }
    await unlink(join(folder, name)).catch(() => undefined)
  }
  return undefined
}

/** Where the recorder writes its log. */
export interface LogPlace {
  /** Environment variables that contain its path. */
  readonly environment: Environment
  /** Call it after the program: puts the log in its place, if necessary, and returns its path; undefined if there is no log. */
  settle(): Promise<string | undefined>
  /** Ends the claim of its name. */
  release(): void
}

/**
 * The place of a log. An older log keeps its name until the new log has begun in a temporary file of the same folder, which then
 * replaces it atomically: however the process ends, one of the two has the name.
 * @throws UsageError if another recording writes this log
 */
export async function placeOfLog(output: string): Promise<LogPlace> {
  const release = await claimLog(output)
  const older = await lstat(output).catch(() => undefined)
  if (!older) return { environment: {}, settle: async () => output, release }
  const made = hiddenNextTo(output)
  // The checks run one after the other, and none while the log is settled: two swaps at once would leave a second name.
  let isSwapped = Promise.resolve(false)
  const look = async () => (await isBegun(made)) && (await swap(made, output))
  const watcher = watchFor(made, () => {
    isSwapped = isSwapped.then((isDone) => isDone || look())
  })
  let settled: Promise<string | undefined> | undefined
  const settle = async () => {
    watcher?.close()
    await isSwapped
    return finish(made, output)
  }
  return {
    environment: { [RECORDER_ENVIRONMENT.new]: resolve(made), [RECORDER_ENVIRONMENT.old]: `${older.ino}` },
    settle: () => (settled ??= settle()),
    release,
  }
}

/** Calls `act` when a file changes. If the system cannot watch files, the log is put in its place at the end. */
function watchFor(path: string, act: () => void): FSWatcher | undefined {
  try {
    const name = basename(path)
    const watcher = watch(dirname(path), { persistent: false }, (_, changed) => {
      if (changed === name) act()
    })
    return watcher.on('error', () => undefined)
  } catch {
    return undefined
  }
}

const isBegun = async (path: string): Promise<boolean> =>
  ((await lstat(path).catch(() => undefined))?.size ?? 0) >= BEGUN_BYTES

/** The temporary name stays until the end, so that processes that start later know that there is a first log. */
async function swap(made: string, output: string): Promise<boolean> {
  const second = hiddenNextTo(output)
  try {
    await link(made, second)
    await rename(second, output)
  } catch {
    // This file system has no hard links: the log is put in its place at the end.
    await unlink(second).catch(() => undefined)
  }
  return true
}

async function finish(made: string, output: string): Promise<string | undefined> {
  const [log, there] = await Promise.all([made, output].map((path) => lstat(path).catch(() => undefined)))
  if (!log) return undefined
  if (log.ino === there?.ino && log.dev === there.dev) {
    await unlink(made).catch(() => undefined)
    return output
  }
  return rename(made, output).then(
    () => output,
    () => made,
  )
}

/** Throws UsageError if the log could not be written. */
export async function checkLog(output: string, program: Program): Promise<void> {
  const cannot = (why: string) => new UsageError(`${output}: cannot write: ${why}`)
  if (output === '') throw new UsageError('--output "": expected the path of a file')
  const there = await stat(output).catch(() => undefined)
  if (there?.isDirectory() || output.endsWith('/')) {
    const example = join(output, `${programName(program)}.ggtrace`)
    throw cannot(`is a directory\nhint: name a file, such as ${example}`)
  }
  if (there && !there.isFile()) throw cannot('it is not a regular file')
  if (Buffer.byteLength(resolve(output)) > PATH_BYTES_MAX) throw cannot('the name is too long')
  if (there && program.stats.ino === there.ino && program.stats.dev === there.dev)
    throw cannot('it is the program itself')
  const folder = dirname(output)
  const parent = await stat(folder).catch(() => undefined)
  if (!parent?.isDirectory()) throw cannot(parent ? `${folder} is not a folder` : `no such folder: ${folder}`)
  await outputTarget(folder)
  if (!(await isReplaceable(output))) throw explainFileError(output, 'replace', { code: 'EPERM' })
  // Only an attempt shows whether writing is possible (permissions, read-only file systems, quotas).
  const probe = hiddenNextTo(join(folder, 'log'))
  try {
    await (await open(probe, files.O_CREAT | files.O_EXCL | files.O_WRONLY, 0o600)).close()
    await unlink(probe)
  } catch (error) {
    throw explainFileError(output, 'write', folderIsMissing(error))
  }
}

/** Some file systems (/proc) report that a new file does not exist. */
function folderIsMissing(error: unknown): unknown {
  const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT'
  return isAbsent ? Object.assign(new Error('no files can be made there'), { code: 'EACCES' }) : error
}

/** A log, if there is one. */
export async function logAt(path: string | undefined): Promise<string[]> {
  const stats = path === undefined ? undefined : await stat(path).catch(() => undefined)
  return path !== undefined && stats?.isFile() ? [path] : []
}

/** Logs `<output>.<pid>`, with what distinguishes them from later ones of the same name. */
export async function furtherLogs(output: string): Promise<Map<string, string>> {
  const folder = dirname(output)
  const stem = `${basename(output)}.`
  const names = (await readdir(folder).catch(() => [])).filter(
    (name) => name.startsWith(stem) && /^\d+(\.\d+)?$/.test(name.slice(stem.length)),
  )
  const logs = new Map<string, string>()
  for (const name of names.sort()) {
    const path = folder === '.' && !output.startsWith('./') ? name : join(folder, name)
    const stats = await stat(path).catch(() => undefined)
    if (stats?.isFile()) logs.set(path, `${stats.ino} ${stats.mtimeMs} ${stats.size}`)
  }
  return logs
}

/** The logs that are new since `before`, or have changed. */
export async function changed(output: string, before: ReadonlyMap<string, string>): Promise<string[]> {
  return [...(await furtherLogs(output))].filter(([path, state]) => before.get(path) !== state).map(([path]) => path)
}
