import type { JoinedAccesses } from '../../analyze/graph/accesses/join.ts'
import type { AllocationEvent, BufferEvent, OperatorEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { MemoryRows } from '../options.ts'
import { AccessRows } from './accesses.ts'
import { Allocations } from './allocations.ts'
import { Buffers } from './buffers.ts'
import { Faults } from './faults.ts'
import { KvCache } from './kv-cache.ts'
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
    this.reads.place(event)
    this.faults.place(event)
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
    this.allocations.finish()
  }
}
