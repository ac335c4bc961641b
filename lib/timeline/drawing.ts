import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import type { WaitTaker } from '../threads/states.ts'
import type { LoadedAreas } from './areas.ts'
import { Scheduler } from './kernel/scheduler.ts'
import { ArgMaker } from './labels.ts'
import type { DrawOptions } from './options.ts'
import { Timeline } from './timeline.ts'
import { TrackTree } from './tracks.ts'

/** State shared by the timelines of all inputs of a trace: tracks, arguments, the kernel's scheduler. */
export class Drawing {
  readonly scheduler: Scheduler
  private readonly tree: TrackTree
  private readonly make: ArgMaker
  private readonly timelines: Timeline[] = []

  /**
   * `hasSwitches`: an input records switches of CPUs; they complete the states of threads that logs record. `isShared`: the viewer has groups of its
   * own next to that of the log, and closes all of them: the rows of the log are at the top, between groups. `areas`: those that are loaded.
   */
  constructor(
    writer: Writer,
    names: Names,
    private readonly options: DrawOptions,
    hasSwitches: boolean,
    private readonly isShared = false,
    private readonly areas: LoadedAreas = new Map(),
  ) {
    this.tree = new TrackTree(writer)
    this.make = new ArgMaker(names, options.detail ?? 'shapes')
    this.scheduler = new Scheduler(this.tree, this.make, options.allThreads ?? false, hasSwitches)
  }

  /**
   * Begins the timeline of the next input: first those that name the traced process, then recordings of the scheduler. `isSummed`: some
   * of its calls are not in full. `waited` receives waits of its workers, until {@link finish}.
   */
  begin(log: {
    readonly isOfScheduler: boolean
    readonly isSummed?: boolean | undefined
    readonly waited?: WaitTaker | undefined
  }): Timeline {
    const options = { ...this.options, ...log }
    const [first] = this.timelines
    const { length } = this.timelines
    const host = log.isOfScheduler ? first : undefined
    const isOpen = this.isShared && !first
    const timeline = new Timeline(
      this.tree,
      this.make,
      { ...options, isOpen },
      length,
      this.scheduler,
      this.areas,
      host,
    )
    this.timelines.push(timeline)
    return timeline
  }

  /** Is nothing drawn so far but issues? */
  get isEmpty(): boolean {
    return this.tree.writer.draws === this.timelines.reduce((sum, { issueDraws }) => sum + issueDraws, 0)
  }

  /** Comes last. Returns the number of state changes that came too late to be drawn. */
  finish(): number {
    const late = this.scheduler.finish()
    for (const timeline of this.timelines) timeline.finishStates()
    return late
  }
}
