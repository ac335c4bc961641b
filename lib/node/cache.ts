import { randomBytes } from 'node:crypto'
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { UsageError } from '../errors.ts'
import { atExit, removeNow } from './at-exit.ts'
import { explainFileError } from './files.ts'
import { makeFolders } from './outputs.ts'
import { FOR_THIS_USER, isOwn } from './own-files.ts'
import type { Environment } from './record/program.ts'

/** The user's files that this program makes once: native files that it builds, and what it measures. */

/** `$XDG_CACHE_HOME/ggml2perfetto` or `~/.cache/ggml2perfetto`. */
function cacheFolder(env: Environment): string {
  // The XDG specification requires to ignore a path that is not absolute.
  const wanted = env['XDG_CACHE_HOME']
  return join(wanted?.startsWith('/') ? wanted : join(env['HOME'] || homedir(), '.cache'), 'ggml2perfetto')
}

/** The path of a file in the cache, which may not exist. */
export const cachedPath = (env: Environment, name: string): string => join(cacheFolder(env), name)

/** Is there such a file in the cache? Throws UsageError if another user can have put it there. */
export function isCached(env: Environment, name: string): Promise<boolean> {
  const hint = 'remove it, so that it is made again, or set XDG_CACHE_HOME to a folder of yours'
  return isOwn(cachedPath(env, name), { within: cacheFolder(env), hint })
}

/** A text that {@link cacheText} stored; undefined: none. Throws UsageError if another user can have put it there. */
export async function cachedText(env: Environment, name: string): Promise<string | undefined> {
  return (await isCached(env, name)) ? readFile(cachedPath(env, name), 'utf8').catch(() => undefined) : undefined
}

/** Stores a text, which replaces an earlier one. Throws UsageError if it cannot be written. */
export function cacheText(env: Environment, name: string, text: string): Promise<void> {
  return cacheMade(env, name, (to) => writeFile(to, text, { mode: 0o600 }))
}

/**
 * Makes a file or a folder that appears under its name only when it is complete; two processes may do so at once. `isThere`: has the other one made such
 * a folder? Otherwise, the folder is replaced. Throws UsageError if it cannot be written, or if the cache is another user's.
 */
export async function cacheMade(
  env: Environment,
  name: string,
  make: (path: string) => Promise<void>,
  isThere = async () => false,
): Promise<void> {
  const path = cachedPath(env, name)
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`
  const release = atExit(() => removeNow(temporary))
  try {
    await makeFolders(dirname(path), FOR_THIS_USER)
    await isCached(env, '')
    await make(temporary)
    await rename(temporary, path).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
      const isMade = await isThere()
      await rm(isMade ? temporary : path, { recursive: true })
      if (!isMade) await rename(temporary, path)
    })
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => undefined)
    const explained = explainFileError(path, 'write', error)
    if (explained === error) throw error
    const hint = 'hint: set XDG_CACHE_HOME to a folder that can be written to'
    throw new UsageError(`${(explained as Error).message}\n${hint}`)
  } finally {
    release()
  }
  await trim(dirname(path))
}

/** Builds of other versions that remain, and files of peaks and kernels of other numbers of CPUs and versions of ggml; the latest. */
const KEPT_MAX = 8
/** Younger ones may be in use. */
const KEPT_MS = 7 * 24 * 3600e3
/** Names of what this program has put there, and of what a killed one left. */
const isKept = (name: string) =>
  /-[0-9a-f]{16}(?:\.json)?(?:\.[0-9a-f]{8}\.tmp)?$/.test(name) && /^(?:\d+\.\d|peaks-|kernels-)/.test(name)

/** Removes older builds and files from the cache; one that cannot be removed remains. */
async function trim(folder: string): Promise<void> {
  const names = (await readdir(folder).catch(() => [])).filter(isKept)
  const times = await Promise.all(
    names.map(async (name) => ({ name, ms: (await stat(join(folder, name)).catch(() => undefined))?.mtimeMs ?? 0 })),
  )
  const old = times.toSorted((a, b) => b.ms - a.ms).slice(KEPT_MAX)
  for (const { name, ms } of old)
    if (Date.now() - ms > KEPT_MS) await rm(join(folder, name), { recursive: true, force: true }).catch(() => undefined)
}
