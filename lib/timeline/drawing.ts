import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import type { OpNaming } from './ggml/operators.ts'
import { Scheduler } from './kernel/scheduler.ts'
import { ArgMaker, type Detail } from './labels.ts'
import type { MemoryRows } from './memory/area.ts'
import { Timeline } from './timeline.ts'
import { TrackTree } from './tracks.ts'

/** Selects events and details of the drawing. */
export interface DrawOptions {
  /** Arguments of slices: `names` none, `shapes` (default) op, shapes and sources, `full` everything recorded. */
  readonly detail?: Detail | undefined
  /** Names of operator slices: `<role> <OP>` (default), the op only, or the tensor's full name. */
  readonly opName?: OpNaming | undefined
  /** Calls to convert, from … to inclusive; the prefill is 0. By default all, warm-up included. */
  readonly tokens?: readonly [number, number] | undefined
  /**
   * Tracks of compute buffers: `counters` (default), such as the live bytes, or also `lifetimes`: a slice per tensor, from its
   * first write to its last read.
   */
  readonly memory?: MemoryRows | undefined
  /** Draw the data flow of one call (the prefill is 0) as arrows from each operator to the operators that read its result. */
  readonly flows?: { readonly token: number } | undefined
  /** Draw all events of the scheduler; by default those of the traced process and of the CPUs that it uses. */
  readonly allThreads?: boolean | undefined
}

/** State shared by the timelines of all inputs of a trace: tracks, arguments, the kernel's scheduler. */
export class Drawing {
  readonly scheduler: Scheduler
  private readonly tree: TrackTree
  private readonly make: ArgMaker
  private inputs = 0

  /** `hasSwitches`: an input records switches of CPUs; they replace the states of threads that logs record. */
  constructor(
    writer: Writer,
    names: Names,
    private readonly options: DrawOptions,
    hasSwitches: boolean,
  ) {
    this.tree = new TrackTree(writer)
    this.make = new ArgMaker(names)
    this.scheduler = new Scheduler(this.tree, this.make, { allThreads: options.allThreads, isExpected: hasSwitches })
  }

  /** Begins the timeline of the next input: first those that name the traced process, then recordings of the scheduler. */
  begin(isOfScheduler: boolean): Timeline {
    const { detail = 'shapes', opName: opNaming = 'role', tokens, memory = 'counters', flows } = this.options
    const options = { detail, opNaming, tokens, memory, flowsOf: flows?.token, isOfScheduler }
    return new Timeline(this.tree, this.make, options, this.inputs++, this.scheduler)
  }

  /** Comes last. Returns the number of state changes that came too late to be drawn. */
  finish(): number {
    return this.scheduler.finish()
  }
}
