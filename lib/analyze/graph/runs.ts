import { growColumns } from '../../bytes/resized.ts'
import { putAt } from '../../model/by-id.ts'
import type { OperatorEvent } from '../../model/events.ts'
import { STEP_COLUMNS, STEPS_FIRST, StepColumns } from './operators/step-columns.ts'

/** Steps that are kept until the operators of all workers were added: a log may contain 13 000 of one worker in a row. */
const HELD_STEPS_MAX = 1 << 16
/** Calls whose released runs are remembered, to recognise late operators. */
const RELEASED_CALLS_MAX = 256

const COLUMNS = [...STEP_COLUMNS, 'slowestNs'] as const

/** One compute of a graph, with all its splits. No node occurs twice. */
export class GraphRun extends StepColumns {
  /** When the worker that ended last began, in ns. */
  slowestNs = new Float64Array(STEPS_FIRST)
  /** -1: not begun, or released. */
  serial = -1
  call = -1
  /** The run that began after it, and the next one of its call. */
  next: GraphRun | undefined
  nextOfCall: GraphRun | undefined
  /** Room that it gets when it is full: most runs are as long as the one before. */
  private likely = 0

  /** Reuses the object for another run, without steps; `likely`: the number of steps that it probably gets. */
  begin(serial: number, call: number, likely: number): void {
    this.serial = serial
    this.call = call
    this.likely = likely
    this.count = 0
    this.next = this.nextOfCall = undefined
  }

  /** Adds a step. */
  add({ tensor, fusedTo, startNs, endNs, worker }: OperatorEvent): void {
    if (this.count === this.tensor.length) growColumns(this, COLUMNS, Math.max(2 * this.count, this.likely))
    const at = this.count++
    this.tensor[at] = tensor
    this.last[at] = fusedTo ?? tensor
    this.startNs[at] = startNs
    this.endNs[at] = endNs
    this.workers[at] = 1
    this.slowest[at] = worker
    this.slowestNs[at] = startNs
  }

  override extend(step: number, startNs: number, endNs: number, worker: number): void {
    if (endNs > this.endNs[step]!) this.slowestNs[step] = startNs
    super.extend(step, startNs, endNs, worker)
  }
}

/** The steps of a graph run, as columns of at least `count` rows. */
export type RunColumns = Pick<GraphRun, 'count' | (typeof STEP_COLUMNS)[number] | 'call'>

/** A step of a graph run. */
export interface StepOfRun {
  readonly run: GraphRun
  readonly step: number
}

/** The current step of a worker. */
interface Cursor extends StepOfRun {
  step: number
}

/**
 * Groups the operators of all workers into runs. Workers come in any order, the operators of each in order of time. A new run
 * begins with a new call, or with a node that the current run contains already. Runs are released in the order in which they
 * began, after a delay.
 */
export class GraphRuns {
  /** The ends of a list in the order of starts. */
  private first: GraphRun | undefined
  private last: GraphRun | undefined
  /** The same of each call. */
  private readonly ofCall = new Map<number, { first: GraphRun; last: GraphRun }>()
  private readonly cursors: (Cursor | undefined)[] = []
  /** Released runs, whose memory is reused. */
  private readonly spare: GraphRun[] = []
  /** Serial of the last run that computed a tensor, by tensor. */
  private readonly runOf: number[] = []
  /** Start of the last released step, by call. */
  private readonly released = new Map<number, number>()
  private held = 0
  private serials = 0

  /** `onRun` gets a run, and the next run of the same call, if there is one. */
  constructor(private readonly onRun: (run: GraphRun, next: GraphRun | undefined) => void) {}

  /** Returns the operator's step, valid until the worker's next one; undefined if it belongs to none. */
  add(event: OperatorEvent): StepOfRun | undefined {
    const { worker, tensor, call, startNs, endNs } = event
    const cursor = this.cursors[worker]
    if (cursor && cursor.run.call === call) {
      // Usually the next step of another worker, or a new last step.
      const { run } = cursor
      const next = cursor.step + 1
      if (next < run.count && run.tensor[next] === tensor && run.isWithin(next, startNs)) {
        cursor.step = next
        run.extend(next, startNs, endNs, worker)
        return cursor
      }
      if (next === run.count && !run.nextOfCall && this.runOf[tensor] !== run.serial) {
        cursor.step = next
        this.append(run, event)
        return cursor
      }
    }
    return this.search(event, cursor)
  }

  /** Releases all runs. */
  finish(): void {
    while (this.first) this.release(this.first)
  }

  /** Releases the runs of calls before `call`, as far as no other run began before them. */
  releaseBefore(call: number): void {
    while (this.first && this.first.call < call) this.release(this.first)
  }

  private append(run: GraphRun, event: OperatorEvent): void {
    run.add(event)
    putAt(this.runOf, event.tensor, run.serial, -1)
    if (++this.held > HELD_STEPS_MAX) this.release(this.first!)
  }

  private search(event: OperatorEvent, cursor: Cursor | undefined): Cursor | undefined {
    const { worker, tensor, call, startNs, endNs } = event
    const runs = this.ofCall.get(call)
    for (let run = cursor?.run.call === call ? cursor.run : runs?.first; run; run = run.nextOfCall) {
      const step = stepOf(run, tensor, startNs, cursor?.run === run ? cursor.step : -1)
      // The last step ends with the beginning of the next run.
      if (step < 0 || (step === run.count - 1 && run.nextOfCall && run.nextOfCall.startNs[0]! <= startNs)) continue
      run.extend(step, startNs, endNs, worker)
      return this.moved(worker, run, step)
    }
    let run = runs?.last
    // Another worker lost this operator, or its run was released already: leave it out.
    if (startNs < (run ? run.startNs[run.count - 1]! : (this.released.get(call) ?? -Infinity))) return undefined
    if (!run || this.runOf[tensor] === run.serial || run.count >= HELD_STEPS_MAX / 2) run = this.begin(call)
    const moved = this.moved(worker, run, run.count)
    this.append(run, event)
    return moved
  }

  private moved(worker: number, run: GraphRun, step: number): Cursor {
    const cursor = { run, step }
    this.cursors[worker] = cursor
    return cursor
  }

  private begin(call: number): GraphRun {
    const run = this.spare.pop() ?? new GraphRun()
    run.begin(this.serials++, call, this.last?.count ?? 0)
    if (this.last) this.last.next = run
    this.first ??= run
    this.last = run
    const ofCall = this.ofCall.get(call)
    if (ofCall) {
      ofCall.last.nextOfCall = run
      ofCall.last = run
    } else this.ofCall.set(call, { first: run, last: run })
    return run
  }

  /** Releases the first run. */
  private release(run: GraphRun): void {
    const { call, next, nextOfCall } = run
    this.held -= run.count
    this.first = next
    if (!next) this.last = undefined
    if (nextOfCall) this.ofCall.get(call)!.first = nextOfCall
    else this.ofCall.delete(call)
    this.released.delete(call)
    this.released.set(call, run.startNs[run.count - 1]!)
    if (this.released.size > RELEASED_CALLS_MAX) this.released.delete(this.released.keys().next().value!)
    this.onRun(run, nextOfCall)
    const { cursors } = this
    for (let worker = 0; worker < cursors.length; worker++)
      if (cursors[worker]?.run === run) cursors[worker] = undefined
    run.serial = -1
    this.spare.push(run)
  }
}

/** The step of an operator, after the one that its worker has passed; -1 if there is none. */
function stepOf(run: GraphRun, tensor: number, startNs: number, passed: number): number {
  const last = run.count - 1
  if (startNs >= run.startNs[last]!) return last > passed && run.tensor[last] === tensor ? last : -1
  for (let step = passed + 1; step <= last; step++) {
    if (run.tensor[step] === tensor) return run.isWithin(step, startNs) ? step : -1
  }
  return -1
}
