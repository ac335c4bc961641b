import { firstIndex } from '../../bytes/search.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { OwnSliceEvent } from '../../model/own-events.ts'
import type { ArrowEnd, ArrowSlice, Runs } from './arrows.ts'
import { type Edge, EdgeQueue, type EdgeTaker, OpenRanges } from './pairs.ts'

/** Events without a category have none in the trace, either. */
export const NO_CATEGORY = 0
/** Maximum number of held slices, begins, ends and arrows of all rows; and of slices of a row whose thread is in order. */
const HELD_MAX = 1 << 16
const HELD_IN_ORDER_MAX = 1 << 10

/** A slice that waits for earlier or outer ones. */
export interface HeldSlice extends OwnSliceEvent {
  /** Of two slices with the same times, the one with the lower number is the outer one. */
  readonly order: number
  /** Ends of arrows in the fields of the event. */
  readonly arrows: readonly ArrowEnd[] | undefined
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** A slice that is drawn by another class, and may have arrows. */
export interface OtherSlice {
  readonly startNs: number
  addArrow(arrow: ArrowEnd): void
}

/** Questions and results of {@link Nesting}. */
export interface NestingTaker extends EdgeTaker {
  /** Gets slices of one row, in order. */
  pass(slices: readonly HeldSlice[]): void
  /** The thread of a row; undefined for rows without a thread. `hasArrows`: arrows may begin and end on it. */
  placeOf(track: number): { thread: number | undefined; hasArrows: boolean }
  /** The slice of another class around a time of a thread. */
  otherAt(thread: number, atNs: number): OtherSlice | undefined
  /** The end of an arrow has no slice. */
  loose(thread: number, arrow: ArrowEnd): void
}

/** Slices of one row, and begins and ends that become slices. */
class HeldRow {
  slices: HeldSlice[] = []
  edges: EdgeQueue | undefined
  readonly open = new OpenRanges()
  private isInOrder = true

  constructor(
    readonly track: number,
    readonly thread: HeldThread,
    readonly hasArrows: boolean,
  ) {}

  get size(): number {
    return this.slices.length + (this.edges?.length ?? 0)
  }

  add(slice: HeldSlice): void {
    const last = this.slices.at(-1)
    if (last && compare(last, slice) > 0) {
      this.isInOrder = false
      this.thread.isInOrder = false
    }
    this.slices.push(slice)
  }

  sorted(): HeldSlice[] {
    if (!this.isInOrder) this.slices.sort(compare)
    this.isInOrder = true
    return this.slices
  }

  /** Median time of the held slices or edges. */
  middleNs(): number {
    const edges = this.edges?.length ?? 0
    if (edges > this.slices.length) return this.edges!.middleNs()
    return this.sorted()[this.slices.length >> 1]?.startNs ?? Infinity
  }

  /** Removes and returns the slices that begin up to a time, in order. */
  take(untilNs: number): HeldSlice[] {
    const slices = this.sorted()
    const count = countUntil(slices, untilNs)
    if (count === 0) return []
    this.slices = slices.slice(count)
    return count === slices.length ? slices : slices.slice(0, count)
  }
}

/** The rows of one thread, on which its arrows find their slices. */
class HeldThread {
  readonly rows: HeldRow[] = []
  arrows: ArrowEnd[] = []
  /** Only complete slices were added, in order. */
  isInOrder = true

  constructor(readonly id: number) {}

  get size(): number {
    let size = this.arrows.length
    for (const row of this.rows) size += row.size
    return size
  }
}

/**
 * Sorts the slices of each row, outer before inner, pairs begins and ends in order of time, and assigns arrows to slices:
 * tracers write them when they begin, when they end, or thread by thread. A limited number is held; beyond it, the earlier
 * half of each thread is passed on. A slice that comes later than that is passed on out of order.
 */
export class Nesting {
  private readonly rows = new DefaultMap<number, HeldRow>((track) => this.newRow(track))
  private readonly threads = new DefaultMap<number, HeldThread>((id) => new HeldThread(id))
  private held = 0

  constructor(
    private readonly taker: NestingTaker,
    private readonly runs: Runs,
  ) {}

  add(slice: HeldSlice): void {
    const row = this.rows.of(slice.track)
    row.add(slice)
    this.held++
    if (row.slices.length > HELD_IN_ORDER_MAX && row.thread.isInOrder) this.release(row.thread, row.middleNs())
    else if (this.held > HELD_MAX) this.releaseHalf()
  }

  /** Adds a begin or an end on a row. */
  edge(track: number, edge: Edge): void {
    const row = this.rows.of(track)
    row.edges ??= new EdgeQueue(this.taker)
    row.edges.push(edge)
    row.thread.isInOrder = false
    if (++this.held > HELD_MAX) this.releaseHalf()
  }

  /** Adds the end of an arrow on a thread. */
  arrow(thread: number, arrow: ArrowEnd): void {
    this.threads.of(thread).arrows.push(arrow)
    if (++this.held > HELD_MAX) this.releaseHalf()
  }

  /** Pairs all begins and ends; yields the open begins, with their rows. */
  *pairAll(): Generator<readonly [number, Edge]> {
    for (const row of this.rows.values()) {
      this.held -= row.size
      this.pair(row, Infinity)
      this.held += row.size
      for (const begin of row.open.rest()) yield [row.track, begin]
    }
  }

  finish(): void {
    for (const thread of this.threads.values()) this.release(thread, Infinity)
  }

  private releaseHalf(): void {
    for (const thread of this.threads.values()) this.release(thread, this.horizonOf(thread))
    // The rest may be arrows long after all slices.
    if (this.held > HELD_MAX * 0.9) this.finish()
  }

  /** The time up to which about half of the slices of a thread are passed on. */
  private horizonOf(thread: HeldThread): number {
    let fullest = thread.rows[0]
    for (const row of thread.rows) if (row.size > fullest!.size) fullest = row
    if (!fullest || fullest.size === 0) return Infinity
    const middleNs = fullest.middleNs()
    // Outer slices come before inner ones: slices inside an open range wait, unless these are nearly all.
    let beforeNs = Infinity
    this.held -= thread.size
    for (const row of thread.rows) {
      this.pair(row, middleNs)
      beforeNs = Math.min(beforeNs, row.open.firstNs - 1)
    }
    this.held += thread.size
    const isEnough = countUntil(fullest.sorted(), beforeNs) * 4 >= fullest.slices.length
    return beforeNs < middleNs && isEnough ? beforeNs : middleNs
  }

  private release(thread: HeldThread, untilNs: number): void {
    this.held -= thread.size
    for (const row of thread.rows) this.pair(row, untilNs)
    const taken = thread.rows.map((row) => row.take(untilNs))
    if (thread.arrows.length > 0) this.join(thread, taken, untilNs)
    for (const slices of taken) {
      if (slices.length === 0) continue
      for (const slice of slices) if (slice.arrows) for (const arrow of slice.arrows) this.runs.place(slice, arrow)
      this.taker.pass(slices)
    }
    this.held += thread.size
  }

  private pair(row: HeldRow, untilNs: number): void {
    if (!row.edges) return
    const { taker } = this
    for (const edge of row.edges.take(untilNs)) {
      if (edge.what === 'begin') {
        if (!row.open.begin(edge)) taker.issue('too-many-open', 'one is left out', edge)
        continue
      }
      const begin = row.open.end(edge)
      if (begin) row.add(sliceOf(row.track, begin, edge.atNs, edge.args))
      else taker.issue('end-without-start', 'a slice ends that never began', edge)
    }
  }

  /** Assigns the arrows of a thread up to a time to the removed slices. */
  private join(thread: HeldThread, taken: readonly HeldSlice[][], untilNs: number): void {
    const due = thread.arrows.filter(({ atNs }) => atNs <= untilNs).sort((a, b) => a.atNs - b.atNs || a.byte - b.byte)
    thread.arrows = thread.arrows.filter(({ atNs }) => atNs > untilNs)
    const cursors = thread.rows.flatMap(({ track, hasArrows, slices }, i) =>
      hasArrows ? [new Cursor(track, taken[i]!, slices[0])] : [],
    )
    for (const arrow of due) {
      const around = this.aroundOf(thread, cursors, arrow)
      if (around && (arrow.isAround || around.startNs === arrow.atNs)) around.addArrow(arrow)
      else if (arrow.isAround) this.taker.loose(thread.id, arrow)
      else {
        const next = nextOf(cursors, arrow)
        if (next) this.runs.place(next, arrow)
        else if (untilNs === Infinity) this.taker.loose(thread.id, arrow)
        else thread.arrows.push(arrow)
      }
    }
  }

  private aroundOf(thread: HeldThread, cursors: readonly Cursor[], arrow: ArrowEnd): OtherSlice | undefined {
    const { atNs, track } = arrow
    let around: HeldSlice | undefined
    for (const cursor of cursors) {
      if (track !== undefined && cursor.track !== track) continue
      const slice = cursor.around(atNs)
      if (slice && (!around || slice.startNs > around.startNs)) around = slice
    }
    const other = track === undefined ? this.taker.otherAt(thread.id, atNs) : undefined
    if (other && (!around || other.startNs >= around.startNs)) return other
    if (!around) return undefined
    const slice: ArrowSlice = around
    return { startNs: around.startNs, addArrow: (end) => this.runs.place(slice, end) }
  }

  private newRow(track: number): HeldRow {
    const { thread, hasArrows } = this.taker.placeOf(track)
    const row = new HeldRow(track, this.threads.of(thread ?? -1 - track), hasArrows)
    row.thread.rows.push(row)
    return row
  }
}

/** The slice of a begin and its end, with the arguments of both. */
export function sliceOf(track: number, begin: Edge, endNs: number, endArgs: Edge['args']): HeldSlice {
  const { name, category, atNs, args, byte, arrows } = begin
  return {
    kind: 'own-slice',
    track,
    name,
    category: category ?? NO_CATEGORY,
    startNs: atNs,
    endNs: Math.max(atNs, endNs),
    args: endArgs ? [...(args ?? []), ...endArgs] : args,
    order: byte,
    arrows,
    flows: undefined,
    flowEnds: undefined,
  }
}

function nextOf(cursors: readonly Cursor[], { atNs, track }: ArrowEnd): HeldSlice | undefined {
  let next: HeldSlice | undefined
  for (const cursor of cursors) {
    if (track !== undefined && cursor.track !== track) continue
    const slice = cursor.next(atNs)
    if (slice && (!next || slice.startNs < next.startNs)) next = slice
  }
  return next
}

/** Number of slices that begin up to a time, in a list in order. */
function countUntil(slices: readonly HeldSlice[], untilNs: number): number {
  return firstIndex(0, slices.length, (i) => slices[i]!.startNs > untilNs)
}

function compare(a: HeldSlice, b: HeldSlice): number {
  return a.startNs - b.startNs || b.endNs - a.endNs || a.order - b.order
}

/** Finds the slice of a row around a time, and the next one, for increasing times. */
class Cursor {
  private readonly open: HeldSlice[] = []
  private place = 0

  /** `following`: the slice after the last one. */
  constructor(
    readonly track: number,
    private readonly slices: readonly HeldSlice[],
    private readonly following: HeldSlice | undefined,
  ) {}

  /** The innermost slice around a time; else one that ends then. Times must not decrease. */
  around(atNs: number): HeldSlice | undefined {
    const { slices, open } = this
    for (; this.place < slices.length && slices[this.place]!.startNs <= atNs; this.place++) {
      const slice = slices[this.place]!
      closeBefore(open, slice.startNs)
      open.push(slice)
    }
    closeBefore(open, atNs)
    for (let i = open.length - 1; i >= 0; i--) {
      const { startNs, endNs } = open[i]!
      if (endNs > atNs || startNs === atNs) return open[i]
    }
    return open.at(-1)
  }

  /** The next slice from a time on; only after {@link around} with that time. */
  next(atNs: number): HeldSlice | undefined {
    const next = this.slices[this.place] ?? this.following
    return next && next.startNs >= atNs ? next : undefined
  }
}

function closeBefore(open: HeldSlice[], atNs: number): void {
  while (open.length > 0 && open.at(-1)!.endNs < atNs) open.pop()
}
