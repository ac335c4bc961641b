import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../errors.ts'
import { explainFileError } from './files.ts'
import type { Environment } from './program.ts'

/** The package's folder, from `lib/node/` in the sources, and from `dist/` in the package. */
const PLACES = ['../../', '../']
const NAME = 'libggml2perfetto.so'
const FLAGS = ['-std=gnu11', '-O2', '-fPIC', '-fvisibility=hidden', '-shared', '-pthread']
const LIBRARIES = ['-ldl']
/** Lines of a compiler's complaint that are passed on. */
const COMPLAINT_LINES = 12

/** What decides on which library is used. */
export interface LibraryOptions {
  readonly env: Environment
  readonly platform: string
  readonly arch: string
  /** Told when the library is to be built, which takes some seconds. */
  readonly onBuild?: ((compiler: string) => void) | undefined
}

/**
 * The path of the recorder's library: as it comes with this package, else built from the package's sources with `cc` (or
 * `$CC`), once: it is kept in `$XDG_CACHE_HOME/ggml2perfetto` or `~/.cache/ggml2perfetto`. Throws UsageError if neither
 * can be had.
 */
export async function recorderLibrary(options: LibraryOptions): Promise<string> {
  const home = await packageFolder()
  const prebuilt = join(home, 'dist/native', `${options.platform}-${options.arch}`, NAME)
  // A clone's sources change: what lies in dist/ may be older.
  const isClone = await exists(join(home, 'tsup.config.ts'))
  if (!isClone && isPreloadable(prebuilt) && (await loads(prebuilt, options.env))) return prebuilt
  const cached = join(await cacheFolder(home, options), NAME)
  if (!isPreloadable(cached)) {
    throw new UsageError(
      `${cached}: LD_PRELOAD takes no path with blanks, colons, semicolons or $\n` +
        'hint: set XDG_CACHE_HOME to a folder without them',
    )
  }
  if (await exists(cached)) return cached
  if (!isClone && (await loads(prebuilt, options.env))) await place(cached, (to) => copyFile(prebuilt, to))
  else await place(cached, (to) => build(join(home, 'native'), to, options))
  return cached
}

async function packageFolder(): Promise<string> {
  for (const place of PLACES) {
    const folder = fileURLToPath(new URL(place, import.meta.url))
    if (await exists(join(folder, 'native/recorder.c'))) return folder
  }
  throw new UsageError('native/ is missing from the package: it cannot record\nhint: install ggml2perfetto again')
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/** The loader splits LD_PRELOAD at blanks and colons, and replaces $ORIGIN and the like. */
function isPreloadable(path: string): boolean {
  return !/[\s:;$]/.test(path)
}

/** Does this machine's loader take the library? Another libc may not. */
async function loads(library: string, env: Environment): Promise<boolean> {
  if (!(await exists(library))) return false
  if (!isPreloadable(library)) return true
  return new Promise((resolve) => {
    execFile('true', { env: { PATH: env['PATH'], LD_PRELOAD: library } }, (error, _stdout, stderr) => {
      // Without a program to try it with, it is taken on trust.
      resolve((error as NodeJS.ErrnoException | null)?.code === 'ENOENT' || (!error && stderr === ''))
    })
  })
}

/** The sources by name. */
async function sourcesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => /\.[ch]$/.test(name)).sort()
}

async function cacheFolder(home: string, { env, platform, arch }: LibraryOptions): Promise<string> {
  const { version } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8')) as { version: string }
  const hash = createHash('sha256').update([platform, env['CC'] ?? '', ...FLAGS].join('\0'))
  const sources = join(home, 'native')
  for (const name of await sourcesIn(sources)) hash.update(`\0${name}\0`).update(await readFile(join(sources, name)))
  // As the specification has it: a path that is not absolute is ignored.
  const wanted = env['XDG_CACHE_HOME']
  const cache = wanted?.startsWith('/') ? wanted : join(env['HOME'] || homedir(), '.cache')
  return join(cache, 'ggml2perfetto', `${version}-${arch}-${hash.digest('hex').slice(0, 16)}`)
}

/** Makes a folder and those above it. Node's own way of it never ends in /proc, where a new folder "does not exist". */
async function makeFolder(path: string): Promise<void> {
  if (await exists(path)) return
  await makeFolder(dirname(path))
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

/** Makes a file that appears under its name only when it is complete: two that make it at once do no harm. */
async function place(path: string, make: (path: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`
  const failed = (error: unknown) => {
    const explained = explainFileError(path, 'write', error)
    if (explained === error) return error
    return new UsageError(
      `${(explained as Error).message}\nhint: set XDG_CACHE_HOME to a folder that can be written to`,
    )
  }
  try {
    await makeFolder(dirname(path))
    await make(temporary)
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw failed(error)
  }
}

async function build(folder: string, to: string, { env, arch, platform, onBuild }: LibraryOptions): Promise<void> {
  const [compiler, ...words] = (env['CC'] || 'cc').split(/\s+/).filter(Boolean) as [string, ...string[]]
  const sources = (await sourcesIn(folder)).filter((name) => name.endsWith('.c')).map((name) => join(folder, name))
  onBuild?.(compiler)
  const args = [...words, ...FLAGS, '-o', to, ...sources, ...LIBRARIES]
  await new Promise<void>((resolve, reject) => {
    execFile(compiler, args, { env: { ...env, LD_PRELOAD: undefined } }, (error, stdout, stderr) => {
      if (!error) return resolve()
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'EACCES') {
        const why = `for ${platform}-${arch} the recorder is built on the spot`
        return reject(
          new UsageError(
            `${compiler}: no such compiler, and ${why}\nhint: install a C compiler (apt install gcc), or set CC to one`,
          ),
        )
      }
      const lines = (stderr || stdout || error.message).trimEnd().split('\n')
      const complaint = lines.slice(0, COMPLAINT_LINES).map((line) => `  ${line}`)
      reject(new UsageError([`${compiler}: the recorder cannot be built from ${folder}:`, ...complaint].join('\n')))
    })
  })
  if (!(await exists(to))) throw new UsageError(`${compiler}: built no library from ${folder}`)
}
