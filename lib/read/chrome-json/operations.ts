import { DefaultMap } from '../../model/default-map.ts'
import type { Names } from '../../model/names.ts'
import { FreeNumbers } from '../common/free-numbers.ts'
import { type Edge, EdgeQueue, type EdgeTaker, OpenRanges } from './pairs.ts'
import type { Rows } from './rows.ts'

/** Maximum number of held edges: those of one operation may be far apart in a file that is sorted by process. */
const HELD_MAX = 1 << 18
/** Maximum number of open operations. */
const OPEN_MAX = 1 << 12

interface Operation {
  readonly lanes: FreeNumbers
  readonly lane: number
  readonly row: number
  readonly ranges: OpenRanges
}

/**
 * Asynchronous operations. Ranges of one id nest on a separate row until all of them have ended; so there are as many rows
 * as open operations.
 */
export class Operations {
  private readonly queue: EdgeQueue
  private readonly open = new Map<number, Operation>()
  /** Lanes in use, by group of rows. */
  private readonly lanes = new DefaultMap<string, FreeNumbers>(() => new FreeNumbers(0))

  constructor(
    private readonly names: Names,
    private readonly rows: Rows,
    private readonly taker: EdgeTaker,
  ) {
    this.queue = new EdgeQueue(taker)
  }

  add(edge: Edge): void {
    this.queue.push(edge)
    if (this.queue.length > HELD_MAX) this.pair(this.queue.middleNs())
  }

  /** Pairs the edges up to a time. */
  pair(untilNs: number): void {
    for (const edge of this.queue.take(untilNs)) {
      if (edge.what === 'begin') this.begin(edge)
      else if (edge.what === 'end') this.end(edge)
      else this.taker.mark(this.open.get(edge.id)?.row ?? this.rowOf(edge, 0), edge)
    }
  }

  /** Removes and yields the open begins, with their rows. */
  *rest(): Generator<readonly [number, Edge]> {
    for (const { row, ranges } of this.open.values()) for (const begin of ranges.rest()) yield [row, begin]
  }

  private begin(edge: Edge): void {
    let operation = this.open.get(edge.id)
    if (!operation && this.open.size < OPEN_MAX) {
      const lanes = this.lanes.of(`${edge.pid} ${this.titleOf(edge)}`)
      const lane = lanes.take()
      operation = { lanes, lane, row: this.rowOf(edge, lane), ranges: new OpenRanges() }
      this.open.set(edge.id, operation)
    }
    if (operation?.ranges.begin(edge)) return
    this.taker.issue('too-many-open', `${this.nameOf(edge)} is left out`, edge)
  }

  private end(edge: Edge): void {
    const operation = this.open.get(edge.id)
    const begin = operation?.ranges.end(edge)
    if (!operation || !begin) {
      return this.taker.issue('end-without-start', `${this.nameOf(edge)} ends and never began`, edge)
    }
    if (operation.ranges.isEmpty) {
      this.open.delete(edge.id)
      operation.lanes.release(operation.lane)
    }
    this.taker.range(operation.row, begin, edge.atNs, edge.args)
  }

  private rowOf(edge: Edge, lane: number): number {
    return this.rows.other(edge.pid, this.titleOf(edge), 'slices', lane)
  }

  private titleOf({ category, name }: Edge): string {
    return this.names.text(category ?? name)
  }

  private nameOf(edge: Edge): string {
    return `${this.titleOf(edge)}: ${this.names.text(edge.name)}`
  }
}
