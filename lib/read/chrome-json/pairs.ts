import { growColumns } from '../../bytes/resized.ts'
import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { IssueCode } from '../../model/issues.ts'
import { Order } from '../common/spans.ts'
import type { ArrowEnd } from './arrows.ts'

/** Maximum number of open ranges of one row or asynchronous operation: ranges without an end must not fill the memory. */
const OPEN_MAX = 1 << 12

/** A begin, an end, or a mark between them. The format allows them in any order: they pair in order of time. */
export interface Edge {
  readonly what: 'begin' | 'end' | 'mark'
  readonly atNs: number
  /** Offset in the file, the order of edges of the same time. */
  readonly byte: number
  readonly name: number
  /** The event has a name: an end with a name ends a range of that name only. */
  readonly isNamed: boolean
  readonly category: number | undefined
  readonly args: readonly Arg[] | undefined
  /** Ends of arrows in the fields of the event. */
  readonly arrows: readonly ArrowEnd[] | undefined
  /** Of an asynchronous operation: its unique key, and the process. */
  readonly id: number
  readonly pid: number
}

/** Gets ranges, marks and issues. */
export interface EdgeTaker {
  range(track: number, begin: Edge, endNs: number, endArgs: Edge['args']): void
  mark(track: number, mark: Edge): void
  issue(code: IssueCode, detail: string, edge: Edge): void
  /** The edge is earlier than edges that are paired already. */
  late(edge: Edge): void
}

const COLUMNS = ['times', 'bytes', 'ids', 'names', 'categories', 'pids', 'flags'] as const
const LENGTH_MIN = 64
const NO_CATEGORY = 0xffffffff
const KINDS: readonly Edge['what'][] = ['begin', 'end', 'mark']
/** A flag; the lower bits are the kind. */
const NAMED = 4

/**
 * Edges in the order of the file, to be removed in order of time. They are many, and therefore kept as numbers, which are no
 * work for the garbage collector.
 */
export class EdgeQueue {
  length = 0
  times = new Float64Array(LENGTH_MIN)
  bytes = new Float64Array(LENGTH_MIN)
  ids = new Float64Array(LENGTH_MIN)
  names = new Uint32Array(LENGTH_MIN)
  categories = new Uint32Array(LENGTH_MIN)
  pids = new Uint32Array(LENGTH_MIN)
  flags = new Uint8Array(LENGTH_MIN)
  private extras: (Pick<Edge, 'args' | 'arrows'> | undefined)[] = []
  private isInOrder = true
  private takenNs = -Infinity

  constructor(private readonly taker: EdgeTaker) {}

  push(edge: Edge): void {
    const { atNs, args, arrows } = edge
    if (atNs < this.takenNs) this.taker.late(edge)
    const at = this.length++
    if (at === this.times.length) growColumns(this, COLUMNS, 2 * at)
    if (at > 0 && this.times[at - 1]! > atNs) this.isInOrder = false
    this.times[at] = atNs
    this.bytes[at] = edge.byte
    this.ids[at] = edge.id
    this.names[at] = edge.name
    this.categories[at] = edge.category ?? NO_CATEGORY
    this.pids[at] = edge.pid
    this.flags[at] = KINDS.indexOf(edge.what) | (edge.isNamed ? NAMED : 0)
    this.extras[at] = args || arrows ? { args, arrows } : undefined
  }

  /** Median time; the queue must not be empty. */
  middleNs(): number {
    this.sort()
    return this.times[this.length >> 1]!
  }

  /** Removes and yields the edges up to a time. No {@link push} meanwhile. */
  *take(untilNs: number): Generator<Edge> {
    this.sort()
    let count = 0
    for (; count < this.length && this.times[count]! <= untilNs; count++) yield this.at(count)
    if (count === 0) return
    this.takenNs = this.times[count - 1]!
    for (const key of COLUMNS) this[key].copyWithin(0, count, this.length)
    this.extras.splice(0, count)
    this.length -= count
    if (this.length < this.times.length / 4) growColumns(this, COLUMNS, Math.max(LENGTH_MIN, 2 * this.length))
  }

  private at(at: number): Edge {
    const flags = this.flags[at]!
    const category = this.categories[at]!
    const extra = this.extras[at]
    return {
      what: KINDS[flags & (NAMED - 1)]!,
      atNs: this.times[at]!,
      byte: this.bytes[at]!,
      name: this.names[at]!,
      isNamed: (flags & NAMED) !== 0,
      category: category === NO_CATEGORY ? undefined : category,
      args: extra?.args,
      arrows: extra?.arrows,
      id: this.ids[at]!,
      pid: this.pids[at]!,
    }
  }

  private sort(): void {
    if (this.isInOrder) return
    this.isInOrder = true
    const { times, bytes, extras, length } = this
    const order = new Order(length, (a, b) => times[a]! - times[b]! || bytes[a]! - bytes[b]!)
    for (const column of COLUMNS.map((key) => this[key])) {
      const from = column.slice(0, length)
      for (let i = 0; i < length; i++) column[i] = from[order.at(i)]!
    }
    this.extras = extras.map((_, i) => extras[order.at(i)])
  }
}

/** A begin without its end so far. */
interface Open {
  readonly edge: Edge
  hasEnded: boolean
}

/** Name of edges without a name. */
const UNNAMED = -1

/** Begins without their ends so far, the innermost last. */
export class OpenRanges {
  private begins: Open[] = []
  /** The same by their names. */
  private readonly byName = new DefaultMap<number, Open[]>(() => [])
  private count = 0

  get isEmpty(): boolean {
    return this.count === 0
  }

  /** Start of the first open range; Infinity if there is none. */
  get firstNs(): number {
    return this.begins.find(({ hasEnded }) => !hasEnded)?.edge.atNs ?? Infinity
  }

  /** False if too many are open. */
  begin(edge: Edge): boolean {
    if (this.count >= OPEN_MAX) return false
    const open = { edge, hasEnded: false }
    this.byName.of(edge.isNamed ? edge.name : UNNAMED).push(open)
    this.begins.push(open)
    this.count++
    return true
  }

  /**
   * Removes the range that ends: the innermost one; if the end has a name, the innermost one of that name, else without a
   * name. Undefined if there is none.
   */
  end({ name, isNamed }: Edge): Edge | undefined {
    if (!isNamed) return this.remove(this.begins.at(-1))
    return this.remove(this.byName.get(name)?.at(-1) ?? this.byName.get(UNNAMED)?.at(-1))
  }

  /** Removes and yields all open ranges, the innermost first. */
  *rest(): Generator<Edge> {
    for (let begin = this.remove(this.begins.at(-1)); begin; begin = this.remove(this.begins.at(-1))) yield begin
  }

  /** Removes a range, which must be the last one of its name. */
  private remove(open: Open | undefined): Edge | undefined {
    if (!open) return undefined
    const { edge } = open
    const name = edge.isNamed ? edge.name : UNNAMED
    const named = this.byName.get(name)!
    if (named.length > 1) named.pop()
    else this.byName.delete(name)
    open.hasEnded = true
    this.count--
    while (this.begins.at(-1)?.hasEnded) this.begins.pop()
    if (this.begins.length > 2 * OPEN_MAX) this.begins = this.begins.filter(({ hasEnded }) => !hasEnded)
    return edge
  }
}
