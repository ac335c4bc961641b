import { type FSWatcher, watch } from 'node:fs'
import { link, lstat, rename, unlink } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { hiddenBeside } from '../outputs.ts'
import { RECORDER_ENVIRONMENT } from './environment.ts'
import type { Environment } from './program.ts'

/** From this size on, a log is more than its first header: the recorder has its first piece of the disk. */
const BEGUN_BYTES = 4096

/** Where the recorder writes its log. */
export interface LogPlace {
  /** Variables of the environment that name it. */
  readonly environment: Environment
  /** After the program: puts the log in its place, if that was not done, and returns where it is; undefined if there is none. */
  settle(): Promise<string | undefined>
}

/**
 * The place of a log. An older one keeps its name until there is a new one, which is made beside it and takes its place
 * at once: whatever ends us, one of the two has the name.
 */
export async function placeOfLog(output: string): Promise<LogPlace> {
  const older = await lstat(output).catch(() => undefined)
  if (!older) return { environment: {}, settle: async () => output }
  const made = hiddenBeside(output)
  // One look after the other, and none under way when the log is settled: a swap in two places would leave a second name.
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
  }
}

/** Calls `act` when something is done to a file. Where the system cannot watch, the log takes its place in the end. */
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

/** The name that it was made by stays until the end: processes that start later know by it that there is a first log. */
async function swap(made: string, output: string): Promise<boolean> {
  const second = hiddenBeside(output)
  try {
    await link(made, second)
    await rename(second, output)
  } catch {
    // This file system has no links. Then it takes its place in the end.
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
