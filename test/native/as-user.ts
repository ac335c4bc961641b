import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  copyFileSync,
  constants as fsConstants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { hasLlama, model, type Run, runHosts } from '../llama/testbed.ts'
import { ROOT } from '../root.ts'
import { inFolder, RECORDER, type Recording, readLog, useRecorder } from './recording.ts'

/** What the kernel tells depends on who asks, and on its settings. */

const isRoot = process.getuid?.() === 0
/** The kernel tells root more: as anybody else. */
export const AS_USER = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
export const PARANOID = '/proc/sys/kernel/perf_event_paranoid'
export const MLOCK = '/proc/sys/kernel/perf_event_mlock_kb'

const isWritable = (path: string) => {
  try {
    accessSync(path, fsConstants.W_OK)
    return true
  } catch {
    return false // not there, or a container's, where not even root may
  }
}

/** Does the kernel tell these users when their threads run? Not in many containers, nor where perf_event_paranoid is high. */
function mayPerf(...users: readonly (readonly string[])[]): boolean {
  if (!hasLlama()) return false
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-perf-'))
  try {
    chmodSync(folder, 0o755)
    const program = join(folder, 'may-perf')
    cc('-o', program, fileURLToPath(new URL('../llama/may-perf.c', import.meta.url)))
    chmodSync(program, 0o755)
    const can = ([command, ...before]: readonly string[], ...words: readonly string[]) => {
      const [first, ...rest] = command === undefined ? words : [command, ...before, ...words]
      return spawnSync(first!, rest).status === 0
    }
    // The checkout, with llama.cpp's libraries, may be in a folder of one user.
    return users.every((user) => can(user, program) && can(user, 'test', '-x', ROOT))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** For tests of what only perf_event_open can tell. */
export const perfTest = mayPerf(AS_USER, []) ? test : test.skip
/** As root. */
export const rootTest = isRoot ? perfTest : test.skip
const isSettable = [PARANOID, MLOCK].every(isWritable)
/** Where the kernel's settings may be changed. */
export const settable = isSettable ? rootTest : test.skip

interface Options {
  readonly before?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly threads?: number
  /** Steps before the model is loaded, where the log begins. */
  readonly first?: readonly (string | number)[]
}

interface Recorded {
  readonly log: string
  readonly result: Run
  readonly recording: Recording
}

/** Call in a describe: what it returns records steps of hosts.c on the small model, by default as an ordinary user. */
export function useRecorderOfUser(): (steps: readonly (string | number)[], options?: Options) => Promise<Recorded> {
  useRecorder()
  let recorder = ''
  let logs = 0

  beforeAll(() => {
    // The user may read what lies here, and write.
    recorder = inFolder('libggml2perfetto.so')
    copyFileSync(RECORDER, recorder)
    chmodSync(recorder, 0o755)
    chmodSync(inFolder('.'), 0o755)
  })

  return async (steps, { before = AS_USER, env = {}, threads = 2, first = [] } = {}) => {
    const folder = inFolder(`as-user-${logs++}`)
    mkdirSync(folder)
    chmodSync(folder, 0o777)
    const log = join(folder, 'run.ggtrace')
    const { path } = await model('tinyDense')
    const result = await runHosts([...first, 'load', 0, path, 'open', 0, threads, ...steps], {
      preload: recorder,
      env: { GGML2PERFETTO_OUT: log, ...env },
      before,
    })
    expect([result.code, result.stderr]).toEqual([0, ''])
    return { log, result, recording: await readLog(log) }
  }
}

/** The beginning of a command whose program may not make these system calls. */
export function denied(calls: readonly string[], error: 'EPERM' | 'ENOSYS' = 'EPERM'): string[] {
  const deny = inFolder('deny')
  cc('-O1', '-o', deny, fileURLToPath(new URL('../llama/deny.c', import.meta.url)))
  chmodSync(deny, 0o755)
  return [deny, `${constants.errno[error]}`, calls.join()]
}

/** With another setting of the kernel's for a moment. */
export async function withSetting<T>(path: string, value: number, run: () => Promise<T>): Promise<T> {
  const before = readFileSync(path, 'utf8')
  writeFileSync(path, `${value}`)
  try {
    return await run()
  } finally {
    writeFileSync(path, before)
  }
}
