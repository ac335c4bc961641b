import { DefaultMap } from '../../model/default-map.ts'
import {
  type SwitchEvent,
  type TaskEvent,
  TaskState,
  type TaskStep,
  type ThreadEvent,
  type TraceEvent,
} from '../../model/events.ts'
import { type Estimate, estimateOffset, matchTrains, type Range } from './estimate.ts'
import { MessageSights } from './messages.ts'
import { ServerLines } from './server-lines.ts'

/** Maximum difference between two inputs' times of one fork or exit. 50 µs. */
const PAIR_NS = 50_000
/** Maximum difference between two inputs' times of one switch: perf's record and the tracepoint follow one another. 20 µs. */
const RUN_NS = 20_000
/**
 * Maximum difference between two inputs' begins of one llama_decode: one is recorded by a probe, which traps into the kernel, the
 * other by the recorder. 100 µs.
 */
const CALL_NS = 100_000
/** Switches to a thread that are kept, and begins of calls. */
const RUNS_MAX = 600
/** Threads whose switches are kept. */
const TRAINS_MAX = 256

/** Times of one thread in an input, in ns since the input's origin. */
interface Sight {
  firstNs: number
  lastNs: number
  bornNs: number | undefined
  diedNs: number | undefined
  isBornTwice: boolean
  readonly runs: number[]
  /** Begins of its llama_decode calls. */
  readonly calls: number[]
}

/** Times of the threads in an input, of a server's tasks and calls, and of messages between processes. Memory grows with the number of threads. */
export class Sights {
  readonly messages = new MessageSights()
  readonly serverLines = new ServerLines()
  private readonly steps = new StepSights()
  private readonly threads = new DefaultMap<number, Sight>(() => ({
    firstNs: Infinity,
    lastNs: -Infinity,
    bornNs: undefined,
    diedNs: undefined,
    isBornTwice: false,
    runs: [],
    calls: [],
  }))

  see(event: TraceEvent): void {
    switch (event.kind) {
      case 'input':
        return this.serverLines.see(event)
      case 'operator':
        return this.at(event.tid, event.startNs, event.waitEndNs)
      case 'token':
        this.serverLines.see(event)
        this.call(event.tid, event.startNs)
        return this.at(event.tid, event.startNs, event.endNs)
      case 'copy':
        return this.at(event.tid, event.startNs, event.endNs)
      case 'range':
        return this.at(event.tid, event.atNs)
      case 'state':
        if (event.state === 'running') this.run(event.tid, event.atNs)
        if (event.state === 'ended') this.end(event.tid, event.atNs)
        return this.at(event.tid, event.atNs)
      case 'switch':
        return this.switched(event)
      case 'thread':
        return this.lifecycle(event)
      case 'task':
        this.serverLines.see(event)
        return this.steps.see(event)
      case 'rpc':
        return this.messages.see(event)
    }
  }

  /** The offset from times of `here` to times of this input; undefined where nothing of both agrees. */
  estimate(here: Sights): Estimate | undefined {
    return estimateOffset(this.rangesTo(here))
  }

  /**
   * Ranges of the offset from times of `here` to times of this input: a thread runs between its fork and its exit, and both
   * inputs record the same forks, exits, switches or calls of llama_decode, or the same steps of tasks.
   */
  private rangesTo(here: Sights): Range[] {
    const ranges = this.steps.rangesTo(here.steps)
    for (const [tid, mine] of this.threads) {
      const its = here.threads.get(tid)
      if (!its || isTwice(mine) || isTwice(its)) continue
      const from = Math.max(
        difference(mine.lastNs, endOf(its), -Infinity),
        difference(mine.bornNs, its.firstNs, -Infinity),
      )
      const to = difference(mine.firstNs, its.bornNs, Infinity)
      if (from > -Infinity || to < Infinity) ranges.push({ from, to })
      ranges.push(...around(difference(mine.bornNs, its.bornNs, Number.NaN), PAIR_NS))
      ranges.push(...around(difference(mine.diedNs, its.diedNs, Number.NaN), PAIR_NS))
      const run = matchTrains(mine.runs, its.runs, RUN_NS)
      if (run) ranges.push(...around(run.offsetNs, RUN_NS))
      const call = matchTrains(mine.calls, its.calls, CALL_NS)
      if (call) ranges.push(...around(call.offsetNs, CALL_NS))
    }
    return ranges
  }

  private at(tid: number, fromNs: number, toNs = fromNs): void {
    if (tid <= 0) return
    const sight = this.threads.of(tid)
    if (fromNs < sight.firstNs) sight.firstNs = fromNs
    if (toNs > sight.lastNs) sight.lastNs = toNs
  }

  private run(tid: number, atNs: number): void {
    if (tid <= 0) return
    const { runs } = this.threads.of(tid)
    if (runs.length < RUNS_MAX && this.threads.size <= TRAINS_MAX) runs.push(atNs)
  }

  private call(tid: number, atNs: number): void {
    if (tid <= 0) return
    const { calls } = this.threads.of(tid)
    if (calls.length < RUNS_MAX) calls.push(atNs)
  }

  private end(tid: number, atNs: number): void {
    if (tid > 0) this.threads.of(tid).diedNs ??= atNs
  }

  private switched({ atNs, prevTid, prevState, nextTid }: SwitchEvent): void {
    this.at(prevTid, atNs)
    this.at(nextTid, atNs)
    this.run(nextTid, atNs)
    if (prevState & (TaskState.X | TaskState.Z)) this.end(prevTid, atNs)
  }

  private lifecycle({ what, tid, atNs }: ThreadEvent): void {
    if (tid <= 0) return
    if (what === 'exit') return this.end(tid, atNs)
    if (what !== 'fork') return
    const sight = this.threads.of(tid)
    sight.isBornTwice ||= sight.bornNs !== undefined
    sight.bornNs ??= atNs
  }
}

/** Was the thread id reused? */
function isTwice({ isBornTwice, bornNs, firstNs }: Sight): boolean {
  return isBornTwice || (bornNs !== undefined && firstNs < bornNs)
}

/** The end of a thread: it runs shortly after its recorded exit, until it leaves its CPU, if that is recorded too. */
function endOf({ diedNs, lastNs }: Sight): number | undefined {
  return diedNs === undefined ? undefined : lastNs > diedNs ? lastNs : diedNs + PAIR_NS
}

function difference(there: number | undefined, here: number | undefined, unknown: number): number {
  if (there === undefined || here === undefined || !Number.isFinite(there - here)) return unknown
  return there - here
}

function around(offsetNs: number, toleranceNs: number): Range[] {
  return Number.isNaN(offsetNs) ? [] : [{ from: offsetNs - toleranceNs, to: offsetNs + toleranceNs }]
}

/** Maximum difference between two inputs' times of one step: a recorder's, and the server's when it writes the line. 100 µs. */
const STEP_NS = 100_000
/** Steps that are kept. */
const STEPS_MAX = 2000
/** Servers number their tasks from 0: fewer steps in common may be those of two runs. */
const COMMON_MIN = 4
/** Steps that a task has once. A launch is recorded when it begins, and its line is written 0.1 to 0.6 ms later. */
const ONCE: ReadonlySet<TaskStep> = new Set(['prompt', 'reuse', 'release', 'cancel', 'error'])

/** Times of the steps of a server's tasks in an input, in ns since the input's origin. */
class StepSights {
  private readonly times = new Map<string, number>()

  see({ what, task, atNs }: TaskEvent): void {
    if (task < 0 || !ONCE.has(what) || this.times.size >= STEPS_MAX) return
    const key = `${task} ${what}`
    if (!this.times.has(key)) this.times.set(key, atNs)
  }

  /** Ranges of the offset from times of `here` to times of this input: both record the same steps. */
  rangesTo(here: StepSights): Range[] {
    const ranges: Range[] = []
    for (const [key, atNs] of here.times) {
      const mine = this.times.get(key)
      if (mine === undefined) continue
      ranges.push({ from: mine - atNs - STEP_NS, to: mine - atNs + STEP_NS })
    }
    return ranges.length < COMMON_MIN ? [] : ranges
  }
}
