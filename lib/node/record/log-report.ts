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
}

/** Problems, in the order of native/common/process.h, and the bytes for each. */
const PROBLEMS = 2
const REPORT_BYTES = 64

/**
 * Calls `use` with the environment variable of a file in which the recorder, in processes of any user, reports problems with the
 * log. Returns them, too. The file exists only during the call; without a folder for temporary files, nothing is reported.
 */
export async function withLogReport<R>(
  output: string,
  use: (environment: Environment) => Promise<R>,
): Promise<{ result: R; report: LogReport }> {
  const made = await temporaryFolder().catch(() => undefined)
  if (made === undefined) return { result: await use({}), report: reportOf(output, '') }
  const folder = made.path
  const path = join(folder, 'report')
  try {
    await writeFile(path, Buffer.alloc(PROBLEMS * REPORT_BYTES)).catch(() => undefined)
    await chmod(path, 0o666).catch(() => undefined) // the umask does not apply
    await chmod(folder, 0o711)
    const result = await use({ [RECORDER_ENVIRONMENT.report]: path })
    return { result, report: reportOf(output, await readFile(path, 'latin1').catch(() => '')) }
  } finally {
    made.remove()
  }
}

function reportOf(output: string, text: string): LogReport {
  const [opening, full] = Array.from({ length: PROBLEMS }, (_, i) =>
    /^(\d{1,5}) (\d{1,10})\n/.exec(text.slice(i * REPORT_BYTES, (i + 1) * REPORT_BYTES)),
  )
  const cannotOpen = opening ? explainOpening(output, Number(opening[1]), opening[2]!) : undefined
  return { cannotOpen, isDiskFull: !!full }
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
