import { closeSync, openSync } from 'node:fs'
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { checkNames, UsageError } from '../../errors.ts'
import { RECORD_RUNS_OPTIONS } from '../../generated/option-names.ts'
import { ownUntilEnd } from '../left-overs.ts'
import { makeOutputFolder } from '../outputs.ts'
import { type RecordOptions, type RecordResult, record } from './record.ts'

/** What to record, and how often. */
export interface RunsOptions extends Pick<RecordOptions, 'level' | 'states' | 'onStart' | 'onBuild'> {
  /** Two commands, each for a shell. */
  readonly commands: readonly [before: string, after: string]
  /** Runs of each. */
  readonly runs: number
  /** Runs of each before, which are recorded in the same way, and dropped. */
  readonly warmup: number
  /** Folder for the logs `a-1.ggtrace`, `b-1.ggtrace` …; it is made. */
  readonly folder: string
  /** Draws the order: numbers from 0 to below 1. By default Math.random. */
  readonly random?: (() => number) | undefined
  /** Called before each run. */
  readonly onRun?:
    | ((run: { readonly side: 'a' | 'b'; readonly number: number; readonly isWarmup: boolean }) => void)
    | undefined
}

/** The logs of both sides, in order. */
export interface RecordedRuns {
  readonly a: readonly string[]
  readonly b: readonly string[]
}

/** Logs of both sides, and of further processes of a run. */
const RUN_LOG = /^[ab]-\d+\.ggtrace/
/** Characters of a program's messages that are shown if it fails. */
const SHOWN = 1000

/**
 * Records two commands by turns, in blocks of A B B A or B A A B (drawn): a machine that gets slower in the meantime makes both slower.
 * Throws UsageError if the folder contains runs already, or if a command fails or calls no llama.cpp; logs that were recorded stay.
 */
export async function recordRuns(options: RunsOptions): Promise<RecordedRuns> {
  checkNames('recordRuns', options, RECORD_RUNS_OPTIONS)
  const { runs, warmup, folder, random = Math.random } = options
  await newRunFolder(folder, (name) => RUN_LOG.test(name))
  for (let number = 1; number <= warmup; number++) {
    for (const side of ['a', 'b'] as const) {
      for (const log of await recordOne(options, side, number, true)) await unlink(log)
    }
  }
  const logs = { a: [] as string[], b: [] as string[] }
  for (const side of orderOf(runs, random))
    logs[side].push((await recordOne(options, side, logs[side].length + 1, false))[0]!)
  return logs
}

/** `n` of each side: blocks of four with both orders, and two at the end of an odd number. */
export function orderOf(n: number, random: () => number): ('a' | 'b')[] {
  const order: ('a' | 'b')[] = []
  for (let left = n; left > 0; left -= 2) {
    const [first, second] = random() < 0.5 ? (['a', 'b'] as const) : (['b', 'a'] as const)
    order.push(...(left > 1 ? [first, second, second, first] : [first, second]))
  }
  return order
}

async function recordOne(
  options: RunsOptions,
  side: 'a' | 'b',
  number: number,
  isWarmup: boolean,
): Promise<readonly string[]> {
  const { commands, folder, level, states, onStart, onBuild, onRun } = options
  onRun?.({ side, number, isWarmup })
  const output = join(folder, isWarmup ? `${side}-warmup.ggtrace` : `${side}-${number}.ggtrace`)
  const command = commands[side === 'a' ? 0 : 1]
  const { logs } = await recordQuietly(
    { command: ['sh', '-c', command], output, level, states, onStart, onBuild },
    command,
    join(folder, `${side}.messages`),
  )
  return logs
}

/**
 * Records a program whose output is not shown unless it fails; it ends with this process. Throws UsageError, which names it so, if it fails or
 * there is no log.
 */
export async function recordQuietly(options: RecordOptions, name: string, messages: string): Promise<RecordResult> {
  const sink = openSync(messages, 'w')
  const remove = ownUntilEnd(messages)
  try {
    const result = await record({ ...options, group: true, stdio: ['ignore', sink, sink] })
    const { exitCode, signal, logs, problem, failure } = result
    if (exitCode !== 0) {
      const said = (await readFile(messages, 'utf8')).trim().slice(-SHOWN)
      const how = signal === undefined ? `ended with exit code ${exitCode}` : `was ended by ${signal}`
      throw new UsageError(`${name}: ${how}${said === '' ? '' : `; its last messages:\n${said}`}`)
    }
    if (failure !== undefined) throw new UsageError(failure)
    if (logs[0] === undefined) throw new UsageError(`${name}: ${problem ?? 'no log was recorded'}`)
    return result
  } finally {
    closeSync(sink)
    remove()
  }
}

/** Makes the folder for the logs of several runs. Throws UsageError if it contains such logs already. */
export async function newRunFolder(folder: string, isLog: (name: string) => boolean): Promise<void> {
  await makeOutputFolder(folder)
  const old = (await readdir(folder)).find(isLog)
  if (old !== undefined)
    throw new UsageError(`${folder}: contains runs already (${old})\nhint: give another folder, or remove them`)
}
