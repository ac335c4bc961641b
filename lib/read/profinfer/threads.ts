import { FreeNumbers } from '../common/free-numbers.ts'

/** Ids in a row. */
interface Ids {
  readonly tid: number
  readonly tgid: number
}

/** Which of two columns contains the ids of threads. */
export interface ThreadIds {
  /** True: the one that the layout calls the process'. */
  readonly areSwapped: boolean
  /** For the trace's attributes: the column, and how it was chosen. */
  readonly about: string
}

/**
 * Finds the column of the thread ids: a process has many threads, a thread has one process, so it is the one with more
 * values. Values that occur only once are not counted: a thread's start has an end, a damaged id has none. Where both
 * have the same number (each process with one thread), the columns are as the logger is known to write them.
 */
export function findThreadIds(rows: readonly Ids[], [tidColumn, tgidColumn]: readonly [string, string]): ThreadIds {
  const inThread = countRepeated(rows.map((row) => row.tid))
  const inProcess = countRepeated(rows.map((row) => row.tgid))
  const areSwapped = inProcess > inThread
  const [threads, processes] = areSwapped ? [tgidColumn, tidColumn] : [tidColumn, tgidColumn]
  const counts = `${tidColumn} has ${inThread} values, ${tgidColumn} ${inProcess}`
  const about =
    inThread === inProcess
      ? `column ${threads}, assumed as the logger writes it: the log does not show it (${counts})`
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

/**
 * The worker (ggml's `ith`) of a thread, where a log contains thread ids only. The thread that runs a graph is worker 0
 * (ggml-cpu: ggml_graph_compute's caller is worker 0); the other threads that are active then are 1, 2, … in the order
 * in which they appear. llama.cpp may create new threads for every graph, so an index is free again when its graph
 * ends; a thread that appears again gets its old index where that is free.
 */
export class Workers {
  private readonly active = new Map<number, number>()
  private readonly previous = new Map<number, number>()
  /** From 1 on: 0 is the thread that runs a graph. */
  private readonly numbers = new FreeNumbers(1)
  private isHostTaken = false

  /** The worker of a thread that runs a graph from now on. */
  host(tid: number): number {
    return this.active.get(tid) ?? this.take(tid, 0)
  }

  /** The worker of `tid` now. */
  of(tid: number): number {
    return this.active.get(tid) ?? this.take(tid, this.previous.get(tid) ?? 1)
  }

  /** A graph or call has ended: frees the worker of `tid`. */
  release(tid: number): void {
    const worker = this.active.get(tid)
    if (worker === undefined) return
    this.active.delete(tid)
    this.previous.set(tid, worker)
    if (worker === 0) this.isHostTaken = false
    else this.numbers.release(worker)
  }

  private take(tid: number, wanted: number): number {
    const worker = this.free(wanted)
    this.active.set(tid, worker)
    return worker
  }

  /** Takes the wanted number, or, where it is taken, the smallest free one. */
  private free(wanted: number): number {
    if (wanted > 0) return this.numbers.take(wanted)
    if (this.isHostTaken) return this.numbers.take()
    this.isHostTaken = true
    return 0
  }
}
