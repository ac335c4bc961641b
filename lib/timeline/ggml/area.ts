import { Plans } from '../../analyze/graph/plan.ts'
import { GraphRuns } from '../../analyze/graph/runs.ts'
import { Works } from '../../analyze/graph/work.ts'
import type {
  CopyEvent,
  ExpertsEvent,
  FunctionEvent,
  GraphEvent,
  GraphNodesEvent,
  InputEvent,
  OperatorEvent,
  PartEvent,
  SumsEvent,
  TokenEvent,
} from '../../model/events.ts'
import type { LeftOutEvent } from '../../model/left-out.ts'
import { duration } from '../../model/units.ts'
import type { States } from '../../threads/states.ts'
import type { InputAreas } from '../areas.ts'
import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'
import type { MemoryArea } from '../memory/area.ts'
import { type DrawOptions, isDrawnLate } from '../options.ts'
import type { Lanes } from '../tracks.ts'
import { BARRIER_NS_MIN, namedFromNs } from './barriers.ts'
import { Calls } from './calls.ts'
import { Experts } from './experts.ts'
import { Flows } from './flows.ts'
import { Graphs } from './graphs.ts'
import { Operators } from './operators.ts'
import { Rates } from './rates.ts'
import { type Wait, Waits } from './waits.ts'
import { WorkerCounters } from './worker-counters.ts'
import { WorkerCpus } from './worker-cpus.ts'

/** Operators of a call may come after sums of this many later calls: a block of a log contains up to 13 000 of one worker. */
const LATE_CALLS = 1024

/** Draws events of ggml and llama.cpp: calls, splits, operators. Memory and threads use them too. */
export class GgmlArea {
  /** Where workers may run. */
  readonly workerCpus: WorkerCpus
  private readonly calls: Calls
  private readonly graphs: Graphs
  private readonly operators: Operators
  private readonly flows: Flows
  private readonly counters: WorkerCounters
  private readonly experts: Experts
  private readonly copies: Copies
  private readonly rates: Rates
  private readonly runs: GraphRuns
  private readonly waits: Waits | undefined

  constructor(
    context: TrackContext,
    options: DrawOptions,
    private readonly states: States,
    private readonly memory: MemoryArea,
    areas: InputAreas,
  ) {
    const { tensors, views, names } = context
    const works = new Works(tensors, (tensor) => names.text(tensor.op))
    this.operators = new Operators(context, works, options)
    this.workerCpus = new WorkerCpus(names)
    this.flows = new Flows(context, options.flows?.token, (event, wait, arrows) =>
      this.operators.place(event, wait, arrows),
    )
    if (isDrawnLate(options))
      this.waits = new Waits(context.input, namedFromNs(context.detail), (event, wait) => this.draw(event, wait))
    this.counters = new WorkerCounters(context)
    this.experts = new Experts(context)
    this.copies = new Copies(context)
    this.rates = new Rates(context, works)
    this.graphs = new Graphs(context)
    this.calls = new Calls(context, memory.allocations, this.graphs, areas, (event) => {
      areas.requests.call(event)
      this.graphs.call(event)
      this.rates.call(event)
      memory.cache.call(event)
    })
    const nameOf = ({ name }: { readonly name: number }) => names.text(name)
    const plans = new Plans({ tensors, buffers: memory.buffers.events, views, nameOf })
    this.runs = new GraphRuns((run, next) => {
      const plan = plans.of(run)
      memory.lifetimes.run(run, plan, next)
      this.rates.run(run, plan)
      memory.cache.run(run, plan)
      this.waits?.complete(run)
      this.operators.complete(run)
    })
  }

  /** The most frequent event. */
  operator(event: OperatorEvent): void {
    const step = this.runs.add(event)
    if (this.waits) this.waits.hold(event, step)
    else this.operators.place(event, undefined, undefined, step)
    this.states.serve(event.worker, event.tid, event.waitEndNs)
    this.memory.operator(event)
    if (this.counters.areThere) this.counters.place(event)
    if (event.worker === 0 || event.experts) this.experts.place(event)
  }

  private draw(event: OperatorEvent, wait: Wait | undefined): void {
    if (!this.flows.holds(event, wait)) this.operators.place(event, wait)
  }

  take(event: TokenEvent | GraphEvent | GraphNodesEvent | ExpertsEvent | CopyEvent | PartEvent | SumsEvent): void {
    switch (event.kind) {
      case 'token':
        this.states.trace(event.tid)
        this.states.reach(event.endNs)
        if (this.waits) this.waits.afterwards(() => this.flows.token(event))
        else this.flows.token(event)
        this.memory.lifetimes.token(event)
        return this.calls.token(event, true)
      case 'graph':
        return this.graphs.add(event)
      case 'graph-nodes':
        return this.graphs.define(event)
      case 'part':
        return this.graphs.part(event)
      case 'experts':
        this.rates.choose(event)
        return this.experts.choose(event)
      case 'copy':
        this.memory.lifetimes.copy(event)
        this.graphs.copy(event)
        return this.copies.place(event)
      case 'sums':
        return event.of === 'graphs' ? this.graphs.placeSums(event) : this.sums(event)
    }
  }

  /** Adds a function to the call around it. */
  within(event: FunctionEvent): void {
    if (event.what === 'synchronize') this.graphs.wait(event)
  }

  /** Operators of the calls before come no more, except of a few. */
  private sums(event: SumsEvent): void {
    this.states.serve(event.worker, event.tid, event.endNs)
    this.runs.releaseBefore(event.call - LATE_CALLS)
    if (this.waits) this.waits.afterwards(() => this.operators.sums(event))
    else this.operators.sums(event)
  }

  /** Counts a call that is not drawn. */
  skip(event: TokenEvent): void {
    this.calls.token(event, false)
  }

  /** Waits at barriers that are not drawn. */
  get shortWaits(): LeftOutEvent[] {
    const { short } = this.operators
    if (!short?.count) return []
    const what = `barrier waits below ${duration(BARRIER_NS_MIN)} (${duration(short.sumNs)} in all)`
    return [{ kind: 'left-out', what, count: short.count, hint: '--barriers all draws them' }]
  }

  /** What computed. */
  get machine(): { readonly workers: number; readonly backends: readonly string[] } {
    return { workers: this.operators.workerCount, backends: this.graphs.backends }
  }

  /** `attributes`: those of the input. */
  finish(attributes: InputEvent['attributes']): void {
    this.calls.finish()
    this.graphs.finish()
    if (!this.waits) this.operators.finish() // its last waits belong to runs
    this.runs.finish()
    this.waits?.finish()
    this.flows.finish()
    this.operators.finish()
    this.operators.nameWorkers(this.workerCpus.titles(attributes))
    this.memory.cache.finish() // the last calls wait for their runs
    this.experts.finish()
  }
}

/** The Copies row: transfers into backend buffers, out of them, or between them. */
class Copies {
  private readonly lanes: Lanes

  constructor(private readonly context: TrackContext) {
    this.lanes = context.tracks.lanes('copies', {}, true)
  }

  place({ what, startNs, endNs, bytes, from, to, tensor, tid }: CopyEvent): void {
    const { make, tensors, detail } = this.context
    const moved = tensors[tensor]
    const extra = [make.int('bytes', bytes)]
    if (moved) extra.push(make.name('tensor', moved.name))
    if (from !== 0) extra.push(make.name('from', from))
    if (to !== 0) extra.push(make.name('to', to))
    if (endNs > startNs) extra.push(make.double('gb_per_s', bytes / (endNs - startNs)))
    if (detail === 'full') extra.push(make.int('tid', tid))
    const name = moved ? `${what} ${make.names.text(moved.name)}` : what
    this.lanes.place(startNs, endNs, labelOf(make.names.id(name), 'copy', make.shown(extra)))
  }
}
