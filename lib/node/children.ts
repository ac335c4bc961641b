import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import self from 'node:process'
import { promisify } from 'node:util'
import { atExit } from './at-exit.ts'

/**
 * All processes that this program starts: each ends when it is asked to, or is killed, and none remains when this process exits, but a program
 * that is recorded. Nothing else in lib and bin starts a process (test/house.test.ts), except what opens the user's browser.
 */

/** How a child ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Why it could not be started. */
  readonly error: NodeJS.ErrnoException | undefined
  /** It did not end when it was asked to, and was killed. */
  readonly isForced: boolean
}

/** How a child is to end. */
export interface EndingOptions {
  /** The signal that asks it to end, by default SIGTERM. */
  readonly by?: NodeJS.Signals | undefined
  /** It is killed if it has not ended so many ms after that. */
  readonly graceMs?: number | undefined
  /** It also ends, within seconds, after this process was killed. Without it, a child must end when its pipes or what it observes are gone. */
  readonly isGuarded?: boolean | undefined
  /** It continues after the end of this process. */
  readonly isFree?: boolean | undefined
}

/** By default, a child has this long to end, in ms. */
const GRACE_MS = 5000
/** What a child has written is read at most this long after its end, in ms: processes that it started may keep its pipes open. */
const DRAIN_MS = 1000
/** Signals that ask a process to end. */
const ENDING: readonly string[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']

/** A process that this one has started. With `detached`, it leads a group, which ends with it. */
export interface OwnedChild {
  readonly child: ChildProcess
  readonly ended: Promise<Ending>
  /** Sends it a signal, and wakes it if it is stopped and the signal asks it to end. False: it has ended. */
  send(signal: NodeJS.Signals | 0): boolean
  /** Asks it to end, and kills it if it does not. */
  end(): Promise<Ending>
  kill(): void
}

/** Starts a process that this one owns: see `spawn` of Node for the options. */
export function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  { by = 'SIGTERM', graceMs = GRACE_MS, isGuarded = false, isFree = false }: EndingOptions = {},
): OwnedChild {
  const child = spawn(program, args, options)
  const target = options.detached ? -child.pid! : child.pid!
  let isForced = false
  let deadline: NodeJS.Timeout | undefined
  const isThere = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const send = (signal: NodeJS.Signals | 0): boolean => {
    if (!isThere()) return false
    const isSent = sent(target, signal) || child.kill(signal) // without groups of processes, as on Windows
    if (isSent && ENDING.includes(`${signal}`) && (!isFree || isStopped(child.pid!))) sent(target, 'SIGCONT')
    return isSent
  }
  const kill = () => void send('SIGKILL')
  const release = isFree ? () => undefined : atExit(kill)
  const dismiss = isGuarded && child.pid !== undefined ? guard(target) : () => undefined
  const ended = new Promise<Ending>((resolve) => {
    const done = (error?: NodeJS.ErrnoException) =>
      resolve({ code: child.exitCode, signal: child.signalCode, error, isForced })
    const over = () => {
      clearTimeout(deadline)
      release()
      dismiss()
    }
    child.on('error', (error) => {
      if (child.pid !== undefined) return // a signal or a message that could not be sent
      over()
      done(error)
    })
    child.once('exit', () => {
      over()
      if (options.detached) sent(target, 'SIGKILL')
      if (!child.stdio.some((stream) => stream && 'readableFlowing' in stream && stream.readableFlowing)) done()
      const late = setTimeout(() => {
        for (const stream of child.stdio) stream?.destroy()
        done()
      }, DRAIN_MS)
      child.once('close', () => {
        clearTimeout(late)
        done()
      })
    })
  })
  const end = () => {
    if (deadline === undefined && send(by))
      deadline = setTimeout(() => {
        isForced = true
        kill()
      }, graceMs)
    return ended
  }
  return { child, ended, send, end, kill }
}

function sent(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return self.kill(pid, signal)
  } catch {
    return false
  }
}

/** Is it stopped, as by SIGSTOP? Where there is no /proc, it counts as not stopped. */
function isStopped(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .startsWith('T')
  } catch {
    return false
  }
}

/** In words: `perf was ended by SIGKILL`. */
export function describeEnding(name: string, { code, signal, error, isForced }: Ending): string {
  if (error) return `${name} cannot be started: ${error.message}`
  if (isForced) return `${name} did not end when it was asked to, and was killed`
  return signal === null ? `${name} ended with exit code ${code}` : `${name} was ended by ${signal}`
}

/** Waits for the end of its input, which is that of the process that it serves, and ends process or group $0: 2 s later by SIGKILL. */
const GUARD = `trap '' HUP INT QUIT TERM
read -r _
kill -s TERM -- "$0" && kill -s CONT -- "$0"
for i in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- "$0" || exit; sleep 0.2 || sleep 1; done
kill -s KILL -- "$0"`
/** A guard that somebody kills is replaced so often. */
const GUARDS_MAX = 10

/** Starts a shell that ends a process after this one has ended, by SIGKILL, too. Returns what dismisses it. */
function guard(pid: number): () => void {
  let shell: ChildProcess | undefined
  let guards = 0
  const start = () => {
    if (guards++ === GUARDS_MAX) return
    const env = { PATH: self.env['PATH'] }
    shell = spawn('sh', ['-c', GUARD, `${pid}`], { env, stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    shell.stdin!.on('error', () => undefined)
    shell.on('error', () => undefined)
    shell.on('exit', start)
  }
  start()
  const dismiss = () => {
    shell?.removeListener('exit', start)
    shell?.kill('SIGKILL')
  }
  const release = atExit(dismiss)
  return () => {
    release()
    dismiss()
  }
}

const execFileToEnd = promisify(execFile)

/** Runs a program, and returns what it prints. Rejects with a {@link FailedRun}. */
export const runFile = ((...args: Parameters<typeof execFileToEnd>) => {
  const running = execFileToEnd(...args)
  const release = atExit(() => running.child.kill('SIGKILL'))
  running.finally(release).catch(() => undefined)
  return running
}) as typeof execFileToEnd

/** A program that could not be started, or failed, and what it printed; both texts are missing if it was not started. */
export type FailedRun = NodeJS.ErrnoException & {
  readonly stdout?: string
  readonly stderr?: string
  readonly signal?: NodeJS.Signals | null
  /** {@link runFile} ended it, because of the option `timeout`. */
  readonly killed?: boolean
}

/** In words, as {@link describeEnding}: Node's own message is only the command. */
export function describeFailedRun(name: string, error: FailedRun): string {
  const { code, signal = null, killed = false } = error as Omit<FailedRun, 'code'> & { code?: number | string }
  if (killed) return `${name} did not end in time, and was killed`
  const ending =
    typeof code === 'number' ? { code, error: undefined } : { code: null, error: signal ? undefined : error }
  return describeEnding(name, { ...ending, signal, isForced: false })
}
