import type { Arg } from '../../model/args.ts'
import type { ArrowEnd } from './arrows.ts'

/** Ranges of one row, or of one asynchronous operation, that are open at the same time: what never ends must not fill the memory. */
const OPEN_MAX = 1 << 12

/** A begin, an end, or a mark between them. The format allows them in any order: they pair in order of time. */
export interface Edge {
  readonly what: 'begin' | 'end' | 'mark'
  readonly atNs: number
  /** Offset in the file, which decides between edges of one time. */
  readonly byte: number
  readonly name: number
  /** The event has a name: an end with a name ends a range of that name only. */
  readonly isNamed: boolean
  readonly category: number | undefined
  readonly args: readonly Arg[] | undefined
  /** Ends of arrows that the event itself has. */
  readonly arrows: readonly ArrowEnd[] | undefined
}

/** What pairs become, and what is wrong with them. */
export interface EdgeTaker {
  range(track: number, begin: Edge, endNs: number, endArgs: Edge['args']): void
  mark(track: number, mark: Edge): void
  issue(title: string, detail: string, edge: Edge): void
  /** The edge is earlier than edges that were paired before it was read. */
  late(edge: Edge): void
}

/** Edges as the file has them, to be taken out in order of time. */
export class EdgeQueue<T extends Edge> {
  private edges: T[] = []
  private isInOrder = true
  private takenNs = -Infinity

  constructor(private readonly taker: EdgeTaker) {}

  get length(): number {
    return this.edges.length
  }

  push(edge: T): void {
    if (edge.atNs < this.takenNs) this.taker.late(edge)
    const last = this.edges.at(-1)
    if (last && last.atNs > edge.atNs) this.isInOrder = false
    this.edges.push(edge)
  }

  /** Time of the edge in the middle: there must be one. */
  middleNs(): number {
    return this.sorted()[this.edges.length >> 1]!.atNs
  }

  /** Takes out what is not later than a time. */
  take(untilNs: number): readonly T[] {
    const edges = this.sorted()
    const count = countUntil(edges, untilNs, ({ atNs }) => atNs)
    if (count === 0) return []
    this.takenNs = edges[count - 1]!.atNs
    this.edges = edges.slice(count)
    return count === edges.length ? edges : edges.slice(0, count)
  }

  private sorted(): T[] {
    if (!this.isInOrder) this.edges.sort((a, b) => a.atNs - b.atNs || a.byte - b.byte)
    this.isInOrder = true
    return this.edges
  }
}

/** A begin whose end has not come. */
interface Open {
  readonly edge: Edge
  hasEnded: boolean
}

/** Name of those that have none. */
const UNNAMED = -1

/** Begins whose ends have not come, the innermost last. */
export class OpenRanges {
  private begins: Open[] = []
  /** The same by their names. */
  private readonly byName = new Map<number, Open[]>()
  private count = 0

  get isEmpty(): boolean {
    return this.count === 0
  }

  /** When the first one began; Infinity where nothing is open. */
  get firstNs(): number {
    return this.begins.find(({ hasEnded }) => !hasEnded)?.edge.atNs ?? Infinity
  }

  /** False where too many are open. */
  begin(edge: Edge): boolean {
    if (this.count >= OPEN_MAX) return false
    const open = { edge, hasEnded: false }
    const name = edge.isNamed ? edge.name : UNNAMED
    const named = this.byName.get(name)
    if (named) named.push(open)
    else this.byName.set(name, [open])
    this.begins.push(open)
    this.count++
    return true
  }

  /**
   * What ends: the innermost range; by an end with a name the innermost one of that name, or else without a name.
   * Undefined where there is none.
   */
  end({ name, isNamed }: Edge): Edge | undefined {
    if (!isNamed) return this.remove(this.begins.at(-1))
    return this.remove(this.byName.get(name)?.at(-1) ?? this.byName.get(UNNAMED)?.at(-1))
  }

  /** Takes out what is still open, the innermost first. */
  *rest(): Generator<Edge> {
    for (let begin = this.remove(this.begins.at(-1)); begin; begin = this.remove(this.begins.at(-1))) yield begin
  }

  /** Removes a range, which is the last one of its name. */
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

/** How many of a list in order of time are not later than a time. */
export function countUntil<T>(list: readonly T[], untilNs: number, timeOf: (item: T) => number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeOf(list[middle]!) <= untilNs) low = middle + 1
    else high = middle
  }
  return low
}
