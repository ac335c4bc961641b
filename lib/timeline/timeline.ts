import type { JoinedAccesses } from '../analyze/graph/accesses/join.ts'
import { Views } from '../analyze/graph/views.ts'
import { othersIn } from '../model/batch.ts'
import { CounterSet } from '../model/counters.ts'
import type { InputEvent, IssueEvent, OperatorEvent, TensorEvent, TraceEvent } from '../model/events.ts'
import type { LeftOutEvent } from '../model/left-out.ts'
import type { EventPass } from '../model/pass.ts'
import type { States, WaitTaker } from '../threads/states.ts'
import { InputAreas, type LoadedAreas } from './areas.ts'
import type { TrackContext } from './context.ts'
import { drawFindings, type Found } from './findings.ts'
import { GgmlArea } from './ggml/area.ts'
import { Issues } from './issues.ts'
import type { Scheduler } from './kernel/scheduler.ts'
import { StateRows } from './kernel/state-rows.ts'
import type { ArgMaker } from './labels.ts'
import { MemoryArea } from './memory/area.ts'
import type { Run } from './of.ts'
import type { DrawOptions } from './options.ts'
import { runTitle } from './place.ts'
import { type Span, SubjectSpans } from './subject-spans.ts'
import { Tracks, type TrackTree } from './tracks.ts'

interface Of {
  readonly isOfScheduler: boolean
  readonly isSummed?: boolean | undefined
  readonly isOpen?: boolean | undefined
  readonly waited?: WaitTaker | undefined
}

/** Draws the events of one input, in the order of its log: passes each event to its area. */
export class Timeline implements EventPass<void> {
  private readonly tensors: TensorEvent[] = []
  private readonly counters = new CounterSet()
  private readonly spans = new SubjectSpans()
  private run!: Run
  private tracks!: Tracks
  private issues!: Issues
  private states!: States
  private stateRows: StateRows | undefined
  private memory!: MemoryArea
  private ggml!: GgmlArea
  private areas!: InputAreas
  /** Events that wait until an area is loaded. */
  private waiting: TraceEvent[] | undefined

  /**
   * `tree`, `make` and `scheduler` are shared by all inputs of a trace; `input` is this one's number, from 0. `isOfScheduler`: it
   * begins with events of the kernel's scheduler. `isSummed`: some of its calls are not in full. `isOpen`: see {@link Tracks}. `loaded`: areas that are. `host`: the
   * input in whose group this one is drawn: each further group of the trace would close the first one in the viewer.
   */
  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
    private readonly options: DrawOptions & Of,
    private readonly input: number,
    private readonly scheduler: Scheduler,
    private readonly loaded: LoadedAreas,
    private readonly host?: Timeline,
  ) {}

  /** Number of issues that are drawn. */
  get issueDraws(): number {
    return this.isHosted ? 0 : this.issues.draws
  }

  /** What the input contains and is not drawn, as there is no room for it. */
  get leftOut(): LeftOutEvent[] {
    if (!this.tracks) return []
    return [...this.tracks.leftOut.events(), ...this.ggml.shortWaits]
  }

  /** Events after one whose area is not loaded wait for {@link load}. */
  take(batch: readonly TraceEvent[]): void {
    const others = this.options.tokens === undefined ? othersIn(batch) : undefined
    let next = 0
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i]!
      const isOperator = others !== undefined && others[next] !== i
      if (!isOperator) next++ // the next one of `others`
      if (this.waiting) this.waiting.push(event)
      else if (isOperator) this.ggml.operator(event as OperatorEvent)
      else this.place(event)
    }
  }

  /** Is an area to be loaded before the next batch? */
  get isWaiting(): boolean {
    return this.waiting !== undefined
  }

  /** Loads what events wait for, and draws them. */
  async load(): Promise<void> {
    while (this.waiting) {
      const { waiting } = this
      await this.areas.load()
      this.waiting = undefined
      this.take(waiting)
    }
  }

  /** Draws samples of data addresses; `timeOf`: a time of the log in the trace's. Comes before {@link finish}. */
  accesses(joined: JoinedAccesses, timeOf: (ns: number) => number): void {
    this.memory.accesses(joined, timeOf)
  }

  finish(): void {
    if (!this.ggml) return
    this.ggml.finish(this.run.attributes)
    this.areas.requests?.finish()
    this.memory.finish()
    this.states.finish()
    this.areas.finish()
    if (!this.isHosted) this.nameRun()
  }

  /** Draws states that end with their threads. Comes after the last state of all inputs. */
  finishStates(): void {
    this.stateRows?.finish()
  }

  /** Draws what made the run slow; `verdict`: how fast it was, and why; `whole`: from the first event to the last. Comes after {@link finish}. */
  findings(verdict: string | undefined, found: readonly Found[], whole: Span): void {
    if (this.tracks) drawFindings({ tracks: this.tracks, make: this.make }, verdict, found, this.spans, whole)
  }

  private place(event: TraceEvent): void {
    if (this.options.tokens && isOutside(event, this.options.tokens)) {
      if (event.kind === 'token' && this.areaOf(event)) this.ggml.skip(event)
      return
    }
    switch (event.kind) {
      case 'operator':
        return this.ggml.operator(event)
      case 'token':
        if (!this.areaOf(event)) return
        this.stateRows!.call(event)
        return this.ggml.take(event) // they are drawn with their requests
      case 'graph':
      case 'graph-nodes':
      case 'experts':
      case 'copy':
      case 'part':
      case 'sums':
        return this.ggml.take(event)
      case 'function':
        if (!this.areaOf(event)) return
        this.ggml.within(event)
        break
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
      case 'affinity':
        return this.ggml.workerCpus.add(event)
      case 'access': // drawn with the log of its process
      case 'mapping':
      case 'kernel-profile': // drawn with the kernels of a log
      case 'refusal': // in the analysis
      case 'pages':
      case 'weight-memory':
      case 'left-out': // counted in the summary
        return
    }
    this.areaOf(event)?.take(event)
  }

  /** The area of an event; undefined where that is not loaded, and the event waits. */
  private areaOf(event: TraceEvent): ReturnType<InputAreas['of']> {
    const area = this.areas.of(event)
    if (!area) this.waiting = [event]
    return area
  }

  /** Is it drawn in the group of another input? */
  private get isHosted(): boolean {
    return this.host?.tracks !== undefined
  }

  /** The model, the workers and the backends are known at the end. */
  private nameRun(): void {
    const { named } = this
    if (runTitle(named) !== runTitle(this.run)) this.tracks.renameRun(named)
  }

  private get named(): Run {
    return { ...this.run, ...this.ggml.machine, weights: this.memory.buffers.weights }
  }

  private begin(event: InputEvent): void {
    const { tree, tensors, counters, make, input, scheduler } = this
    const { writer } = tree
    const { names, detail } = make
    const { isSummed = false, opName = 'role' } = this.options
    if (event.clock !== 'none') writer.origin(event.clock, event.originNs)
    this.run = { ...event, input, isOfScheduler: this.options.isOfScheduler }
    const tracks = this.host?.tracks?.beside() ?? new Tracks(tree, this.run, this.options.isOpen, isSummed)
    this.tracks = tracks
    const views = new Views(tensors, (tensor) => names.text(tensor.op))
    this.issues = this.host?.issues ?? new Issues({ tracks, make, writer })
    const report = (issue: IssueEvent) => this.issues.place(issue)
    const context: TrackContext = {
      writer,
      tree,
      tracks,
      make,
      names,
      detail,
      opName,
      isSummed,
      input,
      tensors,
      views,
      counters,
      spans: this.spans,
      report,
    }
    this.areas = new InputAreas(this.loaded, context)
    const stateRows = new StateRows(context)
    this.stateRows = stateRows
    this.states = scheduler.threads.begin((span) => stateRows.place(span), this.options.waited)
    scheduler.describe(event.attributes)
    this.memory = new MemoryArea(context, this.options.memory)
    this.ggml = new GgmlArea(context, this.options, this.states, this.memory, this.areas)
  }
}

/** Does an event belong to a call that is not drawn? Events of no call are drawn. */
function isOutside(event: TraceEvent, [first, last]: readonly [number, number]): boolean {
  return 'call' in event && event.call !== undefined && (event.call < first || event.call > last)
}
