import { UsageError } from '../../errors.ts'
import type { Arg } from '../../model/args.ts'
import type {
  OwnArgs,
  OwnEvent,
  OwnInstantEvent,
  OwnNameEvent,
  OwnSampleEvent,
  OwnSliceEvent,
  OwnTrackEvent,
} from '../../model/own-events.ts'
import type { Label } from '../../sink/label.ts'
import { arrowIds } from '../arrow-ids.ts'
import type { ArgMaker, Detail } from '../labels.ts'
import { NestedRows } from '../nested.ts'
import { Lanes, rowName, type TrackSpec, type TrackTree } from '../tracks.ts'

/** Place of the first one: after all of ours; and of those that lead, before the rows of GPUs and of NVTX. */
const [FIRST_RANK, LEADING_RANK] = [10 * 16, 7 * 16 + 1]
const LEADING_MAX = 6

interface OwnTrack {
  definition: OwnTrackEvent
  readonly rank: number
  /** 0 until something is on it: what is empty is not shown. */
  uuid: number
  /** Of its further rows. */
  readonly rows: number[]
  lanes?: Lanes | NestedRows
}

/**
 * Tracks that the input's reader, or the program that made the events, brought along. They are code: what is wrong with
 * them is an error, a UsageError that tells what is expected.
 */
export class OwnTracks {
  private readonly tracks = new Map<number, OwnTrack>()
  private readonly nested: NestedRows[] = []
  private readonly arrowIds: ReturnType<typeof arrowIds>
  private leading = 0

  constructor(
    private readonly tree: TrackTree,
    private readonly root: number,
    private readonly make: ArgMaker,
    private readonly detail: Detail,
    input: number,
  ) {
    this.arrowIds = arrowIds(input)
  }

  /** Ends what is still open. */
  finish(): void {
    for (const rows of this.nested) rows.finish()
  }

  place(event: OwnEvent): void {
    switch (event.kind) {
      case 'own-track':
        return this.define(event)
      case 'own-name':
        return this.rename(event)
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
    const rank = definition.leads ? LEADING_RANK + Math.min(this.leading++, LEADING_MAX) : FIRST_RANK + this.tracks.size
    this.tracks.set(id, { definition, rank, uuid: 0, rows: [] })
  }

  private rename({ track: id, name, kind }: OwnNameEvent): void {
    const track = this.tracks.get(id)
    if (!track) throw unknown(kind, id)
    track.definition = { ...track.definition, name }
    if (track.uuid === 0) return
    const [spec, parent] = [this.specOf(track), this.parentOf(track)]
    for (const [row, uuid] of [track.uuid, ...track.rows].entries()) {
      this.tree.rename(uuid, parent, { ...spec, name: rowName(name, row) })
    }
  }

  private slice(event: OwnSliceEvent): void {
    const { startNs, endNs } = event
    const track = this.known(event.track, 'slices', event.kind)
    checkTime('startNs', startNs, event, track)
    checkTime('endNs', endNs, event, track)
    if (endNs < startNs) throw wrong(event, track, `endNs at or after startNs (${startNs})`, endNs)
    track.lanes ??= this.rowsOf(track)
    track.lanes.place(startNs, endNs, this.label(event, event))
  }

  private rowsOf(track: OwnTrack): Lanes | NestedRows {
    const { writer } = this.tree
    if (!track.definition.nests) return new Lanes(writer, (row) => this.row(track, row), true)
    const rows = new NestedRows(writer, (row) => this.row(track, row))
    this.nested.push(rows)
    return rows
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
    if (!track) throw unknown(kind, id)
    const found = track.definition.holds ?? 'slices'
    if (found === holds) return track
    throw new UsageError(`${kind}: expected a track that holds ${holds}, found "${track.definition.name}" (${found})`)
  }

  private label({ name, category, args }: OwnSliceEvent | OwnInstantEvent, arrows?: OwnSliceEvent): Label {
    const common = this.make.common(name, category === undefined ? 'own' : this.make.names.text(category))
    const extra = args && this.extra(args)
    const flows = this.arrowIds(arrows?.flows)
    const flowEnds = this.arrowIds(arrows?.flowEnds)
    if (!extra && !flows && !flowEnds) return common
    return {
      id: common.id,
      name,
      category: common.category,
      args: undefined,
      extra,
      flows,
      flowEnds,
      launched: undefined,
    }
  }

  private extra(args: OwnArgs): Label['extra'] {
    const { make, detail } = this
    if (isReady(args)) return detail === 'names' || args.length === 0 ? undefined : args
    return Object.entries(args).map(([key, value]) =>
      typeof value === 'number' ? make.int(key, value) : make.text(key, value),
    )
  }

  /** The n-th row of a track, whose first is the track itself. */
  private row(track: OwnTrack, row: number): number {
    if (row === 0) return this.uuidOf(track)
    const spec = this.specOf(track)
    const uuid = this.tree.add(this.parentOf(track), { ...spec, name: rowName(spec.name, row) })
    track.rows.push(uuid)
    return uuid
  }

  private uuidOf(track: OwnTrack): number {
    if (track.uuid === 0) track.uuid = this.tree.add(this.parentOf(track), this.specOf(track))
    return track.uuid
  }

  private specOf({ definition, rank }: OwnTrack): TrackSpec {
    const { name, description, holds = 'slices', unit } = definition
    return { name, description, kind: holds, rank, ...(holds === 'counter' && unit && { unit }) }
  }

  private parentOf({ definition: { group } }: OwnTrack): number {
    return group === undefined ? this.root : this.uuidOf(this.tracks.get(group)!)
  }
}

function unknown(kind: string, id: number): UsageError {
  return new UsageError(`${kind}: expected the id of an own-track event that came before, found ${id}`)
}

function isReady(args: OwnArgs): args is readonly Arg[] {
  return Array.isArray(args)
}

/** Times from clocks in milliseconds are the usual slip: whole nanoseconds are all that a trace holds. */
function checkTime(field: string, ns: number, event: OwnEvent, track: OwnTrack): void {
  if (!Number.isSafeInteger(ns)) throw wrong(event, track, `${field} in whole nanoseconds since the origin`, ns)
}

function wrong(event: OwnEvent, track: OwnTrack, expected: string, found: unknown): UsageError {
  return new UsageError(`${event.kind} on track "${track.definition.name}": expected ${expected}, found ${found}`)
}
