import type { StateEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { Scheduler } from './scheduler.ts'
import { States } from './states.ts'

/** Draws events of the kernel: states of this input's threads, and its events of the scheduler. */
export class KernelArea {
  private readonly states: States

  constructor(
    context: TrackContext,
    private readonly scheduler: Scheduler,
    attributes: Readonly<Record<string, string | number>>,
  ) {
    this.states = new States(context, (tid) => scheduler.trace(tid))
    scheduler.describe(attributes)
    scheduler.join(this.states)
  }

  state(event: StateEvent): void {
    this.states.place(event)
  }

  /** An operator of `worker` ran on the thread. */
  serve(worker: number, tid: number): void {
    this.states.serve(worker, tid)
  }

  /** The thread made a call: it belongs to the traced process. */
  trace(tid: number): void {
    this.scheduler.trace(tid)
  }

  finish(): void {
    this.states.finish()
  }
}
