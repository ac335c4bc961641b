import type { GraphRun } from '../../analyze/graph/runs.ts'
import { growColumns } from '../../bytes/resized.ts'
import { putAt } from '../../model/by-id.ts'
import type { Barriers } from './barriers.ts'

/** Waits that are held at most, and for each row: a block of one worker contains up to 13 000 operators. */
const HELD_MAX = 1 << 20
const HELD_OF_ROW = 1 << 14

const COLUMNS = ['track', 'fromNs', 'toNs', 'inferred', 'flags', 'step', 'next'] as const

/** The waits of a graph run that are held: a list of rows of the columns. */
interface RunWaits {
  readonly run: GraphRun
  first: number
  last: number
}

/**
 * Waits at barriers that are drawn when the operators of all workers were read: the last arrival is known then. The operators around them
 * are written long before.
 */
export class LateWaits {
  track = new Int32Array(1024)
  fromNs = new Float64Array(1024)
  toNs = new Float64Array(1024)
  inferred = new Int32Array(1024)
  flags = new Uint8Array(1024)
  step = new Int32Array(1024)
  /** The next one of the run, or the next free row; -1: none. */
  next = new Int32Array(1024)
  private free = -1
  private used = 0
  private held = 0
  /** The rows so far, by track, and how many waits may be held of all. */
  private readonly rows: (true | undefined)[] = []
  private most = 0
  /** By serial, in order of the first wait. */
  private readonly runs = new Map<number, RunWaits>()
  private latest: RunWaits | undefined
  /** By worker: the serial of the run that it began last. */
  private readonly begun = new Map<number, number>()
  private latestWorker = -1

  /** `arrow` draws an arrow to a wait that begins on a track at this time, from the operator of the worker that was waited for. */
  constructor(
    private readonly barriers: Barriers,
    private readonly arrow: (worker: number, track: number, atNs: number) => void,
  ) {}

  /** `flags`: see {@link Barriers.place}. */
  hold(
    track: number,
    fromNs: number,
    toNs: number,
    inferred: number,
    flags: number,
    run: GraphRun,
    step: number,
  ): void {
    if (!this.rows[track]) {
      putAt(this.rows, track, true, undefined)
      this.most = Math.min(this.most + HELD_OF_ROW, HELD_MAX)
    }
    if (this.held >= this.most) this.draw(this.runs.values().next().value!)
    let at = this.free
    if (at >= 0) this.free = this.next[at]!
    else {
      at = this.used++
      if (at === this.track.length) growColumns(this, COLUMNS, 2 * at)
    }
    this.held++
    this.track[at] = track
    this.fromNs[at] = fromNs
    this.toNs[at] = toNs
    this.inferred[at] = inferred
    this.flags[at] = flags
    this.step[at] = step
    this.next[at] = -1
    const waits = this.latest?.run.serial === run.serial ? this.latest : this.waitsOf(run)
    if (waits.last < 0) waits.first = at
    else this.next[waits.last] = at
    waits.last = at
  }

  /**
   * A worker begins a run. Logs contain the operators of each worker in blocks, or those of all by turns: when one that is known continues after another
   * one, all have been read up to the run that the slowest has begun.
   */
  reach(worker: number, { serial }: GraphRun): void {
    const isContinued = worker !== this.latestWorker && this.begun.has(worker)
    this.latestWorker = worker
    this.begun.set(worker, serial)
    if (!isContinued) return
    const first = Math.min(...this.begun.values())
    for (const [serial, waits] of this.runs) {
      if (serial >= first) break
      this.draw(waits)
    }
  }

  /** All operators of the run were read. */
  complete({ serial }: GraphRun): void {
    const waits = this.runs.get(serial)
    if (waits) this.draw(waits)
  }

  private waitsOf(run: GraphRun): RunWaits {
    let waits = this.runs.get(run.serial)
    if (!waits) {
      waits = { run, first: -1, last: -1 }
      this.runs.set(run.serial, waits)
    }
    this.latest = waits
    return waits
  }

  private draw({ run, first, last }: RunWaits): void {
    const all = workersOf(run)
    const { track, fromNs, toNs, inferred, flags, step } = this
    for (let at = first; at >= 0; at = this.next[at]!) {
      const ofRun = step[at]!
      // A single worker waits for nobody; where one is missing, it may be the last.
      const worker = all < 2 || run.workers[ofRun] !== all ? -1 : run.slowest[ofRun]!
      const lastNs = run.endNs[ofRun]!
      const from = fromNs[at]!
      this.barriers.place(track[at]!, from, toNs[at]!, inferred[at]!, flags[at]!, worker, lastNs)
      // None to a wait that begins before the operator: trace_processor turns arrows so that they lead to the later slice.
      const isNamed = worker >= 0 && Math.min(lastNs, toNs[at]!) - from >= this.barriers.namedFromNs
      if (isNamed && run.slowestNs[ofRun]! < from) this.arrow(worker, track[at]!, from)
      this.held--
    }
    this.next[last] = this.free
    this.free = first
    this.runs.delete(run.serial)
    this.latest = undefined
  }
}

/** Workers of a run: those of its step with most of them. */
function workersOf({ count, workers }: GraphRun): number {
  let most = 0
  for (let step = 0; step < count; step++) if (workers[step]! > most) most = workers[step]!
  return most
}
