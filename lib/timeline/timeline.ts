import type { JoinedAccesses } from '../analyze/graph/accesses/join.ts'
import { Views } from '../analyze/graph/views.ts'
import { CounterSet } from '../model/counters.ts'
import type { InputEvent, IssueEvent, TensorEvent, TraceEvent } from '../model/events.ts'
import type { LeftOutEvent } from '../model/left-out.ts'
import type { EventPass } from '../model/pass.ts'
import type { States, WaitTaker } from '../threads/states.ts'
import { BenchmarkArea } from './benchmarks/area.ts'
import { BlasArea } from './blas/area.ts'
import type { TrackContext } from './context.ts'
import { GgmlArea } from './ggml/area.ts'
import { GpuArea } from './gpu/area.ts'
import { Issues } from './issues.ts'
import type { Scheduler } from './kernel/scheduler.ts'
import { StateRows } from './kernel/state-rows.ts'
import type { ArgMaker } from './labels.ts'
import { MemoryArea } from './memory/area.ts'
import { NvtxArea } from './nvtx/area.ts'
import type { Run } from './of.ts'
import type { DrawOptions } from './options.ts'
import { OwnArea } from './own/area.ts'
import { runTitle } from './place.ts'
import { PowerArea } from './power/area.ts'
import { RequestArea } from './requests/area.ts'
import { Tracks, type TrackTree } from './tracks.ts'

interface Of {
  readonly isOfScheduler: boolean
  readonly isSummed?: boolean | undefined
  readonly waited?: WaitTaker | undefined
}

/** Draws the events of one input, in the order of its log: passes each event to its area. */
export class Timeline implements EventPass<void> {
  private readonly tensors: TensorEvent[] = []
  private readonly counters = new CounterSet()
  private run!: Run
  private tracks!: Tracks
  private issues!: Issues
  private states!: States
  private memory!: MemoryArea
  private ggml!: GgmlArea
  private gpu!: GpuArea
  private blas!: BlasArea
  private nvtx!: NvtxArea
  private own!: OwnArea
  private requests!: RequestArea
  private benchmarks!: BenchmarkArea
  private power!: PowerArea

  /**
   * `tree`, `make` and `scheduler` are shared by all inputs of a trace; `input` is this one's number, from 0. `isOfScheduler`: it
   * begins with events of the kernel's scheduler. `isSummed`: some of its calls are not in full.
   */
  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
    private readonly options: DrawOptions & Of,
    private readonly input: number,
    private readonly scheduler: Scheduler,
  ) {}

  /** Number of issues that are drawn. */
  get issueDraws(): number {
    return this.issues.draws
  }

  /** What the input contains and is not drawn, as there is no room for it. */
  get leftOut(): LeftOutEvent[] {
    if (!this.tracks) return []
    return [...this.tracks.leftOut.events(), ...this.ggml.shortWaits]
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.place(event)
  }

  /** Draws samples of data addresses; `timeOf`: a time of the log in the trace's. Comes before {@link finish}. */
  accesses(joined: JoinedAccesses, timeOf: (ns: number) => number): void {
    this.memory.accesses(joined, timeOf)
  }

  finish(): void {
    if (!this.ggml) return
    this.ggml.finish()
    this.requests.finish()
    this.benchmarks.finish()
    this.memory.finish()
    this.states.finish()
    this.gpu.finish()
    this.nvtx.finish()
    this.own.finish()
    this.nameRun()
  }

  private place(event: TraceEvent): void {
    if (this.options.tokens && isOutside(event, this.options.tokens)) {
      if (event.kind === 'token') this.ggml.skip(event)
      return
    }
    switch (event.kind) {
      case 'operator':
        return this.ggml.operator(event)
      case 'token':
      case 'graph':
      case 'experts':
      case 'copy':
      case 'part':
      case 'sums':
        return this.ggml.take(event)
      case 'buffer':
      case 'allocation':
        return this.memory.take(event)
      case 'switch':
        return this.scheduler.switched(event)
      case 'waking':
        return this.scheduler.waking(event)
      case 'thread':
        return this.scheduler.threads.thread(event)
      case 'state':
        return this.states.place(event)
      case 'gpu':
      case 'gpu-sync':
      case 'api':
        return this.gpu.take(event)
      case 'blas':
        return this.blas.take(event)
      case 'nvtx':
      case 'nvtx-name':
      case 'nvtx-gpu':
      case 'range':
        return this.nvtx.take(event)
      case 'tensor':
        this.tensors[event.id] = event
        return
      case 'counted':
        return this.counters.define(event, this.make.names.text(event.name))
      case 'issue':
        return this.issues.place(event)
      case 'clocks': // readings of further inputs would have to agree with these to the nanosecond
        if (this.input === 0) this.tree.writer.clocks(event.readings)
        return
      case 'facts':
        return this.scheduler.describe(event.attributes) // the root is described already
      case 'input':
        return this.begin(event)
      case 'access': // drawn with the log of its process
      case 'mapping':
      case 'kernel-profile': // drawn with the kernels of a log
      case 'left-out': // counted in the summary
        return
      case 'function':
      case 'sequence':
      case 'task':
      case 'request':
        return this.requests.take(event)
      case 'benchmark':
        return this.benchmarks.take(event)
      case 'meter':
      case 'reading':
        return this.power.take(event)
      default:
        return this.own.take(event)
    }
  }

  /** The model, the workers and the backends are known at the end. */
  private nameRun(): void {
    const named = { ...this.run, ...this.ggml.machine, weights: this.memory.buffers.weights }
    if (runTitle(named) !== runTitle(this.run)) this.tracks.renameRun(named)
  }

  private begin(event: InputEvent): void {
    const { tree, tensors, counters, make, input, scheduler } = this
    const { writer } = tree
    const { names, detail } = make
    if (event.clock !== 'none') writer.origin(event.clock, event.originNs)
    this.run = { ...event, input, isOfScheduler: this.options.isOfScheduler }
    const tracks = new Tracks(tree, this.run)
    this.tracks = tracks
    const views = new Views(tensors, (tensor) => names.text(tensor.op))
    this.issues = new Issues({ tracks, make, writer })
    const report = (issue: IssueEvent) => this.issues.place(issue)
    const context: TrackContext = {
      writer,
      tree,
      tracks,
      make,
      names,
      detail,
      isSummed: this.options.isSummed ?? false,
      input,
      tensors,
      views,
      counters,
      report,
    }
    const stateRows = new StateRows(context)
    this.states = scheduler.threads.begin((span) => stateRows.place(span), this.options.waited)
    scheduler.describe(event.attributes)
    this.memory = new MemoryArea(context, this.options.memory)
    this.requests = new RequestArea(context)
    this.benchmarks = new BenchmarkArea(context)
    this.ggml = new GgmlArea(context, this.options, this.states, this.memory, this.requests)
    this.gpu = new GpuArea(context, this.options.opName)
    this.blas = new BlasArea(context)
    this.nvtx = new NvtxArea(context)
    this.own = new OwnArea(context)
    this.power = new PowerArea(context)
  }
}

/** Does an event belong to a call that is not drawn? Events of no call are drawn. */
function isOutside(event: TraceEvent, [first, last]: readonly [number, number]): boolean {
  return 'call' in event && event.call !== undefined && (event.call < first || event.call > last)
}
