/** Ids that a row tells. */
interface Ids {
  readonly tid: number
  readonly tgid: number
}

/** Which of two columns holds the ids of threads. */
export interface ThreadIds {
  /** It is the one that the layout calls the process'. */
  readonly areSwapped: boolean
  /** How that was come by, for the trace's attributes. */
  readonly about: string
}

/**
 * Which column of ids is the threads': a process has many threads, a thread has one process, so it is the one with more
 * values. Values that come only once are not counted: a thread's start has an end, a damaged id has none. Where that
 * decides nothing (each process with one thread), the columns are taken as the logger is known to write them.
 */
export function findThreadIds(rows: readonly Ids[], [tidColumn, tgidColumn]: readonly [string, string]): ThreadIds {
  const inThread = countRepeated(rows.map((row) => row.tid))
  const inProcess = countRepeated(rows.map((row) => row.tgid))
  const areSwapped = inProcess > inThread
  const [threads, processes] = areSwapped ? [tgidColumn, tidColumn] : [tidColumn, tgidColumn]
  const counts = `${tidColumn} has ${inThread} values, ${tgidColumn} ${inProcess}`
  const about =
    inThread === inProcess
      ? `column ${threads}, assumed as the logger writes it: the log does not tell (${counts})`
      : `column ${threads}, inferred: ${counts}, and a process (column ${processes}) has many threads`
  return { areSwapped, about }
}

function countRepeated(values: readonly number[]): number {
  const counts = new Map<number, number>()
  for (const value of values) if (value >= 0) counts.set(value, (counts.get(value) ?? 0) + 1)
  let repeated = 0
  for (const count of counts.values()) if (count > 1) repeated++
  return repeated
}
