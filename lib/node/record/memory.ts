import type { ChildProcess } from 'node:child_process'
import { stat, unlink } from 'node:fs/promises'
import { pid } from 'node:process'
import type { Readable, Writable } from 'node:stream'
import { describeEnding, startChild } from '../children.ts'
import { giveMadeToCaller } from '../outputs.ts'
import type { Environment } from './program.ts'

/** The page faults of the recorded processes, with their addresses. */
export interface MemRecording {
  /** A perf.data file on CLOCK_MONOTONIC; undefined if there is none. */
  readonly path: string | undefined
  /** Why there is none, or why its end is missing, as a message. */
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
/** perf completes its file within this time, in ms: it reads the programs that were mapped. */
const WRITE_MS = 20_000
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
  let killed: string | undefined
  const perf = await startPerf(path, env, (problem) => {
    killed = problem
    onMemProblem?.(problem)
  })
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
    return { ended, mem: { path, problem: killed, bytes: stats.size } }
  } finally {
    await perf.stop()
  }
}

interface Perf {
  stop(): Promise<void>
  message(): string
}

/** Starts perf, and waits until it records; returns the reason if it does not. `onKilled` is called with what is missing if it ends early. */
async function startPerf(
  path: string,
  env: Environment | undefined,
  onKilled: (problem: string) => void,
): Promise<Perf | string> {
  await unlink(path).catch(() => undefined)
  const args = ['record', '-q', '-e', 'page-faults', '-c', '1', '-d', '--sample-cpu', '-k', 'CLOCK_MONOTONIC']
  const control = ['--control', 'fd:3,4', '-o', path, '-p', `${pid}`]
  const stdio = ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] as const
  // It ends with this process, also without a guard, as it observes it.
  const perf = startChild(
    'perf',
    [...args, ...control],
    { stdio: [...stdio], detached: true, ...(env && { env }) },
    { by: 'SIGINT', graceMs: WRITE_MS },
  )
  let text = ''
  perf.child.stderr!.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(0, 10 * MESSAGE_CHARS_MAX)
  })
  for (const stream of perf.child.stdio) stream?.on('error', () => undefined)
  const message = () => (text.trim() === '' ? '' : `: ${text.trim().replace(/\s+/g, ' ').slice(0, MESSAGE_CHARS_MAX)}`)
  let isEarly = true
  const ended = perf.ended.then((ending) =>
    ending.error?.code === 'ENOENT' ? NOT_THERE : describeEnding('it', ending),
  )
  const problem = await Promise.race([ended, acknowledged(perf.child)])
  const stop = async () => {
    isEarly = false
    await perf.end()
  }
  if (problem !== undefined) {
    await stop()
    await unlink(path).catch(() => undefined)
    return problem === NOT_THERE ? problem : `perf cannot record page faults: ${problem}${message()}`
  }
  void perf.ended.then((ending) => {
    if (isEarly || ending.isForced) onKilled(`${describeEnding('perf', ending)}: ${path} has those before`)
  })
  return { stop, message }
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
