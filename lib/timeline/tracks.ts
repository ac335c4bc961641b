import { firstIndex } from '../bytes/search.ts'
import type { Arg } from '../model/args.ts'
import { getOrMake } from '../model/default-map.ts'
import { LeftOut } from '../model/left-out.ts'
import type { Label } from '../sink/label.ts'
import type { Writer } from '../sink/writer.ts'
import { FurtherRows, ROWS_MAX, SEARCHED_ROWS_MAX } from './further-rows.ts'
import { LAYOUT } from './layout.ts'
import { NestedRows } from './nested.ts'
import type { Run } from './of.ts'
import { type Place, specOf, type TrackSpec } from './place.ts'

const CROWDED = `slices that overlap ${ROWS_MAX} others of their track`
const CROWDED_HINT = `a track has at most ${ROWS_MAX} rows: each takes memory, and no viewer shows more at once`

/** A track or a group of the layout. */
export type Key = keyof typeof LAYOUT

/** What a track depends on. */
export type Of<K extends Key> = (typeof LAYOUT)[K] extends Place<infer T> ? T : never

/**
 * Rows that stay in the group of a run whose other rows are at the top: tracks of programs may be threads, which have a place of their own;
 * the viewer sorts the others by name, and findings come first.
 */
const IN_GROUP: ReadonlySet<Key> = new Set<Key>(['own', 'copies', 'issues', 'meter'])

/** Assigns track ids and defines tracks. Ids are in order of first use: the same events result in the same ids. */
export class TrackTree {
  private count = 0
  private queues = 0
  private processes = 0
  private looseWork = 0
  private readonly connections = new Map<number, number>()

  constructor(readonly writer: Writer) {}

  /** Number of a GPU queue, from 1. */
  addQueue(): number {
    return ++this.queues
  }

  /** Number of GPU work without a launch, from 1. */
  addLooseWork(): number {
    return ++this.looseWork
  }

  /** Number of a process, from 1, for ids that are unique only within a process. */
  addProcess(): number {
    return ++this.processes
  }

  /** Number of a connection between two processes, from 0; `client`: the name of its end that both have. */
  connection(client: number): number {
    return getOrMake(this.connections, client, () => this.connections.size)
  }

  /** Defines a track below `parent` (0 = top) and returns its id. */
  add(parent: number, spec: TrackSpec): number {
    const uuid = this.newId()
    this.writer.track({ ...spec, uuid, parent })
    return uuid
  }

  /** Replaces the name of a track: of its descriptions, trace_processor takes the first one. */
  rename(uuid: number, parent: number, spec: TrackSpec): void {
    this.writer.track({ ...spec, uuid, parent })
  }

  /** An id for descriptors outside of the tree, such as threads. */
  newId(): number {
    return ++this.count
  }
}

/** The tracks of one input, by the layout. A group is defined with its first member: empty groups do not appear. */
export class Tracks {
  /** What is not drawn because too many other slices are drawn at the same time. */
  readonly leftOut = new LeftOut()

  /**
   * `run` describes the group of an input; without it, there is none. `isOpen`: rows of the group are at the top instead, see
   * {@link Drawing}. `isSummed`: not all calls of the input are in full.
   */
  constructor(
    private readonly tree: TrackTree,
    private readonly run?: Run,
    readonly isOpen = false,
    private readonly isSummed = false,
    private readonly groups = new Map<string, number>([['trace', 0]]),
  ) {}

  /** Further tracks in the same groups, of an input that has no group of its own. */
  beside(): Tracks {
    return new Tracks(this.tree, this.run, this.isOpen, this.isSummed, this.groups)
  }

  /**
   * Defines a track and returns its id. `of`: what the track depends on; `row`: its n-th row, from 0; `group`: required for groups
   * of which there are several, such as NVTX domains.
   */
  add<K extends Key>(key: K, subject: Of<K>, row = 0, group?: number): number {
    const { ahead } = LAYOUT[key] as Place<Of<K>>
    const isAhead = ahead?.rank(subject) !== undefined
    return this.tree.add((isAhead ? undefined : group) ?? this.groupOf(key, subject), this.specOf(key, subject, row))
  }

  /** Replaces the name of a track: of its descriptions, trace_processor takes the first one. */
  rename<K extends Key>(track: number, key: K, subject: Of<K>, row = 0, group = this.groupOf(key, subject)): void {
    this.tree.rename(track, group, this.specOf(key, subject, row))
  }

  /** Replaces the name of the input's group, if it has tracks. */
  renameRun(run: Run): void {
    const track = this.groups.get('run')
    if (track !== undefined) this.rename(track, 'run', run)
  }

  /** Rows for slices that follow one another, see {@link Lanes}. */
  lanes<K extends Key>(key: K, subject: Of<K>, isLate = false, group?: number): Lanes {
    return new Lanes(this.tree.writer, (row) => this.add(key, subject, row, group), this.leaveOut, isLate)
  }

  /** Rows for slices that nest, see {@link NestedRows}. */
  nested<K extends Key>(key: K, subject: Of<K>): NestedRows {
    return new NestedRows(this.tree.writer, (row) => this.add(key, subject, row), this.leaveOut)
  }

  /** Counts a slice for which its track has no row. */
  readonly leaveOut = (): void => this.leftOut.add(CROWDED, 1, CROWDED_HINT)

  private groupOf<K extends Key>(key: K, subject: Of<K>): number {
    const { parent } = this.placeOf(key, subject)
    const group = this.group(parent)
    return this.isAtTop(key, subject) ? 0 : group
  }

  private specOf<K extends Key>(key: K, subject: Of<K>, row: number): TrackSpec {
    const spec = specOf(LAYOUT[key] as Place<Of<K>>, subject, row, this.isSummed)
    return this.isAtTop(key, subject) ? { ...spec, isAtTop: true } : spec
  }

  private isAtTop<K extends Key>(key: K, subject: Of<K>): boolean {
    const { parent, kind } = this.placeOf(key, subject)
    return this.isOpen && parent === 'run' && kind !== 'group' && !IN_GROUP.has(key)
  }

  /** Its place, with the group that it is in. */
  private placeOf<K extends Key>(key: K, subject: Of<K>): Place<Of<K>> {
    const place = LAYOUT[key] as Place<Of<K>>
    const { parent, beyond, ahead } = place
    return { ...place, parent: ahead?.rank(subject) === undefined ? (beyond?.(subject) ?? parent) : 'run' }
  }

  private group(key: string): number {
    return getOrMake(this.groups, key, () =>
      key === 'run' && this.run ? this.add(key, this.run) : this.add(key as 'workers', {}),
    )
  }
}

interface InnerSlice {
  readonly startNs: number
  readonly endNs: number
  readonly label: Label
}

interface Lane {
  readonly track: number
  endNs: number
  readonly gaps: Gaps | undefined
}

/**
 * Rows of slices that follow one another. A slice that overlaps another one (of another llama_context, for example) is placed in a
 * further row: no slice is cut, or nested in another; one that overlaps {@link ROWS_MAX} others is counted and not drawn. Slices come in order; with `late`, a slice may also come after later
 * ones.
 */
export class Lanes {
  private readonly lanes: Lane[] = []
  private further: FurtherRows | undefined

  /** `add` defines the n-th row (from 0) and returns its track; `leaveOut`: see {@link FurtherRows}. */
  constructor(
    private readonly writer: Writer,
    private readonly add: (row: number) => number,
    private readonly leaveOut: () => void,
    private readonly late = false,
  ) {}

  /** The tracks of its rows so far. */
  get tracks(): readonly number[] {
    return this.lanes.map(({ track }) => track)
  }

  /** Writes a slice; `extra`: arguments of its own, in place of the label's. */
  place(startNs: number, endNs: number, label: Label, extra?: readonly Arg[]): void {
    const track = this.take(startNs, endNs)
    if (track !== undefined) this.writer.slice(track, startNs, endNs, label, extra)
  }

  /** Writes a slice with others in it, of one thread: they nest, the outer ones first. */
  placeAround(startNs: number, endNs: number, label: Label, inner: readonly InnerSlice[]): void {
    const track = this.take(startNs, endNs)
    if (track === undefined) return
    const rows = new NestedRows(this.writer, () => track, this.leaveOut)
    this.writer.begin(track, startNs, label)
    for (const slice of inner) rows.place(slice.startNs, slice.endNs, slice.label)
    rows.finish()
    this.writer.end(track, endNs)
  }

  /** Reserves the time in the first row where it is free; returns its track, or undefined where there are too many rows. */
  take(startNs: number, endNs: number): number | undefined {
    const first = this.lanes[0]
    if (!first || first.endNs > startNs || first.gaps) return this.search(startNs, endNs)
    first.endNs = endNs // the fast path: the first row is free, and nothing comes late
    return first.track
  }

  private search(startNs: number, endNs: number): number | undefined {
    for (const lane of this.lanes) {
      if (lane.endNs > startNs) {
        if (lane.gaps?.take(startNs, endNs)) return lane.track
        continue
      }
      if (lane.endNs < startNs) lane.gaps?.add(lane.endNs, startNs)
      lane.endNs = endNs
      return lane.track
    }
    if (this.lanes.length === SEARCHED_ROWS_MAX) {
      this.further ??= new FurtherRows(this.add, this.leaveOut)
      return this.further.place(startNs, endNs)
    }
    const lane = { track: this.add(this.lanes.length), endNs, gaps: this.late ? new Gaps() : undefined }
    lane.gaps?.add(-Infinity, startNs)
    this.lanes.push(lane)
    return lane.track
  }
}

/** Gaps that are kept: about the number of calls in a block of a log. */
const GAPS_MAX = 4096

/** Free intervals of a row before its end, for late slices. */
class Gaps {
  /** In order, not overlapping. */
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  /** Adds a gap after all others. */
  add(startNs: number, endNs: number): void {
    this.starts.push(startNs)
    this.ends.push(endNs)
    this.trim()
  }

  /**
   * Takes an interval out of the gap that contains it; false if none does. The gap's end is not free: the slice that begins
   * there was written before, and would come first.
   */
  take(startNs: number, endNs: number): boolean {
    const { starts, ends } = this
    const at = firstIndex(0, starts.length, (gap) => starts[gap]! > startNs) - 1
    if (at < 0 || endNs >= ends[at]!) return false
    if (starts[at] !== startNs) {
      starts.splice(at + 1, 0, endNs)
      ends.splice(at, 0, startNs)
    } else starts[at] = endNs
    this.trim()
    return true
  }

  private trim(): void {
    if (this.starts.length <= GAPS_MAX) return
    this.starts.splice(0, GAPS_MAX / 2)
    this.ends.splice(0, GAPS_MAX / 2)
  }
}
