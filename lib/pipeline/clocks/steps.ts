import type { TaskEvent, TaskStep } from '../../model/events.ts'
import type { Range } from './estimate.ts'

/** Maximum difference between two inputs' times of one step: a recorder's, and the server's when it writes the line. 100 µs. */
const STEP_NS = 100_000
/** Steps that are kept. */
const STEPS_MAX = 2000
/** Servers number their tasks from 0: fewer steps in common may be those of two runs. */
const COMMON_MIN = 4
/** Steps that a task has once. */
const ONCE: ReadonlySet<TaskStep> = new Set(['launch', 'prompt', 'reuse', 'release', 'cancel', 'error'])

/** Times of the steps of a server's tasks in an input, in ns since the input's origin. */
export class StepSights {
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
