import type { OperatorEvent, TokenEvent, TraceEvent } from '../../model/events.ts'
import { LeftOut } from '../../model/left-out.ts'
import type { Names } from '../../model/names.ts'
import type { KeptAs, SliceSum } from '../../model/sums.ts'
import { graphName, partName } from '../../timeline/ggml/graphs.ts'
import type { OpNaming } from '../../timeline/options.ts'
import { KeptStates, type Windows, windowAt } from './kept-states.ts'
import { GraphSums, OperatorSums, SummedNames } from './operator-sums.ts'
import { isOfCall, type WorkEvent, WorkSums } from './work-sums.ts'

/** Which calls are in the trace in full. */
export interface Choice {
  /** Why the call is in full; undefined: it is not. The answer for a call, from 0, never changes. */
  keptAs(call: number): KeptAs | undefined
  /** The stretch of a call that is not: calls in the same one are summed up together. */
  stretchOf(call: number): number
  /** Times of the calls in full; undefined where they are not known in advance: then events without a call are kept. */
  readonly windows: Windows | undefined
}

const HINT = 'all of it: --all; a part of the run in full: --tokens 100..120'

/**
 * Replaces operators and graphs of calls that are not in full by their sums. Sums of a worker come before its next operator that
 * is not in them, so that the order of each worker's events stays. Other events of these calls are left out, and counted.
 */
export class Thinner {
  operators = 0
  operatorsInFull = 0
  operatorsOutsideCalls = 0
  /** Work of GPUs and calls of their libraries, in calls; and in those in full. */
  works = 0
  worksInFull = 0
  calls = 0
  /** Calls in full. */
  readonly kept: Record<KeptAs, number> = { first: 0, prefill: 0, slow: 0, spread: 0 }
  /** Sums so far. */
  sums = 0
  private readonly shared: SummedNames
  private readonly workers: OperatorSums[] = []
  private readonly graphs = new GraphSums()
  private readonly work: WorkSums
  private readonly states: KeptStates | undefined
  private readonly leftOut = new LeftOut()
  private latestCall = -1
  private isLatestFull = true

  constructor(
    private readonly names: Names,
    private readonly choice: Choice,
    naming: OpNaming = 'role',
  ) {
    this.shared = new SummedNames(names, naming)
    this.work = new WorkSums(this.shared)
    this.states = choice.windows && new KeptStates(choice.windows)
  }

  /** The events of a batch that are drawn. */
  take(batch: readonly TraceEvent[]): TraceEvent[] {
    const kept: TraceEvent[] = []
    for (const event of batch) {
      if (event.kind === 'operator') this.operator(event, kept)
      else if (this.isKept(event, kept)) kept.push(event)
    }
    return kept
  }

  /** The sums that are not drawn yet. */
  finish(): TraceEvent[] {
    const rest: TraceEvent[] = []
    for (const worker of this.workers) this.push(worker, rest)
    this.push(this.graphs, rest)
    this.pushWork(this.work.finish(), rest)
    this.states?.finish(rest)
    return rest
  }

  /** What was left out. */
  leftOutEvents(): TraceEvent[] {
    if (this.states) this.leftOut.add('states of threads in summed calls', this.states.leftOut, HINT)
    return this.leftOut.events()
  }

  private operator(event: OperatorEvent, into: TraceEvent[]): void {
    const { call, worker } = event
    this.operators++
    if (call !== this.latestCall) {
      this.latestCall = call
      this.isLatestFull = this.isFull(call)
    }
    const sums = this.workers[worker]
    if (this.isLatestFull) {
      if (sums !== undefined && sums.stretch >= 0) this.push(sums, into)
      if (call < 0) this.operatorsOutsideCalls++
      else this.operatorsInFull++
      into.push(event)
      return
    }
    const stretch = this.choice.stretchOf(call)
    if (sums === undefined) return this.addWorker(worker).add(event, stretch)
    if (sums.stretch !== stretch && sums.stretch >= 0) this.push(sums, into)
    sums.add(event, stretch)
  }

  private isKept(event: TraceEvent, into: TraceEvent[]): boolean {
    switch (event.kind) {
      case 'tensor':
        this.shared.tensors[event.id] = event
        return true
      case 'token':
        this.call(event)
        return true
      case 'graph':
        return this.isFull(event.call) || this.sumUp(event, 'graph', graphName(event, this.names), into)
      case 'part':
        return this.isFull(event.call) || this.sumUp(event, 'outside', partName(event, this.names), into)
      case 'gpu':
      case 'api':
        return this.isWorkKept(event, into)
      case 'experts':
        return this.isFull(event.call) || this.leave('choices of experts in summed calls')
      case 'counter': {
        const isKept = event.call === undefined ? this.isNear(event.atNs) : this.isFull(event.call)
        return isKept || this.leave('samples of counters in summed calls')
      }
      case 'copy':
        return this.isNear(event.startNs) || this.leave('copies in summed calls')
      case 'state':
        this.states?.state(event, into)
        return this.states === undefined
      default:
        return true
    }
  }

  private isWorkKept(event: WorkEvent, into: TraceEvent[]): boolean {
    const isOfOne = isOfCall(event)
    if (isOfOne) this.works++
    if (isOfOne && !this.isFull(event.call)) {
      this.pushWork(this.work.add(event, this.choice.stretchOf(event.call)), into)
      return false
    }
    if (isOfOne) this.worksInFull++
    if (event.kind === 'api') this.pushWork(this.work.before(event), into) // calls of a thread come in order
    return true
  }

  private pushWork(sums: readonly WorkEvent[], into: TraceEvent[]): void {
    this.sums += sums.length
    into.push(...sums)
  }

  private call({ call }: TokenEvent): void {
    if (call < 0) return
    this.calls++
    const as = this.choice.keptAs(call)
    if (as) this.kept[as]++
  }

  private isFull(call: number): boolean {
    return call < 0 || this.choice.keptAs(call) !== undefined
  }

  /** Is a time in a call in full, or before or after all calls? */
  private isNear(atNs: number): boolean {
    const { windows } = this.choice
    return !windows || atNs < windows.toNs[windowAt(windows, atNs)]!
  }

  private sumUp(
    event: { readonly call: number; readonly startNs: number; readonly endNs: number },
    what: SliceSum['what'],
    name: number,
    into: TraceEvent[],
  ): false {
    if (name === 0) return false
    const stretch = this.choice.stretchOf(event.call)
    if (this.graphs.stretch !== stretch) this.push(this.graphs, into)
    this.graphs.add(event, what, name, stretch)
    return false
  }

  private push(sums: OperatorSums | GraphSums, into: TraceEvent[]): void {
    const event = sums.take()
    if (!event) return
    this.sums += event.sums.length
    into.push(event)
  }

  private leave(what: string): false {
    this.leftOut.add(what, 1, HINT)
    return false
  }

  private addWorker(worker: number): OperatorSums {
    for (let i = this.workers.length; i <= worker; i++) this.workers.push(new OperatorSums(i, this.shared))
    return this.workers[worker]!
  }
}
