import { HeldOperators } from '../../analyze/graph/operators/held-operators.ts'
import type { GraphRun, StepOfRun } from '../../analyze/graph/runs.ts'
import { growColumns } from '../../bytes/resized.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { OperatorEvent } from '../../model/events.ts'

/** Operators that are held back at most, and for each worker: a block of one worker contains up to 13 000. */
const HELD_MAX = 1 << 17
const HELD_OF_WORKER = 1 << 14
/** Ids of arrows: a separate range from all others, and one range for each of a few inputs. */
const IDS_START = 2 ** 50
const IDS_PER_INPUT = 2 ** 48
const INPUTS = 16

/** What is known about the barrier after an operator. */
export interface Wait {
  /** The last worker, and when it arrived. */
  readonly worker: number
  readonly lastNs: number
  /**
   * Of the operator of the last one: arrows to the barriers of those that waited for it; of others: the arrow to this operator's barrier. None
   * to a barrier that begins before the operator: trace_processor turns arrows so that they lead to the later slice.
   */
  readonly arrowsOut: readonly number[] | undefined
  readonly arrowsIn: readonly number[] | undefined
}

/** The operators of a graph run, by step: a node that all workers compute. Steps that have no operator yet are 0. */
class RunSteps {
  /** Operators that were read; -1 once one was drawn too early. */
  counts = new Int32Array(256)
  /** Numbers of the operator that came last, and of the one that ends last. */
  latest = new Float64Array(256)
  slowest = new Float64Array(256)
  /** The arrow of the first operator; 0: not numbered yet. */
  arrows = new Float64Array(256)
  steps = 0
  workers = 0
  isComplete = false
  /** Operators that are held. */
  held = 0

  /** Makes room for a step. */
  reach(step: number): void {
    if (step < this.steps) return
    this.steps = step + 1
    if (step >= this.counts.length) growColumns(this, ['counts', 'latest', 'slowest', 'arrows'], 2 * this.steps)
  }

  /** Reuses the object for another run. */
  clear(): void {
    this.counts.fill(0, 0, this.steps)
    this.arrows.fill(0, 0, this.steps)
    this.steps = 0
    this.workers = 0
    this.isComplete = false
    this.held = 0
  }
}

/**
 * Finds out for whom workers wait at barriers: for the one that computes the node the longest. Operators are held back until
 * those of all workers were read. Where some are missing, nothing is known.
 */
export class Waits {
  private readonly held = new HeldOperators()
  /** What is done before the operator of a number is drawn. */
  private actions: { readonly before: number; readonly action: () => void }[] = []
  /** By serial. */
  private readonly runs = new DefaultMap<number, RunSteps>(() => this.spare.pop() ?? new RunSteps())
  private readonly spare: RunSteps[] = []
  private nextArrow: number
  private workers = 2

  /** `draw` gets the operators in the order in which they came, with arrows to waits that last as long as `arrowsFromNs`. */
  constructor(
    input: number,
    private readonly arrowsFromNs: number,
    private readonly draw: (event: OperatorEvent, wait: Wait | undefined) => void,
  ) {
    this.nextArrow = IDS_START + (input % INPUTS) * IDS_PER_INPUT
  }

  /** `at`: its step of a graph run, if it has one. */
  hold(event: OperatorEvent, at: StepOfRun | undefined): void {
    if (event.worker >= this.workers) this.workers = event.worker + 1
    if (this.held.size >= Math.min(this.workers * HELD_OF_WORKER, HELD_MAX)) this.drawFirst()
    const number = this.held.add(event, at?.run.serial ?? -1, at?.step ?? 0)
    if (at) this.add(this.runs.of(at.run.serial), at.step, number)
  }

  /** Does something after the operators that came before are drawn. */
  afterwards(action: () => void): void {
    if (this.held.isEmpty) action()
    else this.actions.push({ before: this.held.end, action })
  }

  /** All operators of the run were read. */
  complete({ serial }: GraphRun): void {
    const run = this.runs.get(serial)
    if (!run) return
    run.isComplete = true
    const { held } = this
    while (!held.isEmpty && this.runs.get(held.serial[held.at(held.first)]!)?.isComplete !== false) this.drawFirst()
    if (run.held === 0) this.forget(serial, run)
  }

  finish(): void {
    while (!this.held.isEmpty) this.drawFirst()
  }

  private forget(serial: number, run: RunSteps): void {
    if (!this.runs.delete(serial)) return
    run.clear()
    this.spare.push(run)
  }

  private add(run: RunSteps, step: number, number: number): void {
    const { held } = this
    run.reach(step)
    const isFirst = run.counts[step] === 0
    held.previous[held.at(number)] = isFirst ? -1 : run.latest[step]!
    run.latest[step] = number
    const slowest = run.slowest[step]!
    if (isFirst || held.endNs[held.at(number)]! > held.endNs[held.at(slowest)]!) run.slowest[step] = number
    run.held++
    if (run.counts[step]! < 0) return
    const count = ++run.counts[step]!
    if (count > run.workers) run.workers = count
  }

  private drawFirst(): void {
    const { held } = this
    const number = held.first
    const serial = held.serial[held.at(number)]!
    const run = serial < 0 ? undefined : this.runs.get(serial)
    const wait = run && this.waitOf(run, held.step[held.at(number)]!, number)
    this.draw(held.take(), wait)
    if (run && --run.held === 0 && run.isComplete) this.forget(serial, run)
    while (this.actions.length > 0 && this.actions[0]!.before <= held.first) this.actions.shift()!.action()
  }

  private waitOf(run: RunSteps, step: number, number: number): Wait | undefined {
    const { held } = this
    if (run.workers < 2 || run.counts[step] !== run.workers) {
      run.counts[step] = -1 // its columns are used again
      return undefined
    }
    if (run.arrows[step] === 0) {
      run.arrows[step] = this.nextArrow
      this.nextArrow += run.workers
    }
    const slowest = run.slowest[step]!
    const { startNs, endNs, waitEndNs, previous } = held
    const [lastStart, lastEnd] = [startNs[held.at(slowest)]!, endNs[held.at(slowest)]!]
    const worker = held.worker[held.at(slowest)]!
    const at = held.at(number)
    const waitNs = (other: number) => Math.min(lastEnd, waitEndNs[other]!) - endNs[other]!
    const isWaiting = (other: number) => waitNs(other) > 0 && waitNs(other) >= this.arrowsFromNs
    if (this.arrowsFromNs === Infinity || (number !== slowest && !isWaiting(at))) {
      return { worker, lastNs: lastEnd, arrowsOut: undefined, arrowsIn: undefined }
    }
    // An arrow for each operator of the step, by its place in the chain.
    let arrows: number[] | undefined
    let arrow = run.arrows[step]! + run.workers - 1
    for (let one = run.latest[step]!; one >= 0; one = previous[held.at(one)]!, arrow--) {
      if (!held.has(one)) return undefined
      if (number === slowest ? one === number : one !== number) continue
      const other = held.at(one)
      if (!isWaiting(other) || endNs[other]! <= lastStart) continue
      if (arrows) arrows.unshift(arrow)
      else arrows = [arrow]
    }
    const isLast = number === slowest
    return { worker, lastNs: lastEnd, arrowsOut: isLast ? arrows : undefined, arrowsIn: isLast ? undefined : arrows }
  }
}
