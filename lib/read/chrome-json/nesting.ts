import type { OwnSliceEvent } from '../../model/own-events.ts'
import type { ArrowBearer, ArrowEnd, Runs } from './arrows.ts'
import { countUntil, type Edge, EdgeQueue, type EdgeTaker, OpenRanges } from './pairs.ts'

/** What is held back at most: slices, begins, ends and arrows of all rows together; and slices of a row in order. */
const HELD_MAX = 1 << 16
const HELD_IN_ORDER_MAX = 1 << 10

/** A slice on its way. */
export interface HeldSlice extends OwnSliceEvent {
  /** Of two that look the same, the one with the lower number is the outer one. */
  readonly order: number
  /** Ends of arrows that the event itself has. */
  readonly arrows: readonly ArrowEnd[] | undefined
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** A slice that is drawn elsewhere, and may bear arrows. */
export interface OtherSlice {
  readonly startNs: number
  bear(arrow: ArrowEnd): void
}

/** What {@link Nesting} asks for, and hands over. */
export interface NestingTaker extends EdgeTaker {
  /** Gets slices of one row, in order. */
  pass(slices: readonly HeldSlice[]): void
  /** The thread of a row; undefined where the row is no thread's. `bearsArrows`: arrows may begin and end on it. */
  placeOf(track: number): { thread: number | undefined; bearsArrows: boolean }
  /** The slice that is drawn elsewhere around a time of a thread. */
  otherAt(thread: number, atNs: number): OtherSlice | undefined
  /** An arrow's end has no slice. */
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
    readonly bearsArrows: boolean,
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

  /** The time in the middle of what is held. */
  middleNs(): number {
    const edges = this.edges?.length ?? 0
    if (edges > this.slices.length) return this.edges!.middleNs()
    return this.sorted()[this.slices.length >> 1]?.startNs ?? Infinity
  }

  /** Takes slices out that do not begin later than a time, in order. */
  take(untilNs: number): HeldSlice[] {
    const slices = this.sorted()
    const count = countUntil(slices, untilNs, startOf)
    if (count === 0) return []
    this.slices = slices.slice(count)
    return count === slices.length ? slices : slices.slice(0, count)
  }
}

/** The rows of one thread, between which arrows look for their slice. */
class HeldThread {
  readonly rows: HeldRow[] = []
  arrows: ArrowEnd[] = []
  /** All its slices have come in order, as such. */
  isInOrder = true

  constructor(readonly id: number) {}

  get size(): number {
    let size = this.arrows.length
    for (const row of this.rows) size += row.size
    return size
  }
}

/**
 * Brings the slices of each row in order, outer before inner, pairs begins and ends in order of time, and gives arrows to
 * slices: tracers write all of them when they begin, when they end, or thread by thread. So many are held back, and the
 * earlier half of each thread is passed on when there are more. A slice that comes later than that is passed on as it comes.
 */
export class Nesting {
  private readonly rows = new Map<number, HeldRow>()
  private readonly threads = new Map<number, HeldThread>()
  private held = 0

  constructor(
    private readonly taker: NestingTaker,
    private readonly runs: Runs,
  ) {}

  add(slice: HeldSlice): void {
    const row = this.row(slice.track)
    row.add(slice)
    this.held++
    if (row.slices.length > HELD_IN_ORDER_MAX && row.thread.isInOrder) this.release(row.thread, row.middleNs())
    else if (this.held > HELD_MAX) this.releaseHalf()
  }

  /** Adds a begin or an end on a row. */
  edge(track: number, edge: Edge): void {
    const row = this.row(track)
    row.edges ??= new EdgeQueue(this.taker)
    row.edges.push(edge)
    row.thread.isInOrder = false
    if (++this.held > HELD_MAX) this.releaseHalf()
  }

  /** Adds the end of an arrow on a thread. */
  arrow(thread: number, arrow: ArrowEnd): void {
    this.thread(thread).arrows.push(arrow)
    if (++this.held > HELD_MAX) this.releaseHalf()
  }

  /** Pairs all begins and ends; returns what is still open, with its row. */
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
    // What is held may be arrows far behind all slices.
    if (this.held > HELD_MAX * 0.9) this.finish()
  }

  /** Up to when slices of a thread are passed on: about half of them. */
  private horizonOf(thread: HeldThread): number {
    let fullest = thread.rows[0]
    for (const row of thread.rows) if (row.size > fullest!.size) fullest = row
    if (!fullest || fullest.size === 0) return Infinity
    const middleNs = fullest.middleNs()
    // Outer slices go before inner ones: what lies in one that is open waits, unless that is nearly all.
    let beforeNs = Infinity
    this.held -= thread.size
    for (const row of thread.rows) {
      this.pair(row, middleNs)
      beforeNs = Math.min(beforeNs, row.open.firstNs - 1)
    }
    this.held += thread.size
    const isEnough = countUntil(fullest.sorted(), beforeNs, startOf) * 4 >= fullest.slices.length
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

  /** Gives arrows of a thread up to a time to the slices that are taken out. */
  private join(thread: HeldThread, taken: readonly HeldSlice[][], untilNs: number): void {
    const due = thread.arrows.filter(({ atNs }) => atNs <= untilNs).sort((a, b) => a.atNs - b.atNs || a.byte - b.byte)
    thread.arrows = thread.arrows.filter(({ atNs }) => atNs > untilNs)
    const cursors = thread.rows.flatMap(({ track, bearsArrows, slices }, i) =>
      bearsArrows ? [new Cursor(track, taken[i]!, slices[0])] : [],
    )
    for (const arrow of due) {
      const around = this.aroundOf(thread, cursors, arrow)
      if (around && (arrow.isAround || around.startNs === arrow.atNs)) around.bear(arrow)
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
    const bearer: ArrowBearer = around
    return { startNs: around.startNs, bear: (end) => this.runs.place(bearer, end) }
  }

  private row(track: number): HeldRow {
    let row = this.rows.get(track)
    if (!row) {
      const { thread, bearsArrows } = this.taker.placeOf(track)
      row = new HeldRow(track, this.thread(thread ?? -1 - track), bearsArrows)
      row.thread.rows.push(row)
      this.rows.set(track, row)
    }
    return row
  }

  private thread(id: number): HeldThread {
    let thread = this.threads.get(id)
    if (!thread) {
      thread = new HeldThread(id)
      this.threads.set(id, thread)
    }
    return thread
  }
}

/** What began as a slice, with the arguments of the end behind its own. */
export function sliceOf(track: number, begin: Edge, endNs: number, endArgs: Edge['args']): HeldSlice {
  const { name, category, atNs, args, byte, arrows } = begin
  return {
    kind: 'own-slice',
    track,
    name,
    category,
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

function startOf({ startNs }: HeldSlice): number {
  return startNs
}

function compare(a: HeldSlice, b: HeldSlice): number {
  return a.startNs - b.startNs || b.endNs - a.endNs || a.order - b.order
}

/** Goes through the slices of a row with time: which one is around a time, and which one is next. */
class Cursor {
  private readonly open: HeldSlice[] = []
  private place = 0

  /** `following`: the slice behind the last one. */
  constructor(
    readonly track: number,
    private readonly slices: readonly HeldSlice[],
    private readonly following: HeldSlice | undefined,
  ) {}

  /** The innermost slice around a time, which is not before the last one that was asked for; else one that ends there. */
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

  /** The next slice from a time on; {@link around} was asked for that time. */
  next(atNs: number): HeldSlice | undefined {
    const next = this.slices[this.place] ?? this.following
    return next && next.startNs >= atNs ? next : undefined
  }
}

function closeBefore(open: HeldSlice[], atNs: number): void {
  while (open.length > 0 && open.at(-1)!.endNs < atNs) open.pop()
}
