import { constants, type Stats } from 'node:fs'
import { access, open, realpath, stat } from 'node:fs/promises'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { exists } from '../files.ts'
import { type Elf, readElf } from './elf.ts'

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The program of a command. */
export interface Program {
  /** Its name in the command. */
  readonly name: string
  /** The file to run. */
  readonly path: string
  /** Is it run by another program, named by `#!` or (without that) the shell? */
  readonly isScript: boolean
  /** What the system loads: the file, or the interpreter of a script. */
  readonly executable: string
  readonly stats: Stats
  readonly elf: Elf
}

/** The functions whose first call begins a log. */
export const STARTING_FUNCTIONS = ['llama_decode', 'llama_encode', 'ggml_backend_graph_compute_async'] as const

/** What programs that contain llama.cpp or ggml contain in messages and tables, even without symbols: a function, and an op. */
const TEXTS_INSIDE = [STARTING_FUNCTIONS[0], '\0GET_ROWS_BACK\0'] as const

/** `ld.so <program>` has no loader and needs none. */
export const isLoader = (path: string): boolean => /\/ld(-linux[\w-]*|-musl-[\w-]+|64)?\.so[\d.]*$/.test(path)

/** The dynamic loader of a program; undefined if it is static, or not known. */
export const loaderOf = ({ elf, executable }: Program): string | undefined =>
  isLoader(executable) ? executable : elf.loader || undefined

/** Where execvp searches without PATH. */
const PATH_DEFAULT = '/bin:/usr/bin'
/** How much of a file Linux reads to find `#!`. */
const SHEBANG_BYTES = 256
const SCRIPTS_MAX = 5
const LIBRARIES_MAX = 100
const SYSTEM_FOLDERS = ['/usr/local/lib', '/lib64', '/usr/lib64', '/lib', '/usr/lib']

/** A UsageError for a program that cannot be run, with the exit code of a shell in that case: 127 or 126. */
export function programError(exitCode: 126 | 127, message: string): UsageError & { readonly exitCode: number } {
  return Object.assign(new UsageError(message), { exitCode })
}

/** Finds a program as a shell does. Throws {@link programError} if it does not exist or cannot be run. */
export async function findProgram(name: string, env: Environment, cwd: string): Promise<Program> {
  const path = name.includes('/') ? name : await searchPath(name, env, cwd)
  await checkExecutable(name, resolve(cwd, path))
  let executable = resolve(cwd, path)
  for (let scripts = 0; scripts <= SCRIPTS_MAX; scripts++) {
    const elf = await readElf(executable, STARTING_FUNCTIONS).catch((error) => {
      // A program may be executable but not readable: then nothing is known about it.
      if ((error as NodeJS.ErrnoException).code === 'EACCES') return UNREADABLE
      throw error
    })
    if (elf) {
      if (elf.loader && !(await exists(elf.loader))) {
        throw programError(127, `${name}: cannot run: its loader ${elf.loader} is not on this machine`)
      }
      return { name, path, isScript: scripts > 0, executable, stats: await stat(executable), elf }
    }
    executable = resolve(cwd, await interpreter(name, executable))
    if (!(await exists(executable))) {
      throw programError(127, `${name}: cannot run: its interpreter ${executable} is not on this machine`)
    }
  }
  throw programError(126, `${name}: cannot run: too many scripts that run scripts`)
}

/** A program by its file alone; undefined: it is no such file any more, or cannot be read. */
export async function programOf(executable: string): Promise<Program | undefined> {
  const elf = await readElf(executable, STARTING_FUNCTIONS).catch(() => undefined)
  const stats = await stat(executable).catch(() => undefined)
  return elf && stats && { name: executable, path: executable, isScript: false, executable, stats, elf }
}

/** A dynamic program about which nothing else is known. */
const UNREADABLE: Elf = {
  bits: 64,
  machine: 0,
  loader: '',
  needed: [],
  folders: [],
  imports: new Set(),
  exports: new Set(),
  symbols: new Set(),
}

async function searchPath(name: string, env: Environment, cwd: string): Promise<string> {
  let refused: unknown
  for (const folder of (env['PATH'] ?? PATH_DEFAULT).split(delimiter)) {
    const path = join(folder === '' ? '.' : folder, name)
    const whole = resolve(cwd, path)
    if (!(await stat(whole).catch(() => undefined))?.isFile()) continue
    const problem = await checkExecutable(name, whole).catch((error: unknown) => error)
    // With a slash, so that it is not searched again.
    if (problem === undefined) return path.includes('/') ? path : `./${path}`
    refused ??= problem
  }
  if (refused !== undefined) throw refused
  const isHere = (await stat(resolve(cwd, name)).catch(() => undefined))?.isFile()
  const hint = isHere ? `it is in this folder: ./${name}` : 'give its path, or see that its folder is in PATH'
  throw programError(127, `${name}: no such program in PATH\nhint: ${hint}`)
}

async function checkExecutable(name: string, path: string): Promise<void> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw programError(127, `${name}: no such program`)
    if (error.code === 'ENOTDIR') throw programError(126, `${name}: a part of the path is not a directory`)
    throw programError(126, `${name}: cannot run: ${error.code === 'EACCES' ? 'permission denied' : error.message}`)
  })
  if (stats.isDirectory()) throw programError(126, `${name}: cannot run: is a directory`)
  const isRefused = await access(path, constants.X_OK).catch(() => true)
  if (isRefused || !stats.isFile())
    throw programError(126, `${name}: cannot run: it is not executable\nhint: chmod +x ${name}`)
}

/** The interpreter of a file that is not an ELF file: the one after `#!`, else the shell. */
async function interpreter(name: string, path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(SHEBANG_BYTES), 0, SHEBANG_BYTES, 0)
    const head = Buffer.from(buffer.subarray(0, bytesRead)).toString()
    const line = head.split('\n', 1)[0]!
    const named = /^#![ \t]*([^ \t]+)/.exec(line)?.[1]
    if (named !== undefined) return named
    if (line.includes('\0') || line.startsWith('\x7fELF'))
      throw programError(126, `${name}: cannot run: it is no program of this system`)
    return '/bin/sh'
  } finally {
    await file.close()
  }
}

/**
 * How a program gets ggml's functions: `linked` from shared libraries, whose functions a recorder can interpose; `inside` if
 * they are part of the program itself; `none` if it does not refer to them (it may load them later, or start other programs).
 */
export async function linkage(program: Program, env: Environment): Promise<'linked' | 'inside' | 'none'> {
  if (program.isScript) return 'none'
  const { elf, executable } = program
  if (elf.exports.size > 0) return 'inside'
  if (elf.imports.size > 0) return 'linked'
  for await (const { elf } of librariesOf(program, env)) {
    if (elf.imports.size + elf.exports.size > 0) return 'linked'
  }
  return (await containsText(executable, ...TEXTS_INSIDE)) ? 'inside' : 'none'
}

/** The libraries of ggml and llama.cpp that a program is linked with, or the program itself if they are part of it. */
export async function ggmlFiles(program: Program, env: Environment): Promise<string[]> {
  if (program.isScript) return []
  const files = program.elf.exports.size > 0 ? [program.executable] : []
  for await (const { elf, path } of librariesOf(program, env)) if (elf.exports.size > 0) files.push(path)
  return files
}

interface Library {
  readonly elf: Elf
  readonly path: string
}

/** The libraries that a program is linked with, directly or through others. */
async function* librariesOf({ elf, executable }: Program, env: Environment): AsyncGenerator<Library> {
  const seen = new Set<string>()
  const search = (env['LD_LIBRARY_PATH'] ?? '').split(/[:;]/).filter(Boolean)
  const left: Library[] = [{ elf, path: executable }]
  for (let next = left.pop(); next && seen.size < LIBRARIES_MAX; next = left.pop()) {
    const origin = dirname(await realpath(next.path).catch(() => next!.path))
    const own = next.elf.folders.map((folder) => folder.replace(/\$ORIGIN|\$\{ORIGIN\}/g, origin))
    for (const name of next.elf.needed.filter((name) => !seen.has(name))) {
      seen.add(name)
      const path = await findLibrary(name, [...own, ...search, ...systemFolders(elf)])
      const library = path && (await readElf(path, STARTING_FUNCTIONS).catch(() => undefined))
      if (!library) continue
      yield { elf: library, path }
      left.push({ elf: library, path })
    }
  }
}

function systemFolders({ loader = '' }: Elf): string[] {
  const triplet = /x86-64/.test(loader) ? 'x86_64-linux-gnu' : /aarch64/.test(loader) ? 'aarch64-linux-gnu' : ''
  return [...(triplet ? [`/lib/${triplet}`, `/usr/lib/${triplet}`] : []), ...SYSTEM_FOLDERS]
}

async function findLibrary(name: string, folders: readonly string[]): Promise<string | undefined> {
  for (const path of name.includes('/') ? [name] : folders.map((folder) => join(folder, name))) {
    if (await exists(path)) return path
  }
  return undefined
}

/** Does a file contain one of the texts? */
export async function containsText(path: string, ...texts: readonly string[]): Promise<boolean> {
  const file = await open(path).catch(() => undefined)
  if (!file) return false
  try {
    let before = Buffer.alloc(0)
    for await (const piece of file.createReadStream({ autoClose: false, highWaterMark: 1 << 20 })) {
      const both = Buffer.concat([before, piece as Buffer])
      if (texts.some((text) => both.includes(text))) return true
      before = Buffer.from(both.subarray(-Math.max(...texts.map(({ length }) => length))))
    }
    return false
  } finally {
    await file.close()
  }
}

/** The name of a program without its folder. */
export function programName({ name }: Program): string {
  return basename(name)
}

const REASONS: Readonly<Record<string, string>> = {
  E2BIG: 'its arguments and environment are too long',
  EACCES: 'permission denied',
  EAGAIN: 'the system starts no more processes now',
  ENOENT: 'it is gone, or a file that it needs to start is missing',
  ENOMEM: 'out of memory',
}

/** Why the system did not start a program. */
export const reasonOf = ({ code = '', message }: NodeJS.ErrnoException): string => REASONS[code] ?? message
