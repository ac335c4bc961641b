import type { Label } from '../sink/label.ts'
import type { Track } from '../sink/track.ts'
import type { Writer } from '../sink/writer.ts'
import { Gaps } from './gaps.ts'

/** What a track needs beside its place in the tree. */
export type TrackSpec = Pick<Track, 'name' | 'description' | 'rank'> & Partial<Pick<Track, 'kind' | 'unit' | 'axis'>>

/** Hands out track ids and tells the writer of each track once. Ids follow first use, so the same events give the same. */
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

  /** A number for a process, from 1, by which ids are told apart that are unique in it. */
  addProcess(): number {
    return ++this.processes
  }

  /** Defines a track below `parent` (0 = top) and returns its id. */
  add(parent: number, spec: TrackSpec): number {
    const uuid = this.newId()
    this.writer.track({ kind: 'slices', ...spec, uuid, parent })
    return uuid
  }

  /** Defines a track once more, by another name. */
  rename(uuid: number, parent: number, spec: TrackSpec): void {
    this.writer.track({ kind: 'slices', ...spec, uuid, parent })
  }

  /** An id for what is told to the writer as a track is, and stands in no tree. */
  newId(): number {
    return ++this.count
  }
}

/** A group that comes into being with its first member: empty groups are not shown. */
export class LazyGroup {
  private uuid = 0

  constructor(
    private readonly tree: TrackTree,
    private readonly parent: number,
    private readonly spec: TrackSpec,
  ) {}

  /** Defines a track in the group. */
  add(spec: TrackSpec): number {
    if (this.uuid === 0) this.uuid = this.tree.add(this.parent, { ...this.spec, kind: 'group' })
    return this.tree.add(this.uuid, spec)
  }
}

interface Lane {
  readonly track: number
  endNs: number
  readonly gaps: Gaps | undefined
}

/**
 * A row for slices that follow one another. Should one overlap what is there (two contexts at work), it goes to a further
 * row of the same kind: no slice is lost, cut, or nested in another. Slices come in order, or, where the row is said to be
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

/** `python3 9946`, or `thread 9946` where it has no name. */
export function threadTitle(name: string, tid: number): string {
  return `${name === '' ? 'thread' : name} ${tid}`
}

/** `Tokens`, `Tokens (2)`, …: names of rows beyond the first. */
export function rowName(name: string, row: number): string {
  return row === 0 ? name : `${name} (${row + 1})`
}
