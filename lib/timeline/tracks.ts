import type { Label } from '../sink/label.ts'
import type { Writer } from '../sink/writer.ts'
import { Gaps } from './gaps.ts'
import { LAYOUT } from './layout.ts'
import { NestedRows } from './nested.ts'
import { type Group, type Place, specOf, type TrackSpec } from './place.ts'

/** A track or a group of the layout. */
export type Key = keyof typeof LAYOUT

/** What a track depends on. */
export type Of<K extends Key> = (typeof LAYOUT)[K] extends Place<infer T> ? T : never

/** Hands out track ids and defines each track. Ids follow first use, so the same events give the same ids. */
export class TrackTree {
  private count = 0
  private queues = 0
  private processes = 0
  private looseWork = 0

  constructor(readonly writer: Writer) {}

  /** A number for a queue of a GPU, from 1. */
  addQueue(): number {
    return ++this.queues
  }

  /** A number for GPU work that nothing refers to, from 1. */
  addLooseWork(): number {
    return ++this.looseWork
  }

  /** A number for a process, from 1, for ids that are unique within it only. */
  addProcess(): number {
    return ++this.processes
  }

  /** Defines a track below `parent` (0 = top) and returns its id. */
  add(parent: number, spec: TrackSpec): number {
    const uuid = this.newId()
    this.writer.track({ ...spec, uuid, parent })
    return uuid
  }

  /** Gives a track another name and description. */
  rename(uuid: number, parent: number, spec: TrackSpec): void {
    this.writer.track({ ...spec, uuid, parent })
  }

  /** An id for what writers define as they do tracks, outside of the tree. */
  newId(): number {
    return ++this.count
  }
}

/** The tracks of one input, as the layout has them. A group is defined with its first member: empty ones are not shown. */
export class Tracks {
  private readonly groups = new Map<Group, number>([['trace', 0]])

  /** `root` is the input's group. */
  constructor(
    private readonly tree: TrackTree,
    root = 0,
  ) {
    this.groups.set('run', root)
  }

  /**
   * Defines a track and returns its id. `of` is what the track depends on, `row` is for further rows of its kind. A group of which
   * there are several, such as a domain of NVTX, has to be given.
   */
  add<K extends Key>(key: K, of: Of<K>, row = 0, group = this.group(LAYOUT[key].parent)): number {
    return this.tree.add(group, specOf(LAYOUT[key] as Place<Of<K>>, of, row))
  }

  /** Gives a track another name and description. */
  rename<K extends Key>(track: number, key: K, of: Of<K>, row = 0, group = this.group(LAYOUT[key].parent)): void {
    this.tree.rename(track, group, specOf(LAYOUT[key] as Place<Of<K>>, of, row))
  }

  /** Rows for slices that follow one another, see {@link Lanes}. */
  lanes<K extends Key>(key: K, of: Of<K>, isLate = false, group?: number): Lanes {
    return new Lanes(this.tree.writer, (row) => this.add(key, of, row, group), isLate)
  }

  /** Rows for slices that nest, see {@link NestedRows}. */
  nested<K extends Key>(key: K, of: Of<K>): NestedRows {
    return new NestedRows(this.tree.writer, (row) => this.add(key, of, row))
  }

  private group(key: Group): number {
    const known = this.groups.get(key)
    if (known !== undefined) return known
    const added = this.add(key as 'workers', {})
    this.groups.set(key, added)
    return added
  }
}

interface Lane {
  readonly track: number
  endNs: number
  readonly gaps: Gaps | undefined
}

/**
 * A row for slices that follow one another. Should one overlap what is there (two contexts at work), it goes to a further
 * row of the same kind: no slice is lost, cut, or nested in another. Slices come in order, or, where the row is
 * `late`, also after others that follow them.
 */
export class Lanes {
  private readonly lanes: Lane[] = []

  /** `add` defines the n-th row (from 0) and returns its track. */
  constructor(
    private readonly writer: Writer,
    private readonly add: (row: number) => number,
    private readonly late = false,
  ) {}

  /** Writes a slice, and another that follows it at once where `then` is given and not empty. */
  place(startNs: number, endNs: number, label: Label, thenEndNs = endNs, then?: Label): void {
    const lane = this.free(startNs, Math.max(endNs, thenEndNs))
    this.writer.begin(lane.track, startNs, label)
    this.writer.end(lane.track, endNs)
    if (!then || thenEndNs <= endNs) return
    this.writer.begin(lane.track, endNs, then)
    this.writer.end(lane.track, thenEndNs)
  }

  /** The first row where there is room, which it takes. */
  private free(startNs: number, endNs: number): Lane {
    const first = this.lanes[0]
    if (first && first.endNs === startNs) {
      first.endNs = endNs // what follows at once takes no search
      return first
    }
    for (const lane of this.lanes) {
      if (lane.endNs > startNs) {
        if (lane.gaps?.take(startNs, endNs)) return lane
        continue
      }
      if (lane.endNs < startNs) lane.gaps?.add(lane.endNs, startNs)
      lane.endNs = endNs
      return lane
    }
    const lane = { track: this.add(this.lanes.length), endNs, gaps: this.late ? new Gaps() : undefined }
    lane.gaps?.add(-Infinity, startNs)
    this.lanes.push(lane)
    return lane
  }
}
