import { chmod, readFile, writeFile } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { join } from 'node:path'
import { explainFileError } from '../files.ts'
import { temporaryFolder } from '../left-overs.ts'
import { RECORDER_ENVIRONMENT } from './environment.ts'
import type { Environment } from './program.ts'

/** Problems with the log that the log itself cannot contain. */
export interface LogReport {
  /** Why a process could not open its log, as a message. */
  readonly cannotOpen: string | undefined
  /** Records are missing because the disk was full. */
  readonly isDiskFull: boolean
  /** Programs of the run, in the order in which they started, as many as there is room for; undefined: no process could report any. */
  readonly programs: readonly ReportedProgram[] | undefined
}

/** A program of a run, as a process with the recorder reported it. */
export interface ReportedProgram {
  /** The recorder is loaded into it; is, but no call of the ggml in it can be seen; will not be. */
  readonly about: 'loaded' | 'hidden' | 'missed'
  readonly path: string
  /** A word for why (native/recorder/program.c, missed.c). */
  readonly reason: string
  /** Of one that is missed, the name of the program that starts it; else functions. */
  readonly detail: string
}

/** As in native/common/report.c: the bytes of each problem, in the order of its header; where programs begin, how many, and the bytes of each. */
const PROBLEMS = 2
const PROBLEM_BYTES = 64
const PROGRAMS = { at: 192, count: 64, bytes: 1024, reason: 513, detail: 577 }
const ABOUT = ['loaded', 'hidden', 'missed'] as const

/**
 * Calls `use` with the environment variable of a file in which the recorder, in processes of any user, reports problems with the
 * log. Returns them, too. The file exists only during the call; without a folder for temporary files, nothing is reported.
 */
export async function withLogReport<R>(
  output: string,
  use: (environment: Environment) => Promise<R>,
): Promise<{ result: R; report: LogReport }> {
  const made = await temporaryFolder().catch(() => undefined)
  if (made === undefined) return { result: await use({}), report: reportOf(output, undefined) }
  const folder = made.path
  const path = join(folder, 'report')
  try {
    await writeFile(path, Buffer.alloc(PROGRAMS.at + PROGRAMS.count * PROGRAMS.bytes)).catch(() => undefined)
    await chmod(path, 0o666).catch(() => undefined) // the umask does not apply
    await chmod(folder, 0o711)
    const result = await use({ [RECORDER_ENVIRONMENT.report]: path })
    return { result, report: reportOf(output, await readFile(path).catch(() => undefined)) }
  } finally {
    made.remove()
  }
}

function reportOf(output: string, bytes: Buffer | undefined): LogReport {
  const [opening, full] = Array.from({ length: PROBLEMS }, (_, i) =>
    /^(\d{1,5}) (\d{1,10})\n/.exec(textAt(bytes, i * PROBLEM_BYTES, PROBLEM_BYTES)),
  )
  const cannotOpen = opening ? explainOpening(output, Number(opening[1]), opening[2]!) : undefined
  const programs = Array.from({ length: PROGRAMS.count }, (_, i) => programAt(bytes, PROGRAMS.at + i * PROGRAMS.bytes))
  return { cannotOpen, isDiskFull: !!full, programs: bytes && programs.flatMap((program) => program ?? []) }
}

/** The text at a place, up to its zero byte. */
function textAt(bytes: Buffer | undefined, at: number, length: number): string {
  const text = bytes?.subarray(at, at + length) ?? Buffer.alloc(0)
  const end = text.indexOf(0)
  return text.toString('utf8', 0, end < 0 ? text.length : end)
}

function programAt(bytes: Buffer | undefined, at: number): ReportedProgram | undefined {
  const about = ABOUT[Number(textAt(bytes, at, 1) || NaN) - 1]
  const [path, reason, detail] = [
    textAt(bytes, at + 1, PROGRAMS.reason - 1),
    textAt(bytes, at + PROGRAMS.reason, PROGRAMS.detail - PROGRAMS.reason),
    textAt(bytes, at + PROGRAMS.detail, PROGRAMS.bytes - PROGRAMS.detail),
  ]
  return about && { about, path, reason, detail }
}

function explainOpening(output: string, errno: number, user: string): string {
  const code = Object.entries(system.errno).find(([, number]) => number === errno)?.[0]
  const unknown = new Error(`${output}: cannot write: ${code ?? `error ${errno}`}`)
  const { message: why } = explainFileError(output, 'write', Object.assign(unknown, { code })) as Error
  const isDenied = code === 'EACCES' || code === 'EPERM'
  if (!isDenied) return why
  const hint = 'name a log in a folder that this user can write, such as -o /tmp/run.ggtrace'
  return `${why}: the program ran as user ${user}\nhint: ${hint}`
}
