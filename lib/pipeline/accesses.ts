import { AccessJoin } from '../analyze/graph/accesses/join.ts'
import { AccessStore } from '../analyze/graph/accesses/store.ts'
import { besideOf } from '../input/byte-source.ts'
import type { Names } from '../model/names.ts'
import { rereadable } from './budget/sizes.ts'
import { type Placed, Placing } from './clocks/placing.ts'
import { eventsOf, type Input, type Log, type LogInput, type OpenInput, type ReadingOptions } from './inputs.ts'

/** What is shared by the inputs of a trace or an Analysis. */
interface Sharing {
  readonly inputs: readonly Input[]
  readonly opened: readonly OpenInput[]
  readonly names: Names
}

/** Samples on the clock of the first log, and the relations of the logs' clocks to it. */
export interface Accesses {
  readonly store: AccessStore
  readonly placed: ReadonlyMap<Log, Pick<Placed, 'timeOf'>>
}

/**
 * Reads the samples of data addresses of all inputs, before logs are read, as far as there is a log with tensors and the input can be
 * read twice. Times are those of the first log. Throws as the reading of the inputs does, and UsageError where the relation of a clock to
 * the log's is not known.
 */
export async function readAccesses(
  logs: readonly Log[],
  { inputs, opened, names }: Sharing,
  options: ReadingOptions & { readonly clocks?: Readonly<Record<string, string>> | undefined },
): Promise<Accesses | undefined> {
  const sampled = logs.filter(({ first }) => first.capabilities?.accesses === true)
  if (sampled.length === 0 || logs[0]!.isOfScheduler) return undefined
  const store = new AccessStore()
  // This placing is for times only: the one that the trace uses is made for the reading of all events.
  const placing = new Placing(options.clocks ?? {}, logs)
  const placed = new Map<Log, Placed>()
  for (const log of logs) if (!log.isOfScheduler) placed.set(log, await placing.placeAhead(log))
  for (const log of sampled) {
    const input = inputs[opened.indexOf(log.input)]!
    const times = placed.get(log) ?? (await placing.placeAhead(log))
    for await (const batch of await batchesOf(input, names, options)) {
      for (const event of batch) {
        if (event.kind !== 'access' && event.kind !== 'mapping') continue
        const atNs = times.timeOf(event.atNs)
        if (event.kind === 'access') store.add(event, atNs)
        else store.map(event, atNs)
      }
    }
  }
  return store.count > 0 ? { store, placed } : undefined
}

/** The events of an input once more; none of an input that can be read only once. */
async function batchesOf(
  input: Input,
  names: Names,
  options: ReadingOptions,
): Promise<ReturnType<typeof eventsOf> | []> {
  if ('events' in input) return eventsOf(input, names, { ...options, strict: false })
  const again = await rereadable(input)
  if (!again) return []
  const { name, source } = input satisfies LogInput
  const { range } = again
  const twin = Object.assign(range(0, Number.MAX_SAFE_INTEGER), { range, beside: besideOf(source) })
  return eventsOf({ name, source: twin }, names, { ...options, strict: false })
}

/** A join for a log; undefined where there are no samples, or the log is itself a recording of the kernel. */
export function joinOf(accesses: Accesses | undefined, log: Log, names: Names): AccessJoin | undefined {
  const placed = accesses?.placed.get(log)
  if (!accesses || !placed) return undefined
  const pid = Number(log.first.attributes['pid'])
  const known = Number.isInteger(pid) && pid > 0 ? pid : undefined
  return new AccessJoin(accesses.store, names, known, (ns) => {
    // The inverse of the relation: exact without drift, and to the nanosecond with the drift of clocks.
    const near = ns - (placed.timeOf(ns) - ns)
    return ns - (placed.timeOf(near) - near)
  })
}
