import { resized } from '../../../bytes/resized.ts'
import { GraphRun } from '../runs.ts'
import type { Steps } from './steps.ts'

/** The graph runs of a call: a new one begins with a node that the run before contains already. */
export class CallRuns {
  private readonly runs: GraphRun[] = []
  /** Serial of the last run that computed a tensor, by tensor. */
  private serials = new Int32Array(1024)
  private serial = 0

  /** The runs of steps of a call; valid until the next ones. */
  of(steps: Steps, call: number): readonly GraphRun[] {
    let count = 0
    let run: GraphRun | undefined
    for (let step = 0; step < steps.count; step++) {
      const tensor = steps.tensor[step]!
      if (tensor >= this.serials.length)
        this.serials = resized(this.serials, Math.max(2 * this.serials.length, tensor + 1))
      if (run === undefined || this.serials[tensor] === this.serial) run = this.begin(count++, call)
      this.serials[tensor] = this.serial
      run.append(tensor, steps.last[step]!, steps.startNs[step]!, steps.endNs[step]!)
    }
    return this.runs.slice(0, count)
  }

  private begin(at: number, call: number): GraphRun {
    if (at === this.runs.length) this.runs.push(new GraphRun())
    const run = this.runs[at]!
    run.begin(++this.serial, call)
    return run
  }
}
