import { type ChildProcess, spawn } from 'node:child_process'
import { stat, unlink } from 'node:fs/promises'
import { pid } from 'node:process'
import type { Readable, Writable } from 'node:stream'
import { giveMadeToCaller } from '../outputs.ts'
import type { Environment } from './program.ts'

/** The page faults of the recorded processes, with their addresses. */
export interface MemRecording {
  /** A perf.data file on CLOCK_MONOTONIC; undefined if there is none. */
  readonly path: string | undefined
  /** Why there is none, as a message. */
  readonly problem: string | undefined
  /** Size of the file. */
  readonly bytes: number
}

/** How {@link withMem} runs perf. */
export interface MemOptions {
  /** Environment of perf, by default this process's. */
  readonly env?: Environment | undefined
  readonly onMemProblem?: ((problem: string) => void) | undefined
}

/** perf starts within this time, or not at all: it opens one event per CPU and thread. */
const START_MS = 10_000
/** Longest part of perf's own message that is shown. */
const MESSAGE_CHARS_MAX = 300

/**
 * Runs a program while perf records its page faults: perf attaches to this process, whose children inherit its events, so the program
 * remains this process's child. If this fails, the program runs nevertheless, and the result contains the reason; `onMemProblem` is
 * called with it as soon as it is known.
 */
export async function withMem<E>(
  log: string,
  run: () => Promise<E>,
  { env, onMemProblem }: MemOptions,
): Promise<{ ended: E; mem: MemRecording }> {
  const path = `${log.replace(/(?<=[^/])\.ggtrace$/, '')}.faults.data`
  const failed = (problem: string): MemRecording => {
    onMemProblem?.(problem)
    return { path: undefined, problem, bytes: 0 }
  }
  const perf = await startPerf(path, env)
  if (typeof perf === 'string') {
    const mem = failed(perf)
    return { ended: await run(), mem }
  }
  try {
    const ended = await run()
    await perf.stop()
    const stats = await stat(path).catch(() => undefined)
    if (!stats || stats.size === 0) return { ended, mem: failed(`perf wrote nothing${perf.message()}`) }
    await giveMadeToCaller(path)
    return { ended, mem: { path, problem: undefined, bytes: stats.size } }
  } finally {
    await perf.stop()
  }
}

interface Perf {
  stop(): Promise<void>
  message(): string
}

/** Starts perf, and waits until it records; returns the reason if it does not. */
async function startPerf(path: string, env: Environment | undefined): Promise<Perf | string> {
  await unlink(path).catch(() => undefined)
  const args = ['record', '-q', '-e', 'page-faults', '-c', '1', '-d', '--sample-cpu', '-k', 'CLOCK_MONOTONIC']
  const control = ['--control', 'fd:3,4', '-o', path, '-p', `${pid}`]
  const child = spawn('perf', [...args, ...control], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
    ...(env && { env }),
  })
  let text = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(0, 10 * MESSAGE_CHARS_MAX)
  })
  for (const stream of child.stdio) stream?.on('error', () => undefined)
  const ended = new Promise<string>((resolve) => {
    child.on('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code === 'ENOENT' ? NOT_THERE : message))
    child.on('exit', () => resolve('it ended'))
  })
  const message = () => (text.trim() === '' ? '' : `: ${text.trim().replace(/\s+/g, ' ').slice(0, MESSAGE_CHARS_MAX)}`)
  const problem = await Promise.race([ended, acknowledged(child)])
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
    await ended
  }
  if (problem === undefined) return { stop, message }
  if (problem !== NOT_THERE) await stop()
  return problem === NOT_THERE ? problem : `perf cannot record page faults: ${problem}${message()}`
}

const NOT_THERE = 'perf is not installed\nhint: install it (Debian: linux-perf, Ubuntu: linux-tools-generic)'

/** Asks perf whether it records: it answers when it has opened its events. Returns why not. */
function acknowledged({ stdio }: ChildProcess): Promise<string | undefined> {
  const [ask, answer] = [stdio[3] as Writable, stdio[4] as Readable]
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`it did not begin within ${START_MS / 1000} s`), START_MS)
    answer.once('data', () => {
      clearTimeout(timer)
      resolve(undefined)
    })
    answer.once('close', () => clearTimeout(timer))
    ask.write('ping\n')
  })
}
