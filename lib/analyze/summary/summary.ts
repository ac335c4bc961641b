import { UsageError } from '../../errors.ts'
import { othersIn } from '../../model/batch.ts'
import { putAt } from '../../model/by-id.ts'
import { isCut, isFailed, meaningOf } from '../../model/calls.ts'
import { CounterSet } from '../../model/counters.ts'
import { DefaultMap } from '../../model/default-map.ts'
import {
  type CallBatch,
  type FactsEvent,
  type FunctionEvent,
  type FunctionPurpose,
  Inferred,
  type InputEvent,
  type IssueEvent,
  type OperatorEvent,
  type SequenceEvent,
  type TensorEvent,
  type TokenEvent,
  type TraceEvent,
} from '../../model/events.ts'
import type { GpuEvent } from '../../model/gpu-events.ts'
import { kindOfIssue } from '../../model/issues.ts'
import { LeftOut, NEEDS_LOG } from '../../model/left-out.ts'
import type { Names } from '../../model/names.ts'
import type { EventPass } from '../../model/pass.ts'
import { timesOf } from '../../model/times.ts'
import { CallTimes, type OnCall } from '../calls/call-times.ts'
import type { IssueCount, LlamaSeen, Summary } from './figures.ts'

/** From the earliest of some times to the latest, in ns; 0 without any. */
class Extent {
  private beginNs = Infinity
  private endNs = -Infinity

  /** Adds an interval. */
  add(startNs: number, endNs: number): void {
    if (startNs < this.beginNs) this.beginNs = startNs
    if (endNs > this.endNs) this.endNs = endNs
  }

  get isEmpty(): boolean {
    return this.beginNs === Infinity
  }

  get firstNs(): number {
    return this.isEmpty ? 0 : this.beginNs
  }

  get lastNs(): number {
    return Math.max(this.firstNs, this.endNs)
  }
}

/** Functions that programs without llama.cpp call, too. */
const OF_GGML: readonly FunctionPurpose[] = ['synchronize', 'read-header', 'map']
/** Of a log without functions: the recorder's `functions.missing` (native/recorder/functions.c). */
const NOT_REQUESTED = 'all: not requested'

/** Is it a function of llama.cpp, and not of ggml alone? */
const isOfLlama = (what: FunctionPurpose): boolean => !OF_GGML.includes(what)

/** What was seen, from the facts of the log and whether it contains functions of llama.cpp; undefined: nothing. */
function llamaSeen(
  attributes: Readonly<Record<string, string | number>>,
  hasFunctions: boolean,
): LlamaSeen | undefined {
  if (attributes['llama.calls'] !== undefined) return 'calls'
  if (hasFunctions) return 'functions'
  if (attributes['llama.functions'] === undefined) return undefined
  return attributes['functions.missing'] === NOT_REQUESTED ? 'functions' : 'loading'
}

/** Results that are counted separately. Programs return few; a damaged log may contain any. */
const RESULTS_MAX = 64

/** Counts the results of calls that failed. */
class Failures {
  /** By result and meaning. */
  private readonly counts = new Map<string, { result: number; meaning: string; calls: number }>()

  add(batch: CallBatch): void {
    const { result } = batch
    const meaning = meaningOf(batch).short
    const key = `${result} ${meaning}`
    const known = this.counts.get(key)
    if (known) known.calls++
    else if (this.counts.size < RESULTS_MAX) this.counts.set(key, { result, meaning, calls: 1 })
  }

  /** The most frequent first. */
  list(): Summary['failures'] {
    return [...this.counts.values()].sort((a, b) => b.calls - a.calls || a.result - b.result)
  }
}

interface OpTotals {
  count: number
  time_ns: number
}

/** Collects the {@link Summary} of an input. */
export class SummaryPass implements EventPass<Summary> {
  private readonly tensors: TensorEvent[] = []
  private readonly workers = new Set<number>()
  private readonly threads = new Set<number>()
  private readonly layers = new Set<number>()
  private readonly ops = new DefaultMap<number, OpTotals>(() => ({ count: 0, time_ns: 0 }))
  /** Totals of the op of a tensor, by tensor. */
  private readonly totals: (OpTotals | undefined)[] = []
  private latestWorker = -1
  private latestThread = NaN
  private readonly counterSet = new CounterSet()
  private readonly counted: number[] = []
  private readonly issues = new Map<string, { count: number; first: IssueEvent }>()
  /** Calls that succeeded, in the order of the Analysis. */
  private readonly calls = {
    encode: newCalls(),
    prefill: newCalls(),
    mixed: newCalls(),
    decode: newCalls(),
    compute: newCalls(),
    'warm-up': newCalls(),
  }
  private failed = 0
  private readonly failures = new Failures()
  private input: Omit<InputEvent, 'kind'> = { format: '', clock: 'unknown', originNs: 0n, attributes: {} }
  private contents: string | undefined
  private readonly extent = new Extent()
  private readonly samples = new Extent() // where there is nothing else
  private readonly times: CallTimes
  private callsByGraph = 0
  private hasLlamaFunctions = false
  private operators = 0
  private gpuOperators = 0
  private readonly gpuOps = new DefaultMap<number, OpTotals>(() => ({ count: 0, time_ns: 0 }))
  private gpuWork = 0
  private gpuWorkNs = 0
  private graphs = 0
  private readonly backends = new Set<number>()
  private withExperts = 0
  private nvtx = 0
  private endsAreOpen = false
  private switches = 0
  private wakings = 0
  private readonly cpus = new Set<number>()
  private drawn = 0
  private accesses = 0
  private readonly leftOut = new LeftOut()

  /** `onCall`: gets the calls with their times. */
  constructor(
    private readonly names: Names,
    onCall?: OnCall,
  ) {
    this.times = new CallTimes(onCall)
  }

  take(batch: readonly TraceEvent[]): void {
    const others = othersIn(batch)
    let next = 0
    for (let i = 0; i < batch.length; i++) {
      if (others[next] !== i) this.countOperator(batch[i] as OperatorEvent)
      else this.event(batch[others[next++]!]!)
    }
  }

  /** Time of the first event so far, in ns since the input's origin; 0 if none has a time. */
  get firstNs(): number {
    return (this.extent.isEmpty ? this.samples : this.extent).firstNs
  }

  /** Time of the last event so far. */
  get lastNs(): number {
    return (this.extent.isEmpty ? this.samples : this.extent).lastNs
  }

  /** `areJoined`: samples of data addresses are drawn with a log. */
  finish(areJoined = false): Summary {
    const { input, firstNs, lastNs, operators, graphs } = this
    const times = timesOf(input)
    const phases = Object.entries(this.calls).filter(([, { calls }]) => calls > 0)
    const count = phases.reduce((sum, [phase, { calls }]) => (phase === 'warm-up' ? sum : sum + calls), 0)
    this.times.finish()
    if (!areJoined) this.leftOut.add('samples of data addresses', this.accesses, NEEDS_LOG)
    const { decoding, ...figures } = this.times.figures
    return {
      format: input.format,
      contents: this.contents,
      clock: input.clock,
      times,
      start_ns: String(input.originNs + BigInt(firstNs)),
      duration_ns: times === 'recorded' && lastNs > firstNs ? lastNs - firstNs : null,
      calls: { count, by_phase: Object.fromEntries(phases), failed: this.failed, ...figures },
      decoding,
      contexts: this.times.contexts,
      failures: this.failures.list(),
      calls_by_graph: this.callsByGraph,
      llama_seen: llamaSeen(input.attributes, this.hasLlamaFunctions),
      operators,
      gpu_operators: this.gpuOperators,
      gpu_work: this.gpuWork,
      gpu_work_ns: this.gpuWorkNs,
      graphs,
      backends: [...this.backends].map((name) => this.names.text(name)).filter((name) => name !== ''),
      workers: this.workers.size,
      threads: this.threads.size,
      layers: this.layers.size,
      ops: this.mostTime(this.ops),
      ...(this.gpuOps.size > 0 && { gpu_ops: this.mostTime(this.gpuOps) }),
      counters: this.counterSet.counters.flatMap((counter, i) => ({ ...counter, total: this.counted[i] ?? 0 })),
      with_experts: this.withExperts,
      nvtx: this.nvtx,
      ...(this.switches + this.wakings > 0 && {
        scheduler: { switches: this.switches, wakings: this.wakings, cpus: this.cpus.size },
      }),
      issues: [...this.issues].map(([title, issue]) => ({ title, ...catalogued(issue.first), ...issue })),
      drawn: this.drawn + (areJoined ? this.accesses : 0),
      left_out: this.leftOut.list(),
      attributes: input.attributes,
      ends_are_open: this.endsAreOpen,
    }
  }

  event(event: TraceEvent): void {
    switch (event.kind) {
      case 'operator':
        return this.countOperator(event)
      case 'tensor':
        this.tensors[event.id] = event
        return
      case 'counted':
        return this.counterSet.define(event, this.names.text(event.name))
      case 'graph':
        this.drawn++
        this.graphs++
        this.backends.add(event.backend)
        return this.extent.add(event.startNs, event.endNs)
      case 'token':
        return this.countCall(event)
      case 'left-out':
        return this.leftOut.add(event.what, event.count, event.hint)
      case 'issue':
        return this.countIssue(event)
      case 'function':
      case 'sequence':
        return this.around(event)
      case 'nvtx':
      case 'range':
        this.drawn++
        if (event.kind === 'nvtx' && event.what !== 'pop' && event.what !== 'end') this.nvtx++
        return this.extent.add(event.atNs, event.atNs)
      case 'access':
        this.accesses++
        return this.extent.add(event.atNs, event.atNs)
      case 'switch':
        this.drawn++
        this.switches++
        if (event.cpu >= 0) this.cpus.add(event.cpu)
        return this.extent.add(event.atNs, event.atNs)
      case 'state':
        this.drawn++
        if (event.thread === undefined) return
        this.threads.add(event.tid)
        return this.extent.add(event.atNs, event.atNs)
      case 'facts':
      case 'input':
        return this.learn(event)
      case 'waking':
      case 'experts':
      case 'copy':
      case 'part':
      case 'allocation':
      case 'nvtx-gpu':
      case 'counter':
      case 'own-instant':
      case 'own-sample':
        this.drawn++
        if (event.kind === 'experts') this.withExperts++
        else if (event.kind === 'waking') this.wakings++
        if ('atNs' in event) this.samples.add(event.atNs, event.atNs)
        return
      default:
        if (!('startNs' in event)) return
        this.drawn++
        if (event.kind === 'gpu') this.countWork(event)
        return this.extent.add(event.startNs, event.endNs)
    }
  }

  private learn(event: FactsEvent | InputEvent): void {
    const { input } = this
    const attributes = { ...input.attributes, ...event.attributes }
    this.input = event.kind === 'input' ? event : { ...input, attributes }
    this.contents = event.contents ?? (event.kind === 'input' ? undefined : this.contents)
  }

  private around(event: FunctionEvent | SequenceEvent): void {
    this.times.around(event)
    if (event.kind === 'sequence') return
    this.drawn++
    this.hasLlamaFunctions ||= isOfLlama(event.what)
    this.samples.add(event.startNs, event.endNs)
  }

  private countIssue(event: IssueEvent): void {
    const known = this.issues.get(event.title)
    if (known) known.count++
    else this.issues.set(event.title, { count: 1, first: event })
  }

  private countOperator({ tensor, worker, tid, startNs, endNs, waitEndNs, experts, counts }: OperatorEvent): void {
    this.drawn++
    this.operators++
    if (worker !== this.latestWorker || tid !== this.latestThread) {
      this.workers.add(worker)
      this.threads.add(tid)
      this.latestWorker = worker
      this.latestThread = tid
    }
    if (experts) this.withExperts++
    const totals = this.totals[tensor] ?? this.totalsOf(tensor)
    totals.count++
    totals.time_ns += endNs - startNs
    if (counts) this.addCounts(counts)
    this.extent.add(startNs, waitEndNs)
  }

  private countWork({ node, startNs, endNs }: GpuEvent): void {
    this.gpuWork++
    this.gpuWorkNs += endNs - startNs
    if (!node) return
    const { tensor } = node
    this.gpuOperators++
    const { layer, op } = this.tensors[tensor] ?? unknownTensor(tensor)
    const totals = this.gpuOps.of(op)
    totals.count++
    totals.time_ns += endNs - startNs
    if (layer >= 0) this.layers.add(layer)
  }

  private mostTime(totals: ReadonlyMap<number, OpTotals>): Summary['ops'] {
    const ops = [...totals].map(([op, { count, time_ns }]) => ({ op: this.names.text(op), count, time_ns }))
    return ops.sort((a, b) => b.time_ns - a.time_ns || (a.op < b.op ? -1 : 1))
  }

  private totalsOf(tensor: number): OpTotals {
    const { op, layer } = this.tensors[tensor] ?? unknownTensor(tensor)
    if (layer >= 0) this.layers.add(layer)
    const totals = this.ops.of(op)
    putAt(this.totals, tensor, totals, undefined)
    return totals
  }

  private addCounts(counts: readonly number[]): void {
    for (let i = 0; i < counts.length; i++) this.counted[i] = (this.counted[i] ?? 0) + counts[i]!
  }

  private countCall(event: TokenEvent): void {
    const { phase, tokens, startNs, endNs, tid } = event
    this.drawn++
    if (event.batch?.function === 'ggml_backend_sched_graph_compute') this.callsByGraph++
    if (isFailed(event)) {
      this.failed++
      this.failures.add(event.batch!)
    } else {
      this.calls[phase].calls++
      this.calls[phase].tokens += Math.max(tokens, 0)
    }
    this.times.add(event)
    this.threads.add(tid)
    this.endsAreOpen ||= !isCut(event) && (event.inferred & Inferred.NoEnd) !== 0
    this.extent.add(startNs, endNs)
  }
}

/** Throws UsageError: only a custom reader can use a tensor before it defines it. */
export function unknownTensor(id: number): never {
  throw new UsageError(`operator: expected the id of a tensor event that came before, found ${id}`)
}

function catalogued(issue: IssueEvent): Pick<IssueCount, 'code' | 'hint' | 'is_loss'> {
  const kind = kindOfIssue(issue)
  return kind ? { code: issue.code, hint: kind.hint, is_loss: kind.isLoss } : { is_loss: false }
}

const newCalls = () => ({ calls: 0, tokens: 0 })
