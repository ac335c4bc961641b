import { type Block, blockOf } from '../model/blocks.ts'
import { putAt } from '../model/by-id.ts'
import { CounterSet } from '../model/counters.ts'
import { DefaultMap } from '../model/default-map.ts'
import type { BufferEvent, CountedEvent, ExpertsEvent, TensorEvent, TokenEvent, TraceEvent } from '../model/events.ts'
import type { ModelShape } from '../model/model-shape.ts'
import type { Names } from '../model/names.ts'
import type { EventPass } from '../model/pass.ts'
import type { FunctionEvent, RequestEvent, SequenceEvent } from '../model/request-events.ts'
import { parseTensorName } from '../model/tensors.ts'
import { CallRows } from './calls/call-rows.ts'
import { CallStatistics, type CallsOfInput } from './calls/call-statistics.ts'
import { RoleTable } from './calls/roles.ts'
import type { TimedDecode } from './calls/times.ts'
import type { Undetermined } from './common/figures.ts'
import { CACHE_SIZES, type ExpertCacheSize } from './experts/caches.ts'
import { ExpertStatistics, type ExpertsOfInput } from './experts/experts.ts'
import { type GpuOfInput, GpuStatistics, type GpuStatisticsEvent } from './gpu/gpu-statistics.ts'
import { Choices } from './graph/choices.ts'
import { layerOf } from './graph/layers.ts'
import { type CallOperators, OperatorsByCall } from './graph/operators/call-operators.ts'
import { Steps } from './graph/operators/steps.ts'
import { Works } from './graph/work.ts'
import { Memory, type MemoryOfInput } from './memory/memory.ts'
import { activationsOf } from './model/activations.ts'
import { CallWork, type CallWorkResult } from './model/call-work.ts'
import { DimsWork } from './model/dims.ts'
import type { ActivationFigures } from './model/figures.ts'
import { shapeOfGraph } from './model/graph-shape.ts'
import type { Measured } from './model/rooflines.ts'
import { Backends } from './operators/backends.ts'
import type { CallTime, FirstCall, OperatorFigures, OperatorRow } from './operators/figures.ts'
import { FirstCalls } from './operators/first-calls.ts'
import { GpuOperators } from './operators/gpu-operators.ts'
import { OperatorRows } from './operators/rows.ts'
import type { CallSample } from './operators/sampled-calls.ts'
import { TimeParts } from './operators/time-parts.ts'
import { RequestPass, type RequestsOfInput } from './requests/request-pass.ts'
import type { Series, SeriesName } from './series/figures.ts'
import { SeriesOfCalls } from './series/series.ts'
import { CpusUsed } from './threads/cpus-used.ts'
import type { RoleImbalance, SchedulingFigures, WorkerFigures } from './threads/figures.ts'
import { Imbalance } from './threads/imbalance.ts'
import { Scheduling } from './threads/scheduling.ts'
import type { ThreadHistory } from './threads/thread-history.ts'
import { WorkerTimes } from './threads/worker-times.ts'

/** What the operators and calls of one input add to the Analysis. */
export interface InputFigures {
  readonly call_time: readonly CallTime[]
  readonly callsLeftOut: TimeParts['leftOut']
  /** {@link Inferred} bits of operators, and of calls. */
  readonly inferred: number
  readonly inferredOfCalls: number
  readonly operators: OperatorFigures
  readonly workers: readonly WorkerFigures[]
  readonly calls: CallsOfInput
  readonly first_calls: readonly FirstCall[]
  readonly cpus_used: number | null
  readonly series: Series
  readonly unknownSeries: readonly Undetermined[]
  readonly imbalance: readonly RoleImbalance[]
  /** Undefined where no states of the threads of workers are known. */
  readonly scheduling: SchedulingFigures | undefined
  /** The model, as far as the graph contains it. */
  readonly shape: ModelShape | undefined
  readonly activations: ActivationFigures | null
  /** Work of the calls that have operators, by phase, and within NVTX ranges by name. */
  readonly work: CallWorkResult
  /** Work of PyTorch's operators. */
  readonly products: readonly Measured[]
  /** Undefined where the input contains none. */
  readonly gpu: GpuOfInput | undefined
  readonly experts: ExpertsOfInput
  /** Undefined for a sample. */
  readonly memory: MemoryOfInput | undefined
  readonly requests: RequestsOfInput
}

/** How much is computed. */
export interface AnalysisDepth {
  /** Distributions of durations too. */
  readonly distributions: boolean
  /** Operators of a sample of calls only: enough for findings, for a small part of the time. */
  readonly sample?: CallSample | undefined
  /** Figures over time that are made. */
  readonly series?: readonly SeriesName[] | undefined
  /** Simulated caches of experts; by default {@link CACHE_SIZES}. */
  readonly expertCaches?: readonly ExpertCacheSize[] | undefined
  /** The model's own file, where it was given. */
  readonly model?: ModelShape | undefined
  /** The call that `graph` and `memory` among them show. */
  readonly call?: number | undefined
}

/** Collects figures of one input's calls and operators. */
export class AnalysisPass implements EventPass<InputFigures> {
  private readonly tensors: TensorEvent[] = []
  private readonly buffers = new Map<number, BufferEvent>()
  private readonly blocks: (Block | undefined)[] = []
  private readonly counters = new CounterSet()
  private readonly choices = new DefaultMap<number, Choices>(() => new Choices())
  private readonly backends: Backends
  private readonly byCall: OperatorsByCall
  private readonly steps = new Steps()
  private readonly memory: Memory
  private readonly rows: OperatorRows
  private readonly parts: TimeParts
  private readonly firstCalls: FirstCalls
  private readonly cpus = new CpusUsed()
  private readonly sample: CallSample | undefined
  private readonly callRows: CallRows | undefined
  private readonly series: SeriesOfCalls | undefined
  private readonly calls: CallStatistics
  private readonly workers = new WorkerTimes()
  private readonly imbalance: Imbalance
  private readonly scheduling: Scheduling
  private readonly work: CallWork
  private readonly dims: DimsWork
  private readonly gpu: GpuStatistics | undefined
  private readonly onGpu: GpuOperators
  private readonly experts: ExpertStatistics
  private readonly requests: RequestPass
  private readonly isWeight: (tensor: TensorEvent) => boolean
  private activations: ActivationFigures | null = null
  private inferred = 0
  private inferredOfCalls = 0

  /** `threads`: states of threads, from all inputs. */
  constructor(
    private readonly names: Names,
    private readonly threads: ThreadHistory,
    depth: AnalysisDepth,
  ) {
    const { tensors, counters, buffers } = this
    this.sample = depth.sample
    this.backends = new Backends(names)
    this.memory = new Memory({ tensors, buffers, names })
    this.work = new CallWork(names)
    this.dims = new DimsWork(names)
    this.requests = new RequestPass(names, threads, depth.series?.includes('requests') === true)
    this.gpu = this.sample ? undefined : new GpuStatistics(names)
    this.experts = new ExpertStatistics({ tensors, names, counters }, depth.expertCaches ?? CACHE_SIZES, depth.model)
    this.isWeight = ({ buffer, op, name }: TensorEvent) =>
      buffers.get(buffer)?.usage === 'weights' || (op === 0 && /\.weight$/.test(names.text(name)))
    const roles = new RoleTable(tensors, names)
    const works = new Works(tensors, (tensor) => names.text(tensor.op))
    this.rows = new OperatorRows(
      {
        tensors,
        names,
        counters,
        roles,
        works: new Works(tensors, (tensor) => names.text(tensor.op)),
        byRole: depth.sample !== undefined,
        isWeight: this.isWeight,
        backendAt: (call, atNs) => this.backends.at(call, atNs),
        expertsChosen: (tensor, _startNs, endNs) => this.choices.get(tensor)?.until(endNs) ?? 0,
      },
      depth.distributions,
    )
    this.parts = new TimeParts(
      depth.sample ? (tensor) => roles.role(roles.of(tensor, tensor)).block : (tensor) => this.blockOf(tensor),
      (backend) => names.text(backend),
      this.sample,
    )
    this.firstCalls = new FirstCalls(
      (tensor) => layerOf(tensors[tensor]!, tensors, names),
      () => counters.counters.findIndex((counter) => counter?.key === 'major_faults'),
    )
    if (depth.series?.includes('calls')) this.callRows = new CallRows((tensor) => this.blockOf(tensor))
    if (depth.series) {
      const context = { tensors, buffers, names, views: this.memory.views, works, isWeight: this.isWeight }
      this.series = new SeriesOfCalls(context, depth.series, depth.call)
    }
    this.calls = new CallStatistics(roles, this.callRows, (call) => this.isTaken(call))
    this.onGpu = new GpuOperators(names, this.rows, this.work)
    this.imbalance = new Imbalance(roles)
    this.scheduling = new Scheduling(threads, names, this.sample ? undefined : roles)
    this.byCall = new OperatorsByCall(
      (operators) => this.call(operators),
      (atNs) => threads.isKnownAt(atNs),
    )
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.event(event)
  }

  /** One event of a batch. */
  event(event: TraceEvent): void {
    const { sample } = this
    switch (event.kind) {
      case 'operator':
        this.byCall.operator(event)
        this.inferred |= event.inferred
        break
      case 'token':
        this.inferredOfCalls |= event.inferred
        this.requests.take(event)
        this.parts.call(event)
        if (this.isTaken(event.call)) this.byCall.call(event)
        if (!sample) this.calls.call(event)
        if (sample) break
        this.ofGpu(event)
        this.work.seen(event)
        this.memory.token(event)
        break
      case 'graph':
        if (!this.isTaken(event.call)) break
        this.backends.graph(event)
        this.parts.graph(event)
        this.gpu?.take(event)
        break
      case 'sequence':
      case 'request':
      case 'function':
        this.around(event)
        break
      case 'part':
        if (this.isTaken(event.call)) this.parts.part(event)
        this.gpu?.take(event)
        break
      case 'experts':
        if (!sample) this.choose(event)
        break
      case 'state':
      case 'switch':
      case 'waking':
      case 'thread':
        this.threads.take(event)
        if (event.kind === 'state' && event.state === 'running') this.cpus.add(event.cpu)
        break
      case 'tensor':
      case 'buffer':
      case 'counted':
        this.define(event)
        break
      case 'copy':
        this.parts.copy(event)
        this.gpu?.take(event)
        if (!sample) this.memory.take(event)
        break
      case 'allocation':
        if (!sample) this.memory.take(event)
        break
      case 'own-slice':
      case 'gpu':
      case 'nvtx':
      case 'api':
      case 'nvtx-gpu':
      case 'own-track':
      case 'facts':
      case 'input':
        if (!sample) this.ofGpu(event)
        break
    }
  }

  private isTaken(call: number): boolean {
    return !this.sample || this.sample.weightOf(call) > 0
  }

  private around(event: RequestEvent | FunctionEvent | SequenceEvent): void {
    if (event.kind !== 'sequence') this.requests.take(event)
    if (event.kind !== 'request' && !this.sample) this.calls.around(event)
    if (event.kind !== 'function') return
    this.parts.function(event)
    this.gpu?.take(event)
  }

  private define(event: TensorEvent | BufferEvent | CountedEvent): void {
    if (event.kind === 'tensor') this.tensors[event.id] = event
    else if (event.kind === 'buffer') this.buffers.set(event.id, event)
    else this.counters.define(event, this.names.text(event.name))
  }

  /** A call of a sample, with its time: it is timed from the end of the one before, which is in no sample. */
  timed(event: TokenEvent, timed: TimedDecode | undefined): void {
    this.calls.timed(event, timed)
  }

  /** Calls, and events of inputs that may contain work of a GPU. */
  private ofGpu(event: GpuStatisticsEvent): void {
    if (event.kind === 'own-slice') this.dims.slice(event)
    else if (event.kind === 'gpu') this.onGpu.add(event)
    else if (event.kind === 'nvtx') this.work.nvtx(event)
    else if (event.kind === 'token') this.onGpu.call(event)
    this.gpu?.take(event)
  }

  /** Start of the first operator or call that waits for the rest, or for states of threads; undefined without any. */
  get earliestNs(): number | undefined {
    const [operators, calls] = [this.byCall.earliestNs, this.requests.earliestNs]
    return operators === undefined || calls === undefined ? (operators ?? calls) : Math.min(operators, calls)
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs = 0): InputFigures {
    this.calls.finishCalls()
    this.byCall.finish()
    this.onGpu.finish()
    const hasStates = this.scheduling.hasStates
    const call_time = this.parts.finish()
    const rows = this.rows.finish(hasStates, this.parts.scaleOf)
    const calls = this.calls.finish()
    const gpu = this.gpu?.finish()
    const requests = this.requests.finish(firstNs, calls.tpot?.count ?? null)
    const total = (of: (row: OperatorRow) => number) => rows.reduce((sum, row) => sum + of(row), 0)
    return {
      call_time,
      callsLeftOut: this.parts.leftOut,
      inferred: this.inferred,
      inferredOfCalls: this.inferredOfCalls,
      operators: {
        operator_time_ns: total((row) => row.operator_time_ns),
        wait_ns: total((row) => row.wait_ns),
        executions: total((row) => row.executions),
        rows,
      },
      workers: this.workers.finish(hasStates),
      imbalance: this.imbalance.finish(),
      scheduling: hasStates ? this.scheduling.finish(this.sample ? [] : rows, this.parts.scaleOf) : undefined,
      calls,
      requests,
      first_calls: this.firstCalls.finish(),
      cpus_used: this.cpus.count || null,
      series: {
        ...(this.callRows && { calls: this.callRows.finish(firstNs) }),
        ...(requests.series && { requests: requests.series }),
        ...this.series?.finish(firstNs),
      },
      unknownSeries: this.series?.unknown() ?? [],
      shape: this.sample
        ? undefined
        : shapeOfGraph({ tensors: this.tensors, names: this.names, isWeight: this.isWeight }),
      activations: this.activations,
      work: this.work.finish(),
      products: this.dims.finish(gpu?.figures),
      gpu,
      experts: this.experts.finish(),
      memory: this.sample ? undefined : this.memory.finish(firstNs),
    }
  }

  private choose(event: ExpertsEvent): void {
    this.choices.of(event.tensor).add(event.atNs, event.ids)
    this.byCall.experts(event)
    this.series?.experts(event)
  }

  /** All operators of a call were read. */
  private call(operators: CallOperators): void {
    this.steps.find(operators)
    if (!this.sample) this.experts.add(operators, this.steps)
    if (operators.count === 0) return
    this.threads.released(operators.waitEndNs[operators.count - 1]!)
    const weight = this.sample && operators.event ? this.sample.weightOf(operators.event.call) : 1
    const off = this.scheduling.add(operators, this.steps, weight)
    this.rows.add(operators, this.steps, off, weight)
    if (!this.sample) {
      this.workers.add(operators, this.steps, off)
      this.imbalance.add(operators, this.steps)
    }
    this.calls.operators(operators)
    for (let i = 0, before = -1; i < operators.count; i++) {
      const cpu = operators.cpu[i]!
      if (cpu !== before) this.cpus.add(cpu)
      before = cpu
    }
    const { event } = operators
    if (!this.sample) this.memory.call(operators, this.steps, this.series?.liveOf(operators))
    this.series?.add(operators, this.steps, this.rows.chosen)
    if (!event) return
    this.parts.add(event, operators, off)
    this.firstCalls.add(event, operators, off)
    if (this.sample) return
    this.work.call(event, { ...this.rows.latest })
    if (event.phase !== 'decode') return
    this.activations ??= activationsOf(this.memory.firstPlan!, this.tensors, this.memory.views)
  }

  private blockOf(id: number): Block {
    const known = this.blocks[id]
    if (known) return known
    const tensor = this.tensors[id]!
    const block = blockOf(parseTensorName(this.names.text(tensor.name)).role, this.names.text(tensor.op))
    putAt(this.blocks, id, block, undefined)
    return block
  }
}
