import { createHash } from 'node:crypto'
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../errors.ts'
import { cachedPath, cacheMade, isCached } from './cache.ts'
import { describeFailedRun, type FailedRun, runFile } from './children.ts'
import { exists } from './files.ts'
import { FOR_THIS_USER } from './own-files.ts'
import type { Environment } from './record/program.ts'

/** The package's folder, relative to `lib/node/` in the sources and to `dist/` in the package. */
const PLACES = ['../../', '../']
/** How many lines of a compiler error are shown. */
const COMPLAINT_LINES = 12

/** A file that is built from sources in native/. */
export interface NativeTarget {
  readonly name: string
  /** Its name in messages. */
  readonly title: string
  /** Is this file of native/, such as `log/ggtrace.c`, one of its sources or headers? */
  isSource(path: string): boolean
  readonly flags: readonly string[]
  readonly libraries: readonly string[]
  /** Does a built file work on this machine? */
  works(path: string, options: NativeOptions): Promise<boolean>
  /** Can it be used at its path? If not, the prebuilt file is copied to the cache. */
  isUsableAt(path: string): boolean
}

/** What determines the file that is used. */
export interface NativeOptions {
  readonly env: Environment
  readonly platform: string
  readonly arch: string
  /** The dynamic loader of the program that loads the file (its ELF interpreter): for musl there are other files. By default it is not known. */
  readonly loader?: string | undefined
  /** Called before the file is built, which takes some seconds. */
  readonly onBuild?: ((compiler: string) => void) | undefined
}

/** What names of files for musl end with; files without it are for glibc. */
const MUSL = '-musl'

/** Is it the loader of programs that run on musl, such as `/lib/ld-musl-x86_64.so.1`? */
export const isMusl = (loader: string | undefined): loader is string => loader?.includes('/ld-musl-') ?? false

/**
 * The path of a native file: the prebuilt one of this package, else one built from the package's sources with `cc` (or `$CC`; for musl
 * `musl-gcc` if it is there) and cached by the hash of its sources. Throws UsageError if neither is possible.
 */
export async function nativeFile(target: NativeTarget, options: NativeOptions): Promise<string> {
  const home = await packageFolder()
  // The sources of a clone change: the files in dist/ may be older.
  const isClone = await exists(join(home, 'tsup.config.ts'))
  const prebuilt = isClone ? undefined : await prebuiltFile(join(home, 'dist/native'), target, options)
  if (prebuilt !== undefined && target.isUsableAt(prebuilt)) return prebuilt
  const machine = `${options.arch}${isMusl(options.loader) ? MUSL : ''}`
  const folder = `${await packageVersion(home)}-${machine}-${await sourcesHash(home, target, options)}`
  const cached = cachedPath(options.env, join(folder, target.name))
  const isThere = () => isBuilt(options.env, folder, target.name)
  if (!target.isUsableAt(cached) || (await isThere())) return cached
  await cacheMade(
    options.env,
    folder,
    async (made) => {
      await mkdir(made, { mode: FOR_THIS_USER })
      const to = join(made, target.name)
      if (prebuilt === undefined) await build(target, join(home, 'native'), to, options)
      else await copyFile(prebuilt, to)
      await chmod(to, EXECUTABLE)
      await writeFile(join(made, SUMS), `${await hashOf(to)}  ${target.name}\n`, { mode: 0o600 })
    },
    isThere,
  )
  return cached
}

/** Permissions of a native file, whatever the umask is. */
const EXECUTABLE = 0o755
/** The file with hashes of those next to it. */
const SUMS = 'SHA256SUMS'

/** Is there a file in a folder of the cache, as it was built? Throws UsageError if another user can have put it there. */
async function isBuilt(env: Environment, folder: string, name: string): Promise<boolean> {
  for (const file of [name, SUMS]) if (!(await isCached(env, join(folder, file)))) return false
  const path = cachedPath(env, folder)
  return (await hashOf(join(path, name))) === (await listedHash(path, name))
}

/** The file of this package that works; where the program's loader is not known, that for glibc is tried first. */
async function prebuiltFile(folder: string, target: NativeTarget, options: NativeOptions): Promise<string | undefined> {
  const { platform, arch, loader } = options
  for (const libc of loader === undefined ? ['', MUSL] : [isMusl(loader) ? MUSL : '']) {
    const name = `${platform}-${arch}${libc}/${target.name}`
    if (!(await exists(join(folder, name)))) continue
    await checkHash(folder, name)
    if (await target.works(join(folder, name), options)) return join(folder, name)
  }
  return undefined
}

/** Throws UsageError if a prebuilt file is not the one of which the package's SHA256SUMS has the hash. */
async function checkHash(folder: string, name: string): Promise<void> {
  const expected = await listedHash(folder, name)
  const found = await hashOf(join(folder, name))
  if (found === expected) return
  throw new UsageError(
    `${join(folder, name)}: is not the file of this package: expected SHA-256 ${expected ?? '(none in SHA256SUMS)'}, found ${found}\n` +
      'hint: install ggml2perfetto again',
  )
}

async function listedHash(folder: string, name: string): Promise<string | undefined> {
  const listed = (await readFile(join(folder, SUMS), 'utf8').catch(() => '')).split('\n')
  return listed.find((line) => line.endsWith(`  ${name}`))?.slice(0, -name.length - 2)
}

const hashOf = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

/** Identifies the state of a native file's sources and the way to build it. */
export async function nativeHash(target: NativeTarget, options: NativeOptions): Promise<string> {
  return sourcesHash(await packageFolder(), target, options)
}

/** The folder of this package. */
export async function packageFolder(): Promise<string> {
  const here = import.meta.url // apart from `new URL`: bundlers take the two together for a file of theirs
  for (const place of PLACES) {
    const folder = fileURLToPath(new URL(place, here))
    if (await exists(join(folder, 'native/recorder/recorder.c'))) return folder
  }
  throw new UsageError('native/ is missing from the package: nothing can be built\nhint: install ggml2perfetto again')
}

async function packageVersion(home: string): Promise<string> {
  return (JSON.parse(await readFile(join(home, 'package.json'), 'utf8')) as { version: string }).version
}

/** Paths of the target's sources and headers in native/, sorted. */
async function sourcesIn(folder: string, { isSource }: NativeTarget): Promise<string[]> {
  const paths = await readdir(folder, { recursive: true })
  return paths.filter((path) => /\.[ch]$/.test(path) && isSource(path)).sort()
}

async function sourcesHash(home: string, target: NativeTarget, { env, platform }: NativeOptions): Promise<string> {
  const hash = createHash('sha256').update([platform, env['CC'] ?? '', ...target.flags].join('\0'))
  const sources = join(home, 'native')
  for (const name of await sourcesIn(sources, target)) {
    hash.update(`\0${name}\0`).update(await readFile(join(sources, name)))
  }
  return hash.digest('hex').slice(0, 16)
}

async function build(target: NativeTarget, folder: string, to: string, options: NativeOptions): Promise<void> {
  const { env, arch, platform, loader, onBuild } = options
  const { title, flags, libraries } = target
  const [compiler, ...words] = await compilerFor(options)
  const sources = (await sourcesIn(folder, target)).filter((name) => name.endsWith('.c'))
  onBuild?.(compiler)
  const args = [...words, ...flags, `-I${folder}`, '-o', to, ...sources.map((name) => join(folder, name)), ...libraries]
  await runFile(compiler, args, { env: { ...env, LD_PRELOAD: undefined } }).catch((error: FailedRun) => {
    if (error.code === 'ENOENT' || error.code === 'EACCES') {
      const why = `for ${platform}-${arch} ${title} is built on the spot`
      throw new UsageError(
        `${compiler}: no such compiler, and ${why}\nhint: install a C compiler (apt install gcc), or set CC to one`,
      )
    }
    const lines = (error.stderr || error.stdout || describeFailedRun(compiler, error)).trimEnd().split('\n')
    const complaint = lines.slice(0, COMPLAINT_LINES).map((line) => `  ${line}`)
    throw new UsageError([`${compiler}: ${title} cannot be built from ${folder}:`, ...complaint].join('\n'))
  })
  if (!(await exists(to))) throw new UsageError(`${compiler}: built no ${target.name} from ${folder}`)
  if (!isMusl(loader) || (await target.works(to, options))) return
  throw new UsageError(
    `${compiler}: builds ${title} for another libc than that of the program, musl (${loader})\n` +
      'hint: install musl-gcc (apt install musl-tools), or set CC to a compiler for musl',
  )
}

/** Where headers of the kernel are, for musl-gcc, which knows musl's own only; those come first. */
const KERNEL_HEADERS = ['/usr/include', '/usr/include/x86_64-linux-gnu', '/usr/include/aarch64-linux-gnu']

/** The compiler and its first arguments. Where musl is the system's libc, `cc` compiles for it. */
async function compilerFor({ env, loader }: NativeOptions): Promise<[string, ...string[]]> {
  const words = env['CC']?.split(/\s+/).filter(Boolean) ?? []
  if (words.length > 0) return words as [string, ...string[]]
  const hasMuslCompiler =
    isMusl(loader) && (await runFile('musl-gcc', ['-dumpversion'], { env }).then(Boolean, () => false))
  return hasMuslCompiler ? ['musl-gcc', ...KERNEL_HEADERS.flatMap((path) => ['-idirafter', path])] : ['cc']
}
