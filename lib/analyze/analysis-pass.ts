import { DefaultMap } from '../model/default-map.ts'
import type { TokenEvent, TraceEvent } from '../model/events.ts'
import type { ModelShape } from '../model/model-shape.ts'
import type { Names } from '../model/names.ts'
import type { EventPass } from '../model/pass.ts'
import { CallRows } from './calls/call-rows.ts'
import { CallStatistics } from './calls/call-statistics.ts'
import { RoleTable } from './calls/roles.ts'
import type { TimedDecode } from './calls/times.ts'
import type { CallSample } from './common/sampled-calls.ts'
import type { EventKind, Statistic } from './common/statistic.ts'
import { CACHE_SIZES, type ExpertCacheSize } from './experts/caches.ts'
import { ExpertStatistics } from './experts/experts.ts'
import { GpuStatistics } from './gpu/gpu-statistics.ts'
import { Choices } from './graph/choices.ts'
import { Defined } from './graph/defined.ts'
import { type CallOperators, OperatorsByCall } from './graph/operators/call-operators.ts'
import { Steps } from './graph/operators/steps.ts'
import { type InputFigures, NO_FIGURES } from './input-figures.ts'
import { Memory } from './memory/memory.ts'
import { Activations } from './model/activations.ts'
import { CallWork } from './model/call-work.ts'
import { DimsWork } from './model/dims.ts'
import { shapeOfGraph } from './model/graph-shape.ts'
import { Numa } from './numa/numa.ts'
import { Backends } from './operators/backends.ts'
import { FirstCalls } from './operators/first-calls.ts'
import { GpuOperators } from './operators/gpu-operators.ts'
import { OperatorRows } from './operators/rows.ts'
import { TimeParts } from './operators/time-parts.ts'
import { Placement } from './placement/placement.ts'
import { RequestPass } from './requests/request-pass.ts'
import { RpcStatistic } from './rpc/messages.ts'
import type { SeriesName } from './series/figures.ts'
import { SeriesOfCalls } from './series/series.ts'
import { StepTimes } from './series/step-times.ts'
import { CoreKinds } from './threads/core-kinds.ts'
import { CpusUsed } from './threads/cpus-used.ts'
import { Imbalance } from './threads/imbalance.ts'
import { PreemptedCalls } from './threads/preempted-calls.ts'
import { Scheduling } from './threads/scheduling.ts'
import { Teams } from './threads/teams.ts'
import type { ThreadHistory } from './threads/thread-history.ts'
import { WorkerCpusStatistic } from './threads/worker-cpus.ts'
import { WorkerTimes } from './threads/worker-times.ts'
import { WeightMemoryStatistic } from './weights/weight-memory.ts'

/** How much is computed. */
export interface AnalysisDepth {
  /** Distributions of durations too. */
  readonly distributions: boolean
  /** Operators of a sample of calls only: enough for findings, for a small part of the time. */
  readonly sample?: CallSample | undefined
  /** Only what predictions need: times of calls, the memory of weights, and times of steps where they are among `series`. */
  readonly onlySteps?: boolean | undefined
  /** Figures over time that are made. */
  readonly series?: readonly SeriesName[] | undefined
  /** Simulated caches of experts; by default {@link CACHE_SIZES}. */
  readonly expertCaches?: readonly ExpertCacheSize[] | undefined
  /** The model's own file, where it was given. */
  readonly model?: ModelShape | undefined
  /** The call that `graph` and `memory` among them show. */
  readonly call?: number | undefined
}

type StatisticOfInput = Statistic<InputFigures>

/** Pieces of work of GPUs that are held where a sample is taken: 40 MB with their launches. */
const SAMPLED_WORK_MAX = 1 << 20

/** Passes the events, and the operators of calls, of one input to its statistics. */
export class AnalysisPass implements EventPass<InputFigures> {
  private readonly defined: Defined
  private readonly byCall: OperatorsByCall
  private readonly steps = new Steps()
  private readonly sample: CallSample | undefined
  private readonly calls: CallStatistics
  private readonly scheduling: Scheduling
  private readonly preempted: PreemptedCalls
  private readonly statistics: readonly StatisticOfInput[]
  /** By what they want. */
  private readonly ofEvents = new DefaultMap<EventKind, StatisticOfInput[]>(() => [])
  private readonly ofCalls: readonly StatisticOfInput[]
  private readonly ofChoices: readonly StatisticOfInput[]
  private inferred = 0
  private inferredOfCalls = 0

  /** `threads`: states of threads, from all inputs. */
  constructor(
    names: Names,
    private readonly threads: ThreadHistory,
    depth: AnalysisDepth,
  ) {
    const { sample, series, onlySteps } = depth
    this.sample = sample
    this.defined = new Defined(names)
    const { defined } = this
    const roles = new RoleTable(defined.tensors, names)
    const blockOf = sample ? (tensor: number) => roles.role(roles.of(tensor, tensor)).block : defined.blockOf
    this.preempted = new PreemptedCalls(threads)
    const { preempted } = this
    const parts = new TimeParts(blockOf, (backend) => names.text(backend), preempted, sample)
    const { scaleOf } = parts
    const hasStates = () => this.scheduling.hasStates
    const backends = new Backends(names)
    const choices = new DefaultMap<number, Choices>(() => new Choices())
    const rows = new OperatorRows({
      ...{ defined, hasDurations: depth.distributions, byRole: sample !== undefined, roles, hasStates, scaleOf },
      backendAt: (call, atNs) => backends.at(call, atNs),
      expertsChosen: (tensor, endNs) => choices.get(tensor)?.until(endNs) ?? 0,
    })
    const needsTable = series?.includes('calls') || series?.includes('steps')
    const table = needsTable ? new CallRows(defined.blockOf) : undefined
    this.calls = new CallStatistics(roles, table, sample)
    this.scheduling = new Scheduling(threads, {
      ...{ names, roles: sample || onlySteps ? undefined : roles, scaleOf, rows: () => rows.list },
    })
    const decodedTokens = () => this.calls.decodedTokens
    const requests = new RequestPass(names, preempted, series?.includes('requests') === true, decodedTokens)
    const work = new CallWork(names, () => rows.latest)
    const workerCpus = new WorkerCpusStatistic(names)
    const coreKinds = new CoreKinds(roles, () => workerCpus.latest)
    const steps = table && series?.includes('steps') ? [new StepTimes(defined, threads, table)] : []
    const weights = new WeightMemoryStatistic(defined)
    // Rows come before parts: the roles of fused nodes are those of their results.
    const sampled = [
      ...[preempted, backends, rows, parts, this.scheduling, this.calls, new FirstCalls(defined), new CpusUsed()],
      ...[requests, new Placement(defined), new Teams(threads), workerCpus, coreKinds],
      ...[new Numa(defined, () => workerCpus.latest), weights, new RpcStatistic(names)],
    ]
    if (onlySteps) this.statistics = [preempted, this.calls, weights, ...steps]
    else if (sample) this.statistics = [...sampled, new GpuStatistics(names, SAMPLED_WORK_MAX)]
    else {
      const further = this.further(roles, rows, choices, coreKinds, depth)
      this.statistics = [new GpuOperators(names, rows, work), ...sampled, work, ...further, ...steps]
    }
    for (const statistic of this.statistics)
      for (const kind of statistic.kinds ?? []) this.ofEvents.of(kind).push(statistic)
    this.ofCalls = this.statistics.filter((statistic) => statistic.call)
    this.ofChoices = this.ofCalls.filter(({ needsChoices }) => needsChoices)
    this.byCall = new OperatorsByCall(
      (operators) => this.call(operators),
      (atNs) => threads.isKnownAt(atNs),
    )
  }

  /** Those that a sample has not. */
  private further(
    roles: RoleTable,
    rows: OperatorRows,
    choices: DefaultMap<number, Choices>,
    coreKinds: CoreKinds,
    { series: wanted, call, expertCaches = CACHE_SIZES, model }: AnalysisDepth,
  ): StatisticOfInput[] {
    const { defined } = this
    const { names } = defined
    const gpu = new GpuStatistics(names)
    const kindOf = (operators: CallOperators, i: number) => coreKinds.kindOf(operators, i)
    const series = wanted && new SeriesOfCalls(defined, wanted, call, () => rows.chosen, kindOf)
    const memory = new Memory(defined, (operators) => series?.liveOf(operators))
    const chosen: Statistic<InputFigures, 'experts'> = {
      kinds: ['experts'],
      event: ({ tensor, atNs, ids }) => choices.of(tensor).add(atNs, ids),
    }
    return [
      ...[new WorkerTimes(this.scheduling), new Imbalance(roles), memory, ...(series ? [series] : [])],
      ...[new Activations(defined, () => memory.firstPlan), gpu, new DimsWork(names, () => gpu.figures?.figures)],
      ...[new ExpertStatistics(defined, expertCaches, model), chosen],
      { finish: () => ({ shape: shapeOfGraph(defined) }) },
    ]
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.event(event)
  }

  /** One event of a batch. */
  event(event: TraceEvent): void {
    switch (event.kind) {
      case 'operator':
        this.byCall.operator(event)
        this.inferred |= event.inferred
        return
      case 'switch':
      case 'waking':
      case 'thread':
        return this.threads.take(event)
      case 'state':
        this.threads.take(event)
        break
      case 'tensor':
      case 'buffer':
      case 'counted':
        return this.defined.add(event)
      case 'token':
        this.inferredOfCalls |= event.inferred
        if (this.isTaken(event.call)) this.byCall.call(event)
        break
      case 'graph':
      case 'part':
        if (!this.isTaken(event.call)) return
        break
      case 'experts':
        this.pass(event)
        if (!this.sample) this.byCall.experts(event)
        return
    }
    this.pass(event)
  }

  private pass(event: TraceEvent): void {
    const statistics = this.ofEvents.get(event.kind)
    if (statistics) for (const statistic of statistics) statistic.event!(event)
  }

  private isTaken(call: number): boolean {
    return !this.sample || this.sample.weightOf(call) > 0
  }

  /** A call of a sample, with its time: it is timed from the end of the one before, which is in no sample. */
  timed(event: TokenEvent, timed: TimedDecode | undefined): void {
    this.calls.timed(event, timed)
  }

  /** Start of the first operator or call that waits for the rest, or for states of threads; undefined without any. */
  get earliestNs(): number | undefined {
    const [operators, calls] = [this.byCall.earliestNs, this.preempted.earliestNs]
    return operators === undefined || calls === undefined ? (operators ?? calls) : Math.min(operators, calls)
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs = 0): InputFigures {
    const { inferred, inferredOfCalls } = this
    for (const statistic of this.statistics) statistic.lastEvent?.()
    this.byCall.finish()
    const figures = this.statistics.map((statistic) => statistic.finish?.(firstNs))
    return Object.assign({}, NO_FIGURES, { inferred, inferredOfCalls }, ...figures)
  }

  /** All operators of a call were read. */
  private call(operators: CallOperators): void {
    const { steps, sample } = this
    steps.find(operators)
    if (operators.count === 0) {
      for (const statistic of this.ofChoices) statistic.call!({ operators, steps, off: undefined, weight: 1 })
      return
    }
    this.threads.released(operators.waitEndNs[operators.count - 1]!)
    const weight = sample && operators.event ? sample.weightOf(operators.event.call) : 1
    const parts = { operators, steps, off: this.scheduling.add(operators, weight), weight }
    for (const statistic of this.ofCalls) statistic.call!(parts)
  }
}
