import type { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import type { OpNaming } from './ggml/operators.ts'
import { Scheduler } from './kernel/scheduler.ts'
import { ArgMaker, type Detail } from './labels.ts'
import type { MemoryRows } from './memory/area.ts'
import { Timeline } from './timeline.ts'
import { TrackTree } from './tracks.ts'

/** What is drawn, and how. */
export interface DrawOptions {
  /** Arguments on slices: `names` none, `shapes` (default) what was computed on what, `full` all that was recorded. */
  readonly detail?: Detail | undefined
  /** Operator slices are called `<role> <OP>` (default), by op alone, or by the tensor's full name. */
  readonly opName?: OpNaming | undefined
  /** Calls to convert, from … to inclusive; the prefill is 0. By default all, warm-up included. */
  readonly tokens?: readonly [number, number] | undefined
  /**
   * Of compute buffers `counters` only (default), such as the live bytes; or `lifetimes`: each tensor's life, from first
   * write to last read, as a slice of its own.
   */
  readonly memory?: MemoryRows | undefined
  /** Draw the data flow of one call (the prefill is 0) as arrows, from each operator to those that read its result. */
  readonly flows?: { readonly token: number } | undefined
  /** Draw everything that the scheduler did; by default what concerns the traced process, and who ran on its CPUs. */
  readonly allThreads?: boolean | undefined
}

/** What the timelines of all inputs of a trace share: tracks, arguments, the kernel's scheduler. */
export class Drawing {
  readonly scheduler: Scheduler
  private readonly tree: TrackTree
  private readonly make: ArgMaker
  private inputs = 0

  /** `hasSwitches`: an input records who has which CPU. States of threads that logs record themselves are not drawn then. */
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

  /** The timeline of the next input: first those that name the traced process, then recordings of the scheduler. */
  begin(): Timeline {
    const { detail = 'shapes', opName: opNaming = 'role', tokens, memory = 'counters', flows } = this.options
    const options = { detail, opNaming, tokens, memory, flowsOf: flows?.token }
    return new Timeline(this.tree, this.make, options, this.inputs++, this.scheduler)
  }

  /** Comes last. Returns how many changes of threads' states came too late to be drawn. */
  finish(): number {
    return this.scheduler.finish()
  }
}
