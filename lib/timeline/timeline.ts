import { Views } from '../analyze/graph/views.ts'
import { CounterSet } from '../model/counters.ts'
import type { InputEvent, TensorEvent, TraceEvent } from '../model/events.ts'
import type { GpuActivityEvent } from '../model/gpu-events.ts'
import { issueOf } from '../model/issues.ts'
import type { NvtxEvent, NvtxNameEvent } from '../model/nvtx-events.ts'
import type { OwnEvent } from '../model/own-events.ts'
import type { EventPass } from '../model/pass.ts'
import { Calls } from './ggml/calls.ts'
import { Copies } from './ggml/copies.ts'
import { CounterLines } from './ggml/counter-lines.ts'
import { Experts } from './ggml/experts.ts'
import { Flows } from './ggml/flows.ts'
import { GraphRows } from './ggml/graph-rows.ts'
import { Operators, type OpNaming, workersGroup } from './ggml/operators.ts'
import { ratesGroup } from './ggml/rates.ts'
import { Gpu } from './gpu/gpu.ts'
import type { Scheduler } from './kernel/scheduler.ts'
import { States } from './kernel/states.ts'
import type { ArgMaker, Detail } from './labels.ts'
import { Buffers } from './memory/buffers.ts'
import { Faults } from './memory/faults.ts'
import { Memory, type MemoryRows } from './memory/memory.ts'
import { Nvtx } from './nvtx/nvtx.ts'
import { NvtxOnGpu } from './nvtx/nvtx-gpu.ts'
import { Counters, Issues, Ranges } from './others.ts'
import { OwnTracks } from './own/own.ts'
import { rowName, type TrackTree } from './tracks.ts'

/** Characters of the command that the root group is called by. */
const COMMAND_CHARS_MAX = 60

/** How the timeline is drawn. */
export interface TimelineOptions {
  readonly detail: Detail
  readonly opNaming: OpNaming
  /** Calls to draw, from … to inclusive; by default all. */
  readonly tokens?: readonly [number, number] | undefined
  readonly memory: MemoryRows
  /** The call whose data flow is drawn as arrows; by default none. */
  readonly flowsOf?: number | undefined
}

/** Everything below one input's root group. */
interface Rows {
  readonly calls: Calls
  readonly states: States
  readonly buffers: Buffers
  readonly memory: Memory
  readonly faults: Faults
  readonly lines: CounterLines
  readonly graphs: GraphRows
  readonly flows: Flows
  readonly experts: Experts
  readonly copies: Copies
  readonly counters: Counters
  readonly ranges: Ranges
  readonly nvtx: Nvtx
  readonly issues: Issues
  readonly gpu: Gpu
  readonly nvtxOnGpu: NvtxOnGpu
  readonly own: OwnTracks
}

/** Puts the events of one input on tracks, in the order in which they come. */
export class Timeline implements EventPass<void> {
  private readonly tensors: TensorEvent[] = []
  private readonly counterSet = new CounterSet()
  private rows!: Rows

  /** `tree`, `make` and `scheduler` are shared by all inputs of a trace; `input` is this one's number, from 0. */
  constructor(
    private readonly tree: TrackTree,
    private readonly make: ArgMaker,
    private readonly options: TimelineOptions,
    private readonly input: number,
    private readonly scheduler: Scheduler,
  ) {}

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.place(event)
  }

  /** Writes what was held back until the end. */
  finish(): void {
    if (!this.rows) return
    this.rows.flows.finish()
    this.rows.calls.finish()
    this.rows.graphs.finish()
    this.rows.experts.finish()
    this.rows.memory.finish()
    this.rows.states.finish()
    this.rows.ranges.finish()
    this.rows.gpu.finish()
    this.rows.nvtx.finish()
    this.rows.nvtxOnGpu.finish()
    this.rows.own.finish()
  }

  private place(event: TraceEvent): void {
    if (this.options.tokens && isOutside(event, this.options.tokens)) {
      if (event.kind === 'token') this.rows.calls.token(event, false)
      return
    }
    switch (event.kind) {
      case 'operator':
        this.rows.flows.place(event)
        this.rows.states.serve(event.worker, event.tid)
        this.rows.memory.place(event)
        this.rows.faults.place(event)
        this.rows.lines.place(event)
        this.rows.experts.place(event)
        this.rows.graphs.operator(event)
        return
      case 'tensor':
        this.tensors[event.id] = event
        return
      case 'token':
        this.scheduler.trace(event.tid)
        this.rows.flows.token(event)
        this.rows.graphs.token(event)
        return this.rows.calls.token(event, true)
      case 'graph':
        return this.rows.calls.graph(event)
      case 'counter':
        return this.rows.counters.place(event)
      case 'buffer':
        this.rows.buffers.define(event)
        return this.rows.faults.define(event)
      case 'counted':
        return this.counterSet.define(event, this.make.names.text(event.name))
      case 'experts':
        this.rows.graphs.choose(event)
        return this.rows.experts.choose(event)
      case 'copy':
        this.rows.graphs.copy(event)
        return this.rows.copies.place(event)
      case 'state':
        return this.rows.states.place(event)
      case 'allocation':
        return this.rows.memory.allocate(event)
      case 'range':
        if (!this.rows.ranges.place(event)) this.strayEnd(event.tid, event.atNs)
        return
      case 'switch':
        return this.scheduler.switched(event)
      case 'waking':
        return this.scheduler.waking(event)
      case 'thread':
        return this.scheduler.thread(event)
      case 'clocks': // others would have to agree with the first input's to the nanosecond
        if (this.input === 0) this.tree.writer.clocks(event.readings)
        return
      case 'issue':
        return this.rows.issues.place(event)
      case 'left-out': // counted in the summary
        return
      case 'facts':
        return this.scheduler.describe(event.attributes) // the root is described already
      case 'input':
        this.rows = this.begin(event)
        return
      default:
        return this.placeFurther(event)
    }
  }

  private placeFurther(event: GpuActivityEvent | NvtxEvent | NvtxNameEvent | OwnEvent): void {
    switch (event.kind) {
      case 'nvtx':
        return this.rows.nvtx.place(event)
      case 'nvtx-name':
        return this.rows.nvtx.name(event)
      case 'gpu':
        return this.rows.gpu.work(event)
      case 'gpu-sync':
        return this.rows.gpu.sync(event)
      case 'api':
        return this.rows.gpu.call(event)
      case 'nvtx-gpu':
        return this.rows.nvtxOnGpu.place(event)
      default:
        return this.rows.own.place(event)
    }
  }

  private begin({ format, clock, originNs, attributes, title }: InputEvent): Rows {
    const { tree, tensors, make, counterSet } = this
    const { detail, opNaming, memory, flowsOf } = this.options
    if (clock !== 'none') tree.writer.origin(clock, originNs)
    const told = clock === 'unknown' ? 'not told' : `CLOCK_${clock}`
    const facts = Object.entries({ input: format, clock: told, ...attributes })
    const description = facts.map(([key, value]) => `${key}: ${value}`).join('\n')
    const name = title ?? rowName(`LLM ${program(attributes['command']) || 'run'}`, this.input)
    const root = tree.add(0, { name, description, rank: this.input, kind: 'group' })
    const workers = workersGroup(tree, root)
    const states = new States(tree, root, workers, make, detail, (tid) => this.scheduler.trace(tid))
    this.scheduler.describe(attributes)
    this.scheduler.join(states)
    const faults = new Faults(tree, root, tensors, make, detail, counterSet)
    const buffers = new Buffers(tree, root)
    const operators = new Operators(tree, workers, tensors, make, detail, opNaming, counterSet)
    const views = new Views(tensors, (tensor) => make.names.text(tensor.op))
    const rates = ratesGroup(tree, root)
    const graphs = new GraphRows({ tree, rates, buffers, tensors, views, make, detail, memory })
    return {
      calls: new Calls(tree, root, make, detail, graphs.call),
      states,
      buffers,
      memory: new Memory(tree, buffers, tensors, make.names),
      faults,
      lines: new CounterLines(tree, faults.group, rates, counterSet),
      graphs,
      flows: new Flows(operators, tensors, views, flowsOf, this.input),
      experts: new Experts(tree, root, tensors, make, detail),
      copies: new Copies(tree, root, tensors, make, detail),
      counters: new Counters(tree, root, make),
      ranges: new Ranges(tree, root),
      nvtx: new Nvtx(tree, root, make, detail, (issue) => this.rows.issues.place(issue)),
      issues: new Issues(tree, root, make),
      gpu: new Gpu(tree, root, make, detail, this.input),
      nvtxOnGpu: new NvtxOnGpu(tree, root, make, detail),
      own: new OwnTracks(tree, root, make, detail, this.input),
    }
  }

  private strayEnd(tid: number, atNs: number): void {
    const detail = `a range of thread ${tid} ends that never began`
    this.rows.issues.place(issueOf('end-without-start', detail, { byte: 0 }, atNs))
  }
}

/** A command line as a title: without the program's folder, and not too long. */
function program(command: string | number | undefined): string {
  const text = `${command ?? ''}`.replace(/^\S*\//, '').trim()
  return text.length > COMMAND_CHARS_MAX ? `${text.slice(0, COMMAND_CHARS_MAX)}…` : text
}

/** Does an event belong to a call that is not drawn? What belongs to no call at all is. */
function isOutside(event: TraceEvent, [first, last]: readonly [number, number]): boolean {
  return 'call' in event && event.call !== undefined && (event.call < first || event.call > last)
}
