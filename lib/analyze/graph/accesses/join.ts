import { firstIndex } from '../../../bytes/search.ts'
import { PHASES } from '../../../model/call-events.ts'
import { DefaultMap } from '../../../model/default-map.ts'
import type {
  BufferEvent,
  CopyEvent,
  OperatorEvent,
  Phase,
  TensorEvent,
  TokenEvent,
  TraceEvent,
} from '../../../model/events.ts'
import type { Names } from '../../../model/names.ts'
import type { EventPass } from '../../../model/pass.ts'
import { Lifetimes } from '../lifetimes.ts'
import { nodesOf, type Plan, Plans, readsOf } from '../plan.ts'
import { type GraphRun, GraphRuns } from '../runs.ts'
import { Views } from '../views.ts'
import { TensorPlaces } from './places.ts'
import { type AccessSample, type AccessStore, MappingsOf } from './store.ts'

/** The time of a sample: of a call, before the first call, or between calls. */
export type AccessPhase = Phase | 'load' | 'between calls'

const ACCESS_PHASES: readonly AccessPhase[] = ['load', 'between calls', ...PHASES]
const PHASE = new Map<AccessPhase, number>(ACCESS_PHASES.map((phase, i) => [phase, i]))

/** What an access hit. */
export interface AccessHit {
  readonly sample: AccessSample
  /** In the log's time. */
  readonly atNs: number
  /** Id of the tensor that owns the memory; -1: none. */
  readonly tensor: number
  /** What is there instead of a tensor: a file, the heap, a buffer of ggml, the kernel; empty for tensors. */
  readonly place: string
  /** The worker whose operator its thread computed then; -1: none. */
  readonly worker: number
  readonly phase: AccessPhase
}

/** Accesses of the process of a log, and the definitions that they refer to. */
export interface JoinedAccesses {
  readonly names: Names
  readonly tensors: readonly TensorEvent[]
  readonly buffers: ReadonlyMap<number, BufferEvent>
  /** Samples of the process. */
  readonly count: number
  /** Samples of other processes, and those beyond the number that is held. */
  readonly otherProcesses: number
  readonly notHeld: number
  /** Does the log contain addresses of tensors? */
  readonly hasAddresses: boolean
  /** In order of time. Each call makes the hits again. */
  hits(): Iterable<AccessHit>
}

/** Samples of one thread, in order of time. */
interface OfThread {
  readonly at: number[]
  /** The first one that may be in the next operator. */
  next: number
  lastStartNs: number
}

/**
 * Finds the tensor of each sample of a data address. It was, in this order: read or written by the operator, or by the transfer, that the
 * sample's thread was in; a weight or a cache at the address; a weight at its place in a mapped model file; a tensor that lived in the
 * compute buffer then. Times are those of the log.
 */
export class AccessJoin implements EventPass<JoinedAccesses> {
  private readonly tensors: TensorEvent[] = []
  private readonly buffers = new Map<number, BufferEvent>()
  private readonly views: Views
  private readonly places: TensorPlaces
  private readonly lifetimes: Lifetimes
  private readonly plans: Plans
  private readonly runs: GraphRuns
  /** Samples of the process, by index of the store, and their times. */
  private readonly own: Int32Array
  private readonly times: Float64Array
  private readonly threads = new DefaultMap<number, OfThread>(() => ({ at: [], next: 0, lastStartNs: -Infinity }))
  /** By sample: nodes that were computed, from the first to the last fused one; the worker; the tensor by its life; the phase. */
  private readonly firsts: Int32Array
  private readonly lasts: Int32Array
  private readonly workers: Int32Array
  private readonly lives: Int32Array
  private readonly phases: Uint8Array
  private lastNs = -Infinity

  /** `pid`: the log's process; undefined: not known. `timeOf`: a time of the trace in the log's. */
  constructor(
    private readonly store: AccessStore,
    private readonly names: Names,
    pid: number | undefined,
    timeOf: (ns: number) => number,
  ) {
    const { tensors, buffers } = this
    this.views = new Views(tensors, (tensor) => names.text(tensor.op))
    this.places = new TensorPlaces({ buffers, names, views: this.views })
    this.lifetimes = new Lifetimes(this.views)
    this.plans = new Plans({ tensors, buffers, views: this.views, nameOf: ({ name }) => names.text(name) })
    this.runs = new GraphRuns((run, next) => this.run(run, this.plans.of(run), next !== undefined))
    const all = Int32Array.from({ length: store.count }, (_, i) => i)
    this.own = pid === undefined ? all : all.filter((i) => store.processOf(i) === pid)
    this.times = Float64Array.from(this.own, (i) => timeOf(store.timeOf(i)))
    const make = () => new Int32Array(this.own.length).fill(-1)
    ;[this.firsts, this.lasts, this.workers, this.lives] = [make(), make(), make(), make()]
    this.phases = new Uint8Array(this.own.length)
    for (const [n, i] of this.own.entries()) this.threads.of(store.threadOf(i)).at.push(n)
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.event(event)
  }

  private event(event: TraceEvent): void {
    switch (event.kind) {
      case 'operator':
        this.runs.add(event)
        this.within(event.tid, event.startNs, event.endNs, event)
        this.lastNs = event.endNs
        return
      case 'copy':
        this.lifetimes.copy(event)
        if (event.tensor >= 0) this.within(event.tid, event.startNs, event.endNs, event)
        return
      case 'token':
        this.lifetimes.token(event)
        return this.call(event)
      case 'tensor':
        this.tensors[event.id] = event
        return this.places.add(event, this.lastNs)
      case 'buffer':
        this.buffers.set(event.id, event)
    }
  }

  /** Marks the samples of a thread in an operator or a transfer. Those of a thread usually come in order. */
  private within(tid: number, startNs: number, endNs: number, event: OperatorEvent | CopyEvent): void {
    const thread = this.threads.get(tid)
    if (!thread) return
    const { times } = this
    const { at } = thread
    if (startNs < thread.lastStartNs) thread.next = firstIndex(0, at.length, (i) => times[at[i]!]! >= startNs)
    thread.lastStartNs = startNs
    while (thread.next < at.length && times[at[thread.next]!]! < startNs) thread.next++
    for (let i = thread.next; i < at.length && times[at[i]!]! <= endNs; i++) {
      const n = at[i]!
      this.firsts[n] = event.tensor
      this.lasts[n] = event.kind === 'operator' ? (event.fusedTo ?? event.tensor) : event.tensor
      if (event.kind === 'operator') this.workers[n] = event.worker
    }
  }

  private call({ phase, startNs, endNs }: TokenEvent): void {
    const { times, phases } = this
    const from = firstIndex(0, times.length, (n) => times[n]! >= startNs)
    // What comes after a call is between calls, until the next one is known.
    const to = firstIndex(from, times.length, (n) => times[n]! > endNs)
    phases.fill(PHASE.get(phase)!, from, to)
    for (let n = to; n < phases.length && phases[n] === 0; n++) phases[n] = PHASE.get('between calls')!
  }

  /** Finds the tensors that live in compute buffers when a sample hits them, in a graph run. */
  private run(run: GraphRun, plan: Plan, hasNext: boolean): void {
    const { times, lifetimes, store } = this
    const endNs = run.endNs[run.count - 1]!
    const from = firstIndex(0, times.length, (n) => times[n]! >= run.startNs[0]!)
    if (from === times.length || times[from]! > endNs || plan.lives.length === 0) return
    lifetimes.run(run, plan, hasNext, true)
    for (let n = from; n < times.length && times[n]! <= endNs; n++) {
      const [address, atNs] = [store.addressOf(this.own[n]!), times[n]!]
      if (this.places.bufferAt(address, atNs) < 0) continue
      for (const { tensor, bytes, index } of plan.lives) {
        const start = this.tensors[tensor]!.address
        if (address < start || address >= start + bytes || start <= 0) continue
        if (atNs >= lifetimes.begins[index]! && atNs <= lifetimes.ends[index]!) this.lives[n] = tensor
      }
    }
  }

  finish(): JoinedAccesses {
    this.runs.finish()
    const { names, tensors, buffers, own, store, places } = this
    return {
      ...{ names, tensors, buffers, count: own.length, notHeld: store.leftOut },
      otherProcesses: store.count - own.length,
      hasAddresses: places.areKnown,
      hits: () => this.hits(),
    }
  }

  private *hits(): Generator<AccessHit> {
    const { store, own, workers, phases } = this
    const mappings = new DefaultMap<number, MappingsOf>(() => new MappingsOf())
    let mapped = 0
    for (let n = 0; n < own.length; n++) {
      const sample = store.sample(own[n]!)
      for (; mapped < store.mappings.length && store.mappings[mapped]!.atNs <= sample.atNs; mapped++) {
        const mapping = store.mappings[mapped]!
        mappings.of(mapping.pid).add(mapping)
      }
      const found = this.tensorOf(n, sample, mappings.get(sample.pid))
      const phase = ACCESS_PHASES[phases[n]!]!
      yield { sample, atNs: this.times[n]!, ...found, worker: workers[n]!, phase }
    }
  }

  private tensorOf(
    n: number,
    { address, what }: AccessSample,
    mappings: MappingsOf | undefined,
  ): Pick<AccessHit, 'tensor' | 'place'> {
    if (address < 0) return { tensor: -1, place: 'kernel, or no address' }
    const { places, names } = this
    const atNs = this.times[n]!
    const at = (tensor: number) => ({ tensor, place: '' })
    const ofOperator = this.ofOperator(n, address, what === 'load')
    if (ofOperator >= 0) return at(ofOperator)
    const alone = places.tensorAt(address, atNs)
    if (alone >= 0) return at(alone)
    const mapping = mappings?.at(address)
    const path = mapping ? names.text(mapping.name) : ''
    if (mapping) {
      const fileOffset = address - mapping.address + mapping.fileOffset
      const tensor = places.weightIn(path, fileOffset, atNs)
      if (tensor >= 0) return at(tensor)
    }
    if (this.lives[n]! >= 0) return at(this.lives[n]!)
    const buffer = this.buffers.get(places.bufferAt(address, atNs))
    if (buffer) {
      const name = [buffer.usage, 'buffer', names.text(buffer.name ?? 0)].filter(Boolean).join(' ')
      return { tensor: -1, place: `${name}: no known tensor` }
    }
    return { tensor: -1, place: mapping ? path || 'memory without a name' : 'no known mapping' }
  }

  /** The tensor at an address that the thread's operator or transfer reads or writes; -1: none. Loads read, other accesses write. */
  private ofOperator(n: number, address: number, reads: boolean): number {
    const first = this.firsts[n]!
    const { tensors, views } = this
    if (!tensors[first]) return -1
    const nodes = first === this.lasts[n] ? [first] : nodesOf(tensors, first, this.lasts[n]!)
    const sources = readsOf(tensors, nodes)
    for (const id of reads ? [...sources, ...nodes] : [...nodes, ...sources]) {
      const root = tensors[views.root(id)]!
      if (root.address > 0 && address >= root.address && address < root.address + root.sizeBytes) return root.id
    }
    return -1
  }
}
