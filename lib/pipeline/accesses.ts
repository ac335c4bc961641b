import type { AccessJoin } from '../analyze/graph/accesses/join.ts'
import type { AccessStore } from '../analyze/graph/accesses/store.ts'
import type { Names } from '../model/names.ts'
import { eventsAgain } from './budget/sizes.ts'
import type { Placed } from './clocks/placing.ts'
import type { Log } from './inputs.ts'
import type { RunInputs, RunOptions } from './run-inputs.ts'

/** Samples on the clock of the first log, and the relations of the logs' clocks to it. */
export interface Accesses {
  readonly store: AccessStore
  readonly Join: typeof AccessJoin
  readonly placed: ReadonlyMap<Log, Pick<Placed, 'timeOf'>>
}

/**
 * Reads the samples of data addresses of all inputs, before logs are read, as far as there is a log with tensors and the input can be
 * read twice. Times are those of the first log. Throws as the reading of the inputs does, and UsageError where the relation of a clock to
 * the log's is not known.
 */
export async function readAccesses(run: RunInputs, names: Names, options: RunOptions): Promise<Accesses | undefined> {
  const { logs } = run
  const sampled = logs.filter(({ first }) => first.capabilities?.accesses === true)
  if (sampled.length === 0 || logs[0]!.isOfScheduler) return undefined
  const [{ AccessStore }, { AccessJoin }] = await Promise.all([
    import('../analyze/graph/accesses/store.ts'),
    import('../analyze/graph/accesses/join.ts'),
  ])
  const store = new AccessStore()
  // This placing is for times only: the one that the trace uses is made for the reading of all events.
  const placing = run.placing(options)
  const placed = new Map<Log, Placed>()
  for (const log of logs) if (!log.isOfScheduler) placed.set(log, await placing.placeAhead(log))
  for (const log of sampled) {
    const times = placed.get(log) ?? (await placing.placeAhead(log))
    for await (const batch of (await eventsAgain(log.input.given, names, options)) ?? []) {
      for (const event of batch) {
        if (event.kind !== 'access' && event.kind !== 'mapping') continue
        const atNs = times.timeOf(event.atNs)
        if (event.kind === 'access') store.add(event, atNs)
        else store.map(event, atNs)
      }
    }
  }
  return store.count > 0 ? { store, placed, Join: AccessJoin } : undefined
}

/** A join for a log; undefined where there are no samples, or the log is itself a recording of the kernel. */
export function joinOf(accesses: Accesses | undefined, log: Log, names: Names): AccessJoin | undefined {
  const placed = accesses?.placed.get(log)
  if (!accesses || !placed) return undefined
  const pid = Number(log.first.attributes['pid'])
  const known = Number.isInteger(pid) && pid > 0 ? pid : undefined
  return new accesses.Join(accesses.store, names, known, (ns) => {
    // The inverse of the relation: exact without drift, and to the nanosecond with the drift of clocks.
    const near = ns - (placed.timeOf(ns) - ns)
    return ns - (placed.timeOf(near) - near)
  })
}
