import { firstTimeOf, lastTimeOf, type TraceEvent } from '../model/events.ts'
import type { Placed } from './clocks/placing.ts'
import type { Log } from './inputs.ts'

/** An input that is read together with others. */
export interface PlacedLog {
  readonly log: Log
  readonly placed: Placed
}

/** The next batch of an input, and the times in it on the trace's clock. */
interface Head<T> {
  readonly of: T
  readonly batch: TraceEvent[]
  readonly firstNs: number
  readonly lastNs: number
}

/**
 * Yields the batches of all inputs: of logs in order of their last times; of a recording of the scheduler before the batch of a log
 * that ends after it begins. Recordings that contain one CPU after the other come first, and so do several of them, one after the
 * other, because each CPU belongs to one of them. The order of batches of one input does not change.
 */
export async function* interleaved<T extends PlacedLog>(
  inputs: readonly T[],
): AsyncGenerator<{ readonly of: T; readonly batch: TraceEvent[] }, void> {
  const recordings = inputs.filter(({ log }) => log.isOfScheduler)
  const logs = inputs.filter(({ log }) => !log.isOfScheduler)
  const isAlone = recordings.length === 1 && recordings[0]!.log.first.capabilities?.order !== false
  if (!isAlone || logs.length === 0) {
    for (const recording of recordings)
      for await (const batch of recording.placed.batches) yield { of: recording, batch }
  }
  if (logs.length === 1 && !isAlone) {
    const [only] = logs as [T]
    for await (const batch of only.placed.batches) yield { of: only, batch }
    return
  }
  let recorded = isAlone ? await headOf(recordings[0]!) : undefined
  const heads = await Promise.all(logs.map(headOf))
  for (;;) {
    const at = earliest(heads)
    const next = heads[at]
    if (!next) break
    while (recorded && recorded.firstNs <= next.lastNs) {
      yield recorded
      recorded = await headOf(recorded.of)
    }
    yield next
    heads[at] = await headOf(next.of)
  }
  for (; recorded; recorded = await headOf(recorded.of)) yield recorded
}

/** Index of the batch that ends first; -1 without any. */
function earliest(heads: readonly ({ readonly lastNs: number } | undefined)[]): number {
  let at = -1
  for (let i = 0; i < heads.length; i++) {
    if (heads[i] && (at < 0 || heads[i]!.lastNs < heads[at]!.lastNs)) at = i
  }
  return at
}

async function headOf<T extends PlacedLog>(log: T): Promise<Head<T> | undefined> {
  const { placed } = log
  const next = await placed.batches[Symbol.asyncIterator]().next()
  if (next.done) return undefined
  let [firstNs, lastNs] = [Infinity, -Infinity]
  for (const event of next.value) {
    const fromNs = firstTimeOf(event)
    if (fromNs === undefined) continue
    if (fromNs < firstNs) firstNs = fromNs
    const toNs = lastTimeOf(event)!
    if (toNs > lastNs) lastNs = toNs
  }
  const isTimed = firstNs <= lastNs
  return {
    ...{ of: log, batch: next.value },
    firstNs: isTimed ? placed.timeOf(firstNs) : -Infinity,
    lastNs: isTimed ? placed.timeOf(lastNs) : -Infinity,
  }
}
