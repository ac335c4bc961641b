import { execFile } from 'node:child_process'
import { UsageError } from '../errors.ts'
import { type NativeOptions, type NativeTarget, nativeFile } from './native.ts'
import type { Environment } from './program.ts'

const RECORDER: NativeTarget = {
  name: 'libggml2perfetto.so',
  title: 'the recorder',
  isSource: (name) => !name.startsWith('peaks'),
  flags: ['-std=gnu11', '-O2', '-fPIC', '-fvisibility=hidden', '-shared', '-pthread'],
  libraries: ['-ldl'],
  works: loads,
  isUsableAt: isPreloadable,
}

/** The path of the recorder's library, see {@link nativeFile}. Throws UsageError if it cannot be had. */
export async function recorderLibrary(options: NativeOptions): Promise<string> {
  const path = await nativeFile(RECORDER, options)
  if (isPreloadable(path)) return path
  throw new UsageError(
    `${path}: LD_PRELOAD takes no path with blanks, colons, semicolons or $\n` +
      'hint: set XDG_CACHE_HOME to a folder without them',
  )
}

/** The loader splits LD_PRELOAD at blanks and colons, and replaces $ORIGIN and the like. */
function isPreloadable(path: string): boolean {
  return !/[\s:;$]/.test(path)
}

/** Does this machine's loader take the library? Another libc may not. */
function loads(library: string, env: Environment): Promise<boolean> {
  if (!isPreloadable(library)) return Promise.resolve(true)
  return new Promise((resolve) => {
    execFile('true', { env: { PATH: env['PATH'], LD_PRELOAD: library } }, (error, _stdout, stderr) => {
      // Without a program to try it with, it is taken on trust.
      resolve((error as NodeJS.ErrnoException | null)?.code === 'ENOENT' || (!error && stderr === ''))
    })
  })
}
