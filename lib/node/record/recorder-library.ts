import { chmod, copyFile, stat } from 'node:fs/promises'
import { arch as hostArch, platform as hostPlatform, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import * as self from 'node:process'
import { checkNames, UsageError } from '../../errors.ts'
import { NVTX_LISTENER_OPTIONS } from '../../generated/option-names.ts'
import { type FailedRun, runFile } from '../children.ts'
import { temporaryFolder } from '../left-overs.ts'
import { isMusl, type NativeOptions, type NativeTarget, nativeFile } from '../native.ts'
import { checkSystem } from './diagnosis.ts'
import { type Environment, loaderOf, type Program, programName } from './program.ts'

const RECORDER: NativeTarget = {
  name: 'libggml2perfetto.so',
  title: 'the recorder',
  isSource: (path) => /^(log|common|recorder|nvtx)\//.test(path) && path !== 'nvtx/alone.c',
  flags: ['-std=gnu11', '-O2', '-fPIC', '-fvisibility=hidden', '-shared', '-pthread'],
  libraries: ['-ldl'],
  works: loads,
  isUsableAt: isPreloadable,
}

const LISTENER: NativeTarget = {
  name: 'libggml2perfetto-nvtx.so',
  title: 'the NVTX listener',
  // A running process has little room for a library's thread-local variables: no more files than necessary.
  isSource: (path) => /^(log|common|nvtx)\//.test(path) && path !== 'nvtx/emit.c',
  flags: [...RECORDER.flags, '-Wl,-z,nodelete'],
  libraries: ['-ldl'],
  works: loads,
  isUsableAt: () => true,
}

/**
 * The path of a library that receives what a program announces through NVTX, and writes it to a log: the value of
 * NVTX_INJECTION64_PATH for a program that {@link record} does not run. Throws UsageError if it is not available.
 */
export function nvtxListener(options: Partial<NativeOptions> = {}): Promise<string> {
  checkNames('nvtxListener', options, NVTX_LISTENER_OPTIONS)
  const { env = self.env, platform = hostPlatform(), arch = hostArch() } = options
  checkSystem(platform, arch)
  return nativeFile(LISTENER, { ...options, env, platform, arch })
}

/** The path of the recorder's library, see {@link nativeFile}. Throws UsageError if it is not available. */
export async function recorderLibrary(options: NativeOptions): Promise<string> {
  const path = await nativeFile(RECORDER, options)
  if (isPreloadable(path)) return path
  throw new UsageError(
    `${path}: LD_PRELOAD takes no path with blanks, colons, semicolons or $\n` +
      'hint: set XDG_CACHE_HOME to a folder without them',
  )
}

/** Programs that change the user and then run another program. */
const CHANGES_USER = /^(sudo|su|runuser|setpriv|gosu|su-exec|doas|chpst|setuidgid|s6-setuidgid|start-stop-daemon)$/

/**
 * Another user often cannot read root's files. So for a command that changes the user, `use` gets a copy of the library that
 * everybody can read, which exists while `use` runs.
 */
export async function withReachable<R>(
  library: string,
  program: Program,
  env: Environment,
  use: (library: string) => Promise<R>,
): Promise<R> {
  const isForOther =
    self.geteuid?.() === 0 && (env['SUDO_UID'] !== undefined || CHANGES_USER.test(programName(program)))
  if (!isForOther || (await isReachable(library))) return use(library)
  const isForAll = isPreloadable(tmpdir()) && (await isReachable(tmpdir()))
  const { path: folder, remove } = await temporaryFolder(isForAll ? tmpdir() : '/tmp')
  try {
    const copy = join(folder, basename(library))
    await copyFile(library, copy)
    await chmod(copy, 0o755)
    await chmod(folder, 0o755)
    return await use(
      (await isReachable(copy)) && (await loads(copy, { env, loader: loaderOf(program) })) ? copy : library,
    )
  } finally {
    remove()
  }
}

/** May everybody read a file and the folders above it? */
async function isReachable(path: string): Promise<boolean> {
  if (((await stat(path)).mode & 0o004) === 0) return false
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (((await stat(folder)).mode & 0o001) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

/** The loader splits LD_PRELOAD at spaces and colons, and replaces $ORIGIN etc. */
function isPreloadable(path: string): boolean {
  return !/[\s:;$]/.test(path)
}

/** Does the loader of the program accept the library, or this machine's if it is not known? That of another libc may not. */
async function loads(library: string, { env, loader }: Pick<NativeOptions, 'env' | 'loader'>): Promise<boolean> {
  if (!isPreloadable(library)) return true
  // musl's loader lists what a library needs, as ldd does, and fails where something is missing.
  if (isMusl(loader))
    return runFile(loader, ['--list', library], { env: {} }).then(
      () => true,
      () => false,
    )
  return runFile('true', [], { env: { PATH: env['PATH'], LD_PRELOAD: library } }).then(
    ({ stderr }) => stderr === '',
    ({ code }: FailedRun) => code === 'ENOENT', // without a program to test it with, the library is assumed to work
  )
}
