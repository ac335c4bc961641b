import type { JoinedAccesses } from '../../analyze/graph/accesses/join.ts'
import { bytesOfCells, type CacheOf, KvCaches } from '../../analyze/graph/kv-cache.ts'
import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { AllocationEvent, BufferEvent, OperatorEvent, TensorEvent, TokenEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import { countArgs } from '../labels.ts'
import type { MemoryRows } from '../options.ts'
import { AccessRows } from './accesses.ts'
import { Allocations } from './allocations.ts'
import { Buffers } from './buffers.ts'
import { Lives } from './lives.ts'
import { Reads } from './reads.ts'

/** Draws reads of operators, contents of buffers, and reads from disks. */
export class MemoryArea {
  readonly buffers: Buffers
  readonly lifetimes: Lives
  readonly cache: KvCache
  readonly allocations: Allocations
  private readonly reads: Reads
  private readonly faults: Faults

  constructor(
    private readonly context: TrackContext,
    rows: MemoryRows = 'counters',
  ) {
    this.buffers = new Buffers(context.names)
    this.lifetimes = new Lives(context, this.buffers, rows === 'lifetimes')
    this.cache = new KvCache(context)
    this.reads = new Reads(context, this.buffers)
    this.faults = new Faults(context)
    this.allocations = new Allocations(context)
  }

  operator(event: OperatorEvent): void {
    if (event.worker === 0) this.reads.place(event)
    if (event.counts) this.faults.place(event, event.counts)
  }

  take(event: BufferEvent | AllocationEvent): void {
    switch (event.kind) {
      case 'buffer':
        this.buffers.define(event)
        return this.faults.define(event)
      case 'allocation':
        return this.allocations.add(event)
    }
  }

  /** Draws samples of data addresses; `timeOf`: a time of the log in the trace's. */
  accesses(joined: JoinedAccesses, timeOf: (ns: number) => number): void {
    new AccessRows(this.context, joined, timeOf).draw()
  }

  finish(): void {
    this.reads.finish()
    this.lifetimes.finish()
    this.allocations.finish()
  }
}

/** The Faults and I/O group: operators that waited for a disk, named by the weights that they read. */
class Faults {
  private readonly workers = new DefaultMap((worker: number) => this.context.tracks.lanes('workerFaults', { worker }))
  private readonly weights = new Set<number>()

  constructor(private readonly context: TrackContext) {}

  define({ id, usage }: BufferEvent): void {
    if (usage === 'weights') this.weights.add(id)
  }

  /** Draws an operator, if it had major faults or read from a disk. */
  place(event: OperatorEvent, counts: readonly number[]): void {
    const { worker, startNs, endNs } = event
    const { make, tensors, counters } = this.context
    const count = (name: string) => counters.value(name, counts) ?? 0
    if (count('major-faults') === 0 && count('bytes-read') === 0) return
    const sources = tensors[event.tensor]!.sources.map((id) => tensors[id]!)
    const weights = sources.filter(({ buffer }) => this.weights.has(buffer))
    const name = weights.map((tensor) => make.names.text(tensor.name)).join(' ') || 'no weights'
    const extra = make.shown(this.args(event, weights))
    this.workers.of(worker).place(startNs, endNs, { name: make.names.id(name), category: 'fault', extra })
  }

  private args({ tensor, call, counts = [] }: OperatorEvent, weights: readonly TensorEvent[]): Arg[] {
    const { make, tensors, counters: set } = this.context
    const { name, op } = tensors[tensor]!
    const args = [make.name('operator', name), make.name('op', op)]
    if (call >= 0) args.push(make.int('call', call))
    const [first] = weights
    if (first && first.sizeBytes >= 0) args.push(make.int('weight_bytes', first.sizeBytes))
    if (first?.offset !== undefined) args.push(make.int('weight_offset', first.offset))
    return [...args, ...countArgs(make, set, counts)]
  }
}

/** Tracks of a cache; 0: not there yet. */
interface Shown {
  cells: number
  bytes: number
}

/** Draws the growth of KV caches, call by call. */
class KvCache {
  private readonly caches: KvCaches
  /** By number of the context. */
  private readonly shown = new DefaultMap<number, Shown>(() => ({ cells: 0, bytes: 0 }))

  constructor(private readonly context: TrackContext) {
    this.caches = new KvCaches(context, (cache, { endNs }) => this.draw(cache, endNs))
  }

  call(event: TokenEvent): void {
    this.caches.call(event)
  }

  run({ call }: GraphRun, plan: Plan): void {
    this.caches.run(call, plan)
  }

  finish(): void {
    this.caches.finish()
  }

  private draw(cache: CacheOf, endNs: number): void {
    const { tracks, writer } = this.context
    const { number, cells } = cache
    const shown = this.shown.of(number)
    if (shown.cells === 0) shown.cells = tracks.add('kvCells', cache, number)
    writer.counter(shown.cells, endNs, cells)
    if (cache.tensors.length === 0) return
    if (shown.bytes === 0) shown.bytes = tracks.add('kvBytes', cache, number)
    writer.counter(shown.bytes, endNs, bytesOfCells(cache, cells))
  }
}
