import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { describeEnding, type OwnedChild, removeLeftOf, startChild, UsageError } from '../../lib/cli.ts'
import { duration, plural, size } from '../units.ts'

/** The CLI, which this file is next to when it is built. */
const CLI = fileURLToPath(new URL('./ggml2perfetto.js', import.meta.url))
/** Memory of a command for JavaScript, in MiB. */
const MEMORY_MIB = 2048
/** Bytes of the output of a command. */
const OUTPUT_BYTES = 64 << 20
/** Bytes of its messages that are kept: the last ones. */
const MESSAGES_BYTES = 1 << 16
/** Commands that run at a time, and that wait for these. */
const [RUNNING_MAX, WAITING_MAX] = [2, 32]
/** Time between two reports of progress, in ms. */
const TICK_MS = 1000

/** How a command of the CLI is run. */
export interface Run {
  readonly folder: string
  readonly limitMs: number
  readonly signal: AbortSignal
  /** Called each second. */
  readonly onTick?: (ms: number, limitMs: number) => void
  readonly input?: string
  /** The output is of a program: its last part is kept, and more is no error. */
  readonly isOfProgram?: boolean
  /** At the limit of time, the command is ended by SIGTERM, and its result counts. */
  readonly isEnded?: boolean
}

/** What a command printed. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly isEnded: boolean
}

/** A module that a command runs first: a thread of it ends the group when this process is no longer its parent, also by SIGKILL and within a query. */
const ENDS_WITH_PARENT = `import { isMainThread, Worker } from 'node:worker_threads'
const watch = "setInterval(() => process.ppid === ${process.pid} || process.kill(-process.pid, 'SIGKILL'), ${TICK_MS})"
if (isMainThread) new Worker(watch, { eval: true, execArgv: [] }).unref()`

const commands = new Set<OwnedChild>()
let isEnding = false

/** Starts the CLI, in a group of processes of its own and without a shell. Ends with this process; then nothing remains of it, either. */
export function startCli(args: readonly string[], folder: string): OwnedChild {
  if (isEnding) throw new UsageError('the server ends')
  const preload = `data:text/javascript,${encodeURIComponent(ENDS_WITH_PARENT)}`
  const flags = [...process.execArgv, `--max-old-space-size=${MEMORY_MIB}`, '--import', preload]
  const options = { cwd: folder, detached: true, stdio: 'pipe' } as const
  const command = startChild(process.execPath, [...flags, CLI, ...args], options)
  const { pid, stdin } = command.child
  stdin!.on('error', () => undefined) // it ended before it read all
  const ended = command.ended.then(async (ending) => {
    if (ending.signal !== null) await removeLeftOf(pid!, folder)
    commands.delete(owned)
    return ending
  })
  const owned = { ...command, ended, end: () => command.end().then(() => ended) }
  commands.add(owned)
  return owned
}

/** Ends all commands. */
export async function endAll(): Promise<void> {
  isEnding = true
  await Promise.all([...commands].map((command) => command.end()))
}

let running = 0
const waiting: (() => void)[] = []

/** Waits until another command may run. */
async function turn(): Promise<() => void> {
  if (running >= RUNNING_MAX) {
    if (waiting.length >= WAITING_MAX)
      throw new UsageError(`expected at most ${plural(WAITING_MAX, 'call')} that wait, found one more`)
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  return () => {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

/**
 * Runs a command of the CLI to its end. `codes`: exit codes that are no error.
 * @throws UsageError with the command's own error; also if it takes too long or prints too much
 */
export async function runCli(args: readonly string[], run: Run, codes: readonly number[] = [0]): Promise<Ran> {
  const release = await turn()
  try {
    run.signal.throwIfAborted()
    const ran = await ranOf(startCli(args, run.folder), run)
    if (codes.includes(ran.code) || ran.isEnded) return ran
    throw new UsageError(errorIn(ran.stderr))
  } finally {
    release()
  }
}

async function ranOf(command: OwnedChild, run: Run): Promise<Ran> {
  const { limitMs, signal, onTick, input = '', isOfProgram = false, isEnded = false } = run
  const { stdin, stdout: out, stderr: err } = command.child
  const startedMs = performance.now()
  const [stdout, stderr] = [kept(isOfProgram ? MESSAGES_BYTES : OUTPUT_BYTES), kept(MESSAGES_BYTES)]
  let failure: Error | undefined
  let wasEnded = false
  const end = (error?: Error) => {
    failure ??= error
    if (isEnded) void command.end()
    else command.kill()
  }
  const onAbort = () => end(new UsageError('the call was cancelled'))
  const limit = setTimeout(() => {
    wasEnded = isEnded
    end(isEnded ? undefined : tooLong(limitMs))
  }, limitMs)
  const ticks = setInterval(() => onTick?.(performance.now() - startedMs, limitMs), TICK_MS)
  signal.addEventListener('abort', onAbort)
  out!.on('data', (piece: Buffer) => {
    if (stdout.add(piece) && !isOfProgram) end(tooMuch())
  })
  err!.on('data', (piece: Buffer) => void stderr.add(piece))
  stdin!.end(input)
  const ending = await command.ended
  clearTimeout(limit)
  clearInterval(ticks)
  signal.removeEventListener('abort', onAbort)
  const { code, signal: by } = ending
  if (failure ?? ending.error) throw failure ?? ending.error
  // A command that records ends as its program does.
  if (code === null && !wasEnded && !isOfProgram)
    throw new UsageError(`${describeEnding('the command', ending)}${outOfMemory(by)}`)
  return {
    code: code ?? (wasEnded ? 0 : 128 + constants.signals[by!]),
    stdout: stdout.text(),
    stderr: stderr.text(),
    isEnded: wasEnded,
  }
}

const tooLong = (ms: number) =>
  new UsageError(
    `the call was ended after ${duration(ms * 1e6)}, the limit\nhint: ask for less of the log; --timeout of ggml2perfetto-mcp sets the limit`,
  )
const tooMuch = () =>
  new UsageError(`expected at most ${size(OUTPUT_BYTES)} of output, found more\nhint: sums, or a LIMIT in the SQL`)
const outOfMemory = (by: NodeJS.Signals | null) =>
  by === 'SIGABRT' ? `: it needed more than ${MEMORY_MIB} MiB of memory\nhint: ask for less of the log` : ''

/** Output of which the last bytes are kept; `add` returns whether some are lost. */
function kept(bytes: number) {
  const pieces: Buffer[] = []
  let [held, isCut] = [0, false]
  return {
    add(piece: Buffer): boolean {
      pieces.push(piece)
      held += piece.length
      while (held - pieces[0]!.length >= bytes) {
        held -= pieces.shift()!.length
        isCut = true
      }
      return isCut || held > bytes
    },
    text: () => Buffer.concat(pieces).subarray(-bytes).toString(),
  }
}

/** The error that a command printed, with its hint. */
function errorIn(stderr: string): string {
  const at = stderr.lastIndexOf('error: ')
  return (at < 0 ? stderr : stderr.slice(at + 'error: '.length)).trim() || 'the command failed without a message'
}
