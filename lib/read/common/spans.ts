import { NumberList } from '../../bytes/number-list.ts'
import { orderOf } from '../../bytes/order.ts'
import { resized } from '../../bytes/resized.ts'
import type { TraceEvent } from '../../model/events.ts'

/** Events of a batch, approximately. */
const BATCH = 4096
const BLOCK_BITS = 16
const BLOCK = 1 << BLOCK_BITS
const IN_BLOCK = BLOCK - 1
/** Durations from here on are in a separate map. */
const LONG = 0xffffffff

/**
 * Spans of time with two small numbers each, to be sorted: 20 bytes each (16 where the second is 0), and 4 more if they
 * were not added in order. Ids count from 0, in the order of {@link push}.
 */
export class Spans {
  private readonly starts = new NumberList(Float64Array)
  private readonly durations = new NumberList(Uint32Array)
  private readonly long = new Map<number, number>()
  private readonly first = new NumberList(Uint32Array)
  private readonly second = new SparseNumbers()
  private sorted: Order | undefined

  get length(): number {
    return this.starts.length
  }

  /** Adds one; `a` and `b` are integers of up to 32 bits. */
  push(startNs: number, endNs: number, a: number, b: number): void {
    const durationNs = endNs - startNs
    if (durationNs >= LONG) this.long.set(this.length, durationNs)
    if (b !== 0) this.second.set(this.length, b)
    this.sorted = undefined
    this.starts.push(startNs)
    this.durations.push(Math.min(durationNs, LONG))
    this.first.push(a)
  }

  start(id: number): number {
    return this.starts.at(id)
  }

  end(id: number): number {
    const durationNs = this.durations.at(id)
    return this.starts.at(id) + (durationNs === LONG ? this.long.get(id)! : durationNs)
  }

  a(id: number): number {
    return this.first.at(id)
  }

  b(id: number): number {
    return this.second.at(id)
  }

  /** Ids by start, the longer first at the same start, else by id. */
  order(): Order {
    this.sorted ??= new Order(this.length, (x, y) => this.start(x) - this.start(y) || this.end(y) - this.end(x))
    return this.sorted
  }
}

/** Numbers of 32 bits for some ids: memory is allocated by blocks of ids. */
export class SparseNumbers {
  private readonly blocks: (Uint32Array | undefined)[] = []

  set(id: number, value: number): void {
    const block = id >>> BLOCK_BITS
    const at = id & IN_BLOCK
    const found = this.blocks[block]
    if (!found || at >= found.length)
      this.blocks[block] = resized(found ?? new Uint32Array(0), Math.min(BLOCK, Math.max(64, 4 * at)))
    this.blocks[block]![at] = value
  }

  /** 0 where none was set. */
  at(id: number): number {
    return this.blocks[id >>> BLOCK_BITS]?.[id & IN_BLOCK] ?? 0
  }
}

/** Ids from 0 in some order. Takes 4 bytes an id, and none where they are in order already. */
export class Order {
  private readonly ids: Uint32Array | undefined

  constructor(
    readonly length: number,
    compare: (a: number, b: number) => number,
  ) {
    this.ids = orderOf(length, compare)
  }

  /** The id at a place. */
  at(place: number): number {
    return this.ids ? this.ids[place]! : place
  }

  /** Calls `take` for each id in order, which adds the events of that id; yields them in batches. */
  *inBatches(take: (id: number, batch: TraceEvent[]) => void): Generator<TraceEvent[], void> {
    let batch: TraceEvent[] = []
    for (let place = 0; place < this.length; place++) {
      take(this.at(place), batch)
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
    yield batch
  }
}
