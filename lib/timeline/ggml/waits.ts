import type { GraphRun, StepOfRun } from '../../analyze/graph/runs.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { OperatorEvent } from '../../model/events.ts'

/** Operators that are held back at most: those of many workers come a block of thousands at a time. */
const HELD_MAX = 1 << 17
/** Ids of arrows: a separate range from all others, and one range for each of a few inputs. */
const IDS_START = 2 ** 50
const IDS_PER_INPUT = 2 ** 48
const INPUTS = 16

/** What is known about the barrier after an operator. */
export interface Wait {
  /** The worker that was waited for; undefined for that worker itself. */
  readonly waitedFor: number | undefined
  /**
   * Arrows to the barriers of those that waited for this operator, or the arrow to this operator's barrier. None to a barrier that
   * begins before the operator: trace_processor turns arrows so that they lead to the later slice.
   */
  readonly arrows: readonly number[] | undefined
}

/** A node that all workers compute. */
interface Step {
  readonly at: number
  /** Number of events that are drawn. */
  drawn: number
  readonly events: OperatorEvent[]
  /** The operator that ends last. */
  last: OperatorEvent
  /** The arrow to the barrier after the first one of `events`; 0: not numbered yet. */
  firstArrow: number
}

interface RunSteps {
  readonly steps: (Step | undefined)[]
  workers: number
  isComplete: boolean
}

interface Held {
  readonly event: OperatorEvent | undefined
  /** Done in its turn. */
  readonly action: (() => void) | undefined
  readonly run: RunSteps | undefined
  readonly step: Step | undefined
}

/**
 * Finds out for whom workers wait at barriers: for the one that computes the node the longest. Operators are held back until
 * those of all workers were read. Where some are missing, nothing is known.
 */
export class Waits {
  private held: Held[] = []
  private first = 0
  /** By serial. */
  private readonly runs = new DefaultMap<number, RunSteps>(() => ({ steps: [], workers: 0, isComplete: false }))
  private nextArrow: number

  /** `draw` gets the operators in the order in which they came. */
  constructor(
    input: number,
    private readonly draw: (event: OperatorEvent, wait: Wait | undefined) => void,
  ) {
    this.nextArrow = IDS_START + (input % INPUTS) * IDS_PER_INPUT
  }

  /** `at`: its step of a graph run, if it has one. */
  hold(event: OperatorEvent, at: StepOfRun | undefined): void {
    const run = at && this.runs.of(at.run.serial)
    this.held.push({ event, action: undefined, run, step: run && at && add(run, at.step, event) })
    if (this.held.length - this.first > HELD_MAX) this.drawFirst()
  }

  /** Does something after the operators that came before are drawn. */
  afterwards(action: () => void): void {
    if (this.first === this.held.length) action()
    else this.held.push({ event: undefined, action, run: undefined, step: undefined })
  }

  /** All operators of the run were read. */
  complete({ serial }: GraphRun): void {
    const run = this.runs.get(serial)
    if (!run) return
    run.isComplete = true
    this.runs.delete(serial)
    while (this.first < this.held.length && this.held[this.first]!.run?.isComplete !== false) this.drawFirst()
  }

  finish(): void {
    while (this.first < this.held.length) this.drawFirst()
  }

  private drawFirst(): void {
    const { event, action, run, step } = this.held[this.first++]!
    if (this.first === HELD_MAX || this.first === this.held.length) {
      this.held = this.held.slice(this.first)
      this.first = 0
    }
    action?.()
    if (!event) return
    const isKnown = step && run && run.workers > 1 && step.events.length === run.workers
    this.draw(event, isKnown ? this.waitOf(event, step) : undefined)
    if (run && step && ++step.drawn === step.events.length) run.steps[step.at] = undefined
  }

  private waitOf(event: OperatorEvent, step: Step): Wait | undefined {
    const { events, last } = step
    if (step.firstArrow === 0) {
      step.firstArrow = this.nextArrow
      this.nextArrow += events.length
    }
    const isWaiting = ({ endNs, waitEndNs }: OperatorEvent) => waitEndNs > endNs && endNs < last.endNs
    const hasArrow = ({ endNs }: OperatorEvent) => endNs > last.startNs
    const arrowTo = (waiting: OperatorEvent) => step.firstArrow + events.indexOf(waiting)
    if (event === last) {
      return {
        waitedFor: undefined,
        arrows: events.filter((other) => isWaiting(other) && hasArrow(other)).map(arrowTo),
      }
    }
    return isWaiting(event)
      ? { waitedFor: last.worker, arrows: hasArrow(event) ? [arrowTo(event)] : undefined }
      : undefined
  }
}

function add(run: RunSteps, at: number, event: OperatorEvent): Step {
  let step = run.steps[at]
  if (step) {
    step.events.push(event)
    if (event.endNs > step.last.endNs) step.last = event
  } else {
    step = { at, drawn: 0, events: [event], last: event, firstArrow: 0 }
    run.steps[at] = step
  }
  run.workers = Math.max(run.workers, step.events.length)
  return step
}
