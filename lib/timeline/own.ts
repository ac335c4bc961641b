import { UsageError } from '../errors.ts'
import type {
  OwnArgs,
  OwnEvent,
  OwnInstantEvent,
  OwnSampleEvent,
  OwnSliceEvent,
  OwnTrackEvent,
} from '../model/own-events.ts'
import type { Label } from '../write/writer.ts'
import type { ArgMaker } from './labels.ts'
import { Lanes, rowName, type TrackTree } from './tracks.ts'

/** Place of the first one: after all of ours. */
const FIRST_RANK = 10 * 16

interface OwnTrack {
  readonly definition: OwnTrackEvent
  readonly rank: number
  /** 0 until something is on it: what is empty is not shown. */
  uuid: number
  lanes?: Lanes
}

/**
 * Tracks that the input's reader, or the program that made the events, brought along. They are code: what is wrong with
 * them is an error, a UsageError that tells what is expected.
 */
export class OwnTracks {
  private readonly tracks = new Map<number, OwnTrack>()

  constructor(
    private readonly tree: TrackTree,
    private readonly root: number,
    private readonly make: ArgMaker,
  ) {}

  place(event: OwnEvent): void {
    switch (event.kind) {
      case 'own-track':
        return this.define(event)
      case 'own-slice':
        return this.slice(event)
      case 'own-instant':
        return this.instant(event)
      case 'own-sample':
        return this.sample(event)
    }
  }

  private define(definition: OwnTrackEvent): void {
    const { id, name, group } = definition
    if (this.tracks.has(id)) throw new UsageError(`own-track ${id} ("${name}"): this id is defined already`)
    if (group !== undefined) this.known(group, 'group', definition.kind)
    this.tracks.set(id, { definition, rank: FIRST_RANK + this.tracks.size, uuid: 0 })
  }

  private slice(event: OwnSliceEvent): void {
    const { startNs, endNs } = event
    const track = this.known(event.track, 'slices', event.kind)
    checkTime('startNs', startNs, event, track)
    checkTime('endNs', endNs, event, track)
    if (endNs < startNs) throw wrong(event, track, `endNs at or after startNs (${startNs})`, endNs)
    track.lanes ??= new Lanes(this.tree.writer, (row) => this.row(track, row), true)
    track.lanes.place(startNs, endNs, this.label(event))
  }

  private instant(event: OwnInstantEvent): void {
    const track = this.known(event.track, 'slices', event.kind)
    checkTime('atNs', event.atNs, event, track)
    this.tree.writer.instant(this.uuidOf(track), event.atNs, this.label(event))
  }

  private sample(event: OwnSampleEvent): void {
    const { atNs, value } = event
    const track = this.known(event.track, 'counter', event.kind)
    checkTime('atNs', atNs, event, track)
    if (!Number.isFinite(value)) throw wrong(event, track, 'a finite value', value)
    this.tree.writer.counter(this.uuidOf(track), atNs, value)
  }

  private known(id: number, holds: OwnTrackEvent['holds'], kind: OwnEvent['kind']): OwnTrack {
    const track = this.tracks.get(id)
    if (!track) throw new UsageError(`${kind}: expected the id of an own-track event that came before, found ${id}`)
    const found = track.definition.holds ?? 'slices'
    if (found === holds) return track
    throw new UsageError(`${kind}: expected a track that holds ${holds}, found "${track.definition.name}" (${found})`)
  }

  private label({ name, args }: OwnSliceEvent | OwnInstantEvent): Label {
    return { name, category: 'own', extra: args && this.extra(args) }
  }

  private extra(args: OwnArgs): Label['extra'] {
    const { make } = this
    return Object.entries(args).map(([key, value]) =>
      typeof value === 'number' ? make.int(key, value) : make.text(key, value),
    )
  }

  /** The n-th row of a track, whose first is the track itself. */
  private row(track: OwnTrack, row: number): number {
    if (row === 0) return this.uuidOf(track)
    const { name, description } = track.definition
    return this.tree.add(this.parentOf(track), { name: rowName(name, row), description, rank: track.rank })
  }

  private uuidOf(track: OwnTrack): number {
    if (track.uuid === 0) {
      const { name, description, holds = 'slices', unit } = track.definition
      const spec = { name, description, kind: holds, rank: track.rank, ...(holds === 'counter' && unit && { unit }) }
      track.uuid = this.tree.add(this.parentOf(track), spec)
    }
    return track.uuid
  }

  private parentOf({ definition: { group } }: OwnTrack): number {
    return group === undefined ? this.root : this.uuidOf(this.tracks.get(group)!)
  }
}

/** Times from clocks in milliseconds are the usual slip: whole nanoseconds are all that a trace holds. */
function checkTime(field: string, ns: number, event: OwnEvent, track: OwnTrack): void {
  if (!Number.isSafeInteger(ns)) throw wrong(event, track, `${field} in whole nanoseconds since the origin`, ns)
}

function wrong(event: OwnEvent, track: OwnTrack, expected: string, found: unknown): UsageError {
  return new UsageError(`${event.kind} on track "${track.definition.name}": expected ${expected}, found ${found}`)
}
