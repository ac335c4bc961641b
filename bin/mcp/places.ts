import { readdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { UsageError } from '../../lib/cli.ts'
import { plural } from '../units.ts'

/** Files of a folder that are looked at, at most. */
const FILES_MAX = 10_000

/** An input of a call: a file or a folder that is within the folders of the server, without symbolic links. */
export interface Place {
  /** As it was given. */
  readonly given: string
  /** For the command, which runs in the first folder. No option begins so, and no URL. */
  readonly path: string
  /** Changes if the file, or one in the folder, is written or replaced. */
  readonly stamp: string
}

const isWithin = (path: string, folder: string) => {
  const from = relative(folder, path)
  return from === '' || (from !== '..' && !from.startsWith(`..${sep}`) && !isAbsolute(from))
}

/** The folders whose files may be read. */
export class Places {
  readonly #folders: readonly { readonly given: string; readonly real: string }[]

  private constructor(folders: Places['all']) {
    this.#folders = folders
  }

  /** Throws UsageError for what is no folder. */
  static async of(paths: readonly string[]): Promise<Places> {
    const folders: Places['all'][number][] = []
    for (const path of paths) {
      const real = await realpath(path).catch(() => undefined)
      if (real === undefined || !(await stat(real)).isDirectory())
        throw new UsageError(`--folder ${path}: expected a folder, found ${real === undefined ? 'nothing' : 'a file'}`)
      folders.push({ given: resolve(path), real })
    }
    return new Places(folders)
  }

  /** The folders, as given and without symbolic links. */
  get all(): readonly { readonly given: string; readonly real: string }[] {
    return this.#folders
  }

  /** The folder in which commands run, and in which logs are recorded. */
  get first(): string {
    return this.#folders[0]!.real
  }

  /** A file, or a folder if `kind` allows it. Throws UsageError for what is outside of the folders, also by a symbolic link, and for devices and pipes. */
  async input(given: string, kind: 'file' | 'file or folder' = 'file'): Promise<Place> {
    if (given.includes('\0')) throw new UsageError(`${JSON.stringify(given)}: expected a path, found a character NUL`)
    const absolute = resolve(this.first, given)
    // Whether a file exists elsewhere is not to be found out here.
    if (!this.#contain(absolute)) throw this.#outside(given)
    const real = await realpath(absolute).catch((error: NodeJS.ErrnoException) => {
      throw new UsageError(`${given}: cannot read: ${error.code === 'ENOENT' ? 'no such file' : error.code}`)
    })
    if (!this.#contain(real)) throw this.#outside(given, 'a symbolic link leads outside of them')
    const found = await stat(real)
    if (!found.isFile() && !(found.isDirectory() && kind !== 'file'))
      throw new UsageError(
        `${given}: expected a ${kind}, found a ${found.isDirectory() ? 'folder' : 'device, pipe or socket'}`,
      )
    const from = relative(this.first, real)
    const path = !isWithin(real, this.first) ? real : /^-|:/.test(from) || from === '' ? `./${from}` : from
    return { given, path, stamp: await this.#stampOf(real, given) }
  }

  /** Throws UsageError if a file changed since it was looked at: figures of two states of a file are wrong. */
  async refuseChanged(places: readonly Place[]): Promise<void> {
    for (const { given, path, stamp } of places) {
      const now = await this.#stampOf(resolve(this.first, path), given)
      if (now === stamp) continue
      throw new UsageError(
        `${given}: changed while it was read: expected ${described(stamp)}, found ${described(now)}\n` +
          'hint: call again when the recording has ended',
      )
    }
  }

  #contain(path: string): boolean {
    return this.#folders.some(({ given, real }) => isWithin(path, given) || isWithin(path, real))
  }

  #outside(given: string, why = 'it is in none of them'): UsageError {
    const folders = this.#folders.map(({ given }) => given).join(', ')
    return new UsageError(
      `${given}: expected a path within ${folders}; ${why}\nhint: start ggml2perfetto-mcp with --folder for further folders`,
    )
  }

  async #stampOf(path: string, given: string): Promise<string> {
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined) return 'none'
    if (!this.#contain(real)) throw this.#outside(given, 'a symbolic link leads outside of them')
    const found = await stat(real, { bigint: true })
    const { dev, ino, size, mtimeNs } = found
    if (!found.isDirectory()) return `${size} bytes:${mtimeNs}:${dev}:${ino}:${real}`
    const names = await readdir(real, { recursive: true })
    if (names.length > FILES_MAX)
      throw new UsageError(`${given}: expected at most ${plural(FILES_MAX, 'file')}, found ${names.length}`)
    const stamps: string[] = []
    for (const name of names) {
      const entry = join(real, name)
      const isFolder = (await stat(entry).catch(() => undefined))?.isDirectory()
      // A folder's own files are among the names; one behind a symbolic link is not.
      const target = await realpath(entry).catch(() => 'none')
      if (target !== 'none' && !this.#contain(target))
        throw this.#outside(join(given, name), 'a symbolic link leads outside of them')
      if (!isFolder) stamps.push(`${name} ${await this.#stampOf(entry, given)}`)
    }
    return `${plural(stamps.length, 'file')}:${stamps.join('\n')}`
  }
}

/** The part of a stamp that is for people. */
const described = (stamp: string) => stamp.slice(0, stamp.includes(':') ? stamp.indexOf(':') : undefined)
