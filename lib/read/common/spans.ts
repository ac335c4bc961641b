import type { TraceEvent } from '../../model/events.ts'

/** Events of a batch, approximately. */
const BATCH = 4096
const BLOCK_BITS = 16
const BLOCK = 1 << BLOCK_BITS
const IN_BLOCK = BLOCK - 1
/** Durations from here on are in a separate map. */
const LONG = 0xffffffff

type TypedArray = Float64Array | Uint32Array

/** A list of numbers that grows by blocks: it copies nothing, and reserves at most one block. */
export class NumberList<T extends TypedArray> {
  length = 0
  private readonly blocks: T[] = []

  constructor(private readonly make: new (length: number) => T) {}

  push(value: number): void {
    const at = this.length++ & IN_BLOCK
    if (at === 0) this.blocks.push(new this.make(BLOCK))
    this.blocks[this.blocks.length - 1]![at] = value
  }

  at(index: number): number {
    return this.blocks[index >>> BLOCK_BITS]![index & IN_BLOCK]!
  }
}

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
    this.blocks[block] ??= new Uint32Array(BLOCK)
    this.blocks[block][id & IN_BLOCK] = value
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
    const runs = runsOf(length, compare)
    if (runs.length > 2) this.ids = merged(length, runs, compare)
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

/** The ids at which runs in order begin, and the end. */
function runsOf(length: number, compare: (a: number, b: number) => number): number[] {
  const runs = [0]
  for (let id = 1; id < length; id++) if (compare(id - 1, id) > 0) runs.push(id)
  runs.push(length)
  return runs
}

/** Stable merge sort of runs: neighbouring runs become one until one is left. */
function merged(length: number, runs: number[], compare: (a: number, b: number) => number): Uint32Array {
  let from = Uint32Array.from({ length }, (_, id) => id)
  let to = new Uint32Array(length)
  while (runs.length > 2) {
    const next = [0]
    for (let run = 0; run + 1 < runs.length; run += 2) {
      const [start, middle, end] = [runs[run]!, runs[run + 1]!, runs[run + 2] ?? runs[run + 1]!]
      let [left, right] = [start, middle]
      for (let place = start; place < end; place++) {
        const takeLeft = left < middle && (right >= end || compare(from[left]!, from[right]!) <= 0)
        to[place] = from[takeLeft ? left++ : right++]!
      }
      next.push(end)
    }
    runs = next
    ;[from, to] = [to, from]
  }
  return from
}
