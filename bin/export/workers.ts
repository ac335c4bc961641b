import { type ChildProcess, fork } from 'node:child_process'
import { type ExportedRun, isOwnError } from '../../lib/cli.ts'

/** What became of a run. */
export type Outcome =
  | { readonly run: ExportedRun }
  | { readonly failure: { readonly message: string; readonly isOwn: boolean } }

/** A run to export: its logs. */
export type Task = readonly string[]

/** Exports a run; never rejects. */
export async function attempt(work: () => Promise<ExportedRun>): Promise<Outcome> {
  try {
    return { run: await work() }
  } catch (error) {
    return { failure: { message: (error as Error).message, isOwn: isOwnError(error) } }
  }
}

/**
 * Exports runs by several processes, each of them `command` with `--worker` (this program with the same arguments). `done` gets each outcome. A process
 * that ends early fails its run only.
 */
export async function exportByProcesses(
  tasks: readonly Task[],
  jobs: number,
  command: readonly string[],
  done: (task: Task, outcome: Outcome) => Promise<void>,
): Promise<void> {
  const [program, ...args] = command
  const waiting = [...tasks]
  const lane = async () => {
    let child: ChildProcess | undefined
    try {
      for (let task = waiting.shift(); task; task = waiting.shift()) {
        child ??= fork(program!, [...args, '--worker'], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
        const outcome = await askOf(child, task)
        if (child.exitCode !== null || child.signalCode !== null || !child.connected) child = undefined
        await done(task, outcome)
      }
    } finally {
      child?.disconnect()
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, tasks.length) }, lane))
}

function askOf(child: ChildProcess, task: Task): Promise<Outcome> {
  return new Promise((resolve) => {
    const ended = (code: number | null, signal: string | null) => {
      child.off('message', answered)
      const how = signal ? `by ${signal}` : `with exit code ${code}`
      resolve({ failure: { message: `the process that exported it ended ${how}`, isOwn: true } })
    }
    const answered = (outcome: Outcome) => {
      child.off('exit', ended)
      resolve(outcome)
    }
    child.once('message', answered as (message: unknown) => void)
    child.once('exit', ended)
    child.send(task)
  })
}

/** As one of these processes: exports each run that comes, until the other side is gone. */
export function serve(work: (task: Task) => Promise<ExportedRun>): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (task: Task) => {
      void attempt(() => work(task)).then((outcome) => process.send?.(outcome))
    })
    process.once('disconnect', resolve)
  })
}
