import { describeEnding, type ExportedRun, isOwnError, type OwnedChild, startChild } from '../../lib/cli.ts'
import { endBy, whenSignalled } from '../signals.ts'

/** What is printed after a signal. */
export const INTERRUPTED = 'interrupted: runs that were complete are exported; the same command adds the others'

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
 * that ends early fails its run only. A signal ends all, and this process. `clean` removes what processes that were killed left.
 */
export async function exportByProcesses(
  tasks: readonly Task[],
  jobs: number,
  command: readonly string[],
  done: (task: Task, outcome: Outcome) => Promise<void>,
  clean: () => Promise<void>,
): Promise<void> {
  const [program, ...args] = command
  const waiting = [...tasks]
  const running = new Set<OwnedChild>()
  let isInterrupted = false
  const release = whenSignalled((signal) => {
    const end = () => endBy(signal, INTERRUPTED)
    if (isInterrupted) end()
    isInterrupted = true
    for (const { child } of running) if (child.connected) child.disconnect()
    void Promise.all([...running].map((worker) => worker.end()))
      .then(clean)
      .finally(end)
  })
  const start = () => {
    const words = [...process.execArgv, program!, ...args, '--worker']
    const worker = startChild(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    running.add(worker)
    void worker.ended.then(() => running.delete(worker))
    return worker
  }
  const lane = async () => {
    let worker: OwnedChild | undefined
    try {
      for (let task = waiting.shift(); task; task = waiting.shift()) {
        worker ??= start()
        const outcome = await askOf(worker, task)
        if (isInterrupted) await new Promise(() => undefined)
        if (!worker.send(0) || !worker.child.connected) worker = undefined
        await done(task, outcome)
      }
    } finally {
      if (worker?.child.connected) worker.child.disconnect()
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, tasks.length) }, lane)).finally(release)
  await clean()
}

function askOf({ child, ended }: OwnedChild, task: Task): Promise<Outcome> {
  return new Promise((resolve) => {
    child.once('message', resolve as (message: unknown) => void)
    void ended.then((ending) => {
      const message = describeEnding('the process that exported it', ending)
      resolve({ failure: { message, isOwn: true } })
    })
    child.send(task)
  })
}

/** As one of these processes: exports each run that comes, until the other side is gone. */
export function serve(work: (task: Task) => Promise<ExportedRun>): Promise<void> {
  whenSignalled(() => undefined) // the other side ends this one
  return new Promise((resolve) => {
    process.on('message', (task: Task) => {
      void attempt(() => work(task)).then((outcome) => process.send?.(outcome))
    })
    process.once('disconnect', resolve)
  })
}
