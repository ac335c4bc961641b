import { UsageError } from '../../errors.ts'
import { areArgs } from '../../model/args.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { CounterEvent } from '../../model/events.ts'
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
import type { TrackContext } from '../context.ts'
import { NestedRows } from '../nested.ts'
import type * as of from '../of.ts'
import { Lanes } from '../tracks.ts'

interface OwnTrack {
  definition: OwnTrackEvent
  /** Index among the leading tracks of its group, or among all. */
  readonly nth: number
  /** 0 until its first event: empty tracks do not appear. */
  uuid: number
  /** Ids of its further rows. */
  readonly rows: number[]
  lanes?: Lanes | NestedRows
}

/**
 * Draws the numeric series of an input, and the tracks that its reader, or the program that creates the events, defines. Mistakes in
 * these are mistakes of code: they throw UsageError.
 */
export class OwnArea {
  /** By name: rows of the Counters group. */
  private readonly series = new Map<number, number>()
  private readonly tracks = new Map<number, OwnTrack>()
  private readonly nested: NestedRows[] = []
  private readonly arrowIds: ReturnType<typeof arrowIds>
  /** Leading tracks so far, by group. */
  private readonly leading = new Map<number | undefined, number>()

  constructor(private readonly context: TrackContext) {
    this.arrowIds = arrowIds(context.input)
  }

  take(event: CounterEvent | OwnEvent): void {
    switch (event.kind) {
      case 'counter':
        return this.counter(event)
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

  /** Ends all open slices. */
  finish(): void {
    for (const rows of this.nested) rows.finish()
  }

  private counter({ name, unit, atNs, value }: CounterEvent): void {
    const { tracks, names, writer } = this.context
    const track = getOrMake(this.series, name, () =>
      tracks.add('oneSeries', { name: names.text(name), unit, nth: this.series.size }),
    )
    writer.counter(track, atNs, value)
  }

  private define(definition: OwnTrackEvent): void {
    const { id, name, group } = definition
    if (this.tracks.has(id)) throw new UsageError(`own-track ${id} ("${name}"): this id is defined already`)
    if (group !== undefined) this.checkGroup(group)
    const leading = this.leading.get(group) ?? 0
    if (definition.leads) this.leading.set(group, leading + 1)
    const nth = definition.leads ? leading : this.tracks.size
    this.tracks.set(id, { definition, nth, uuid: 0, rows: [] })
  }

  private rename({ track: id, kind, ...renamed }: OwnNameEvent): void {
    const track = this.tracks.get(id)
    if (!track) throw unknown(kind, id)
    track.definition = { ...track.definition, ...renamed }
    if (track.uuid === 0) return
    for (const [row, uuid] of [track.uuid, ...track.rows].entries()) {
      this.context.tracks.rename(uuid, ...this.placeOf(track, row))
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
    const { writer, tracks } = this.context
    if (!track.definition.nests) return new Lanes(writer, (row) => this.row(track, row), tracks.leaveOut, true)
    const rows = new NestedRows(writer, (row) => this.row(track, row), tracks.leaveOut)
    this.nested.push(rows)
    return rows
  }

  private instant(event: OwnInstantEvent): void {
    const track = this.known(event.track, 'slices', event.kind)
    checkTime('atNs', event.atNs, event, track)
    this.context.writer.instant(this.uuidOf(track), event.atNs, this.label(event))
  }

  private sample(event: OwnSampleEvent): void {
    const { atNs, value } = event
    const track = this.known(event.track, 'counter', event.kind)
    checkTime('atNs', atNs, event, track)
    if (!Number.isFinite(value)) throw wrong(event, track, 'a finite value', value)
    this.context.writer.counter(this.uuidOf(track), atNs, value)
  }

  private known(id: number, holds: OwnTrackEvent['holds'], kind: OwnEvent['kind']): OwnTrack {
    const track = this.tracks.get(id)
    if (!track) throw unknown(kind, id)
    const found = track.definition.holds ?? 'slices'
    if (found === holds) return track
    throw new UsageError(`${kind}: expected a track of ${holds}, found "${track.definition.name}" (${found})`)
  }

  /** Tracks may be below a group, or below a track of slices, such as a thread. */
  private checkGroup(id: number): void {
    const group = this.tracks.get(id)?.definition
    if (!group) throw unknown('own-track', id)
    if (group.holds !== 'counter') return
    throw new UsageError(`own-track: expected a group or a track of slices, found "${group.name}" (counter)`)
  }

  private label({ name, category, args }: OwnSliceEvent | OwnInstantEvent, arrows?: OwnSliceEvent): Label {
    const { make, names } = this.context
    const common = make.common(name, category === undefined ? 'own' : names.text(category))
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
    const { make } = this.context
    if (areArgs(args)) return make.shown(args)
    return Object.entries(args).map(([key, value]) =>
      typeof value === 'number' ? make.int(key, value) : make.text(key, value),
    )
  }

  /** The n-th row of a track; row 0 is the track itself. */
  private row(track: OwnTrack, row: number): number {
    if (row === 0) return this.uuidOf(track)
    const uuid = this.context.tracks.add(...this.placeOf(track, row))
    track.rows.push(uuid)
    return uuid
  }

  private uuidOf(track: OwnTrack): number {
    if (track.uuid === 0) track.uuid = this.context.tracks.add(...this.placeOf(track, 0))
    return track.uuid
  }

  /** Its n-th row in the layout: at the top, if it is a row there, and the viewer closes groups. */
  private placeOf(track: OwnTrack, row: number): ['own' | 'ownAtTop', of.Own, number, number | undefined] {
    const { atTop } = track.definition
    if (atTop === undefined || !this.context.tracks.isOpen) return ['own', ofOwn(track), row, this.groupOf(track, row)]
    return ['ownAtTop', { ...ofOwn(track), name: atTop }, row, undefined]
  }

  /** undefined: the group of the input. Further rows of a thread are below it: so they are that thread's. Processes are at the top. */
  private groupOf({ definition: { group, ofThread, ofProcess }, uuid }: OwnTrack, row: number): number | undefined {
    if (ofProcess) return 0
    if (ofThread && row > 0) return uuid
    return group === undefined ? undefined : this.uuidOf(this.tracks.get(group)!)
  }
}

function ofOwn({ definition, nth }: OwnTrack): of.Own {
  const { name, description, holds = 'slices', unit, leads = false, ofProcess, ofThread } = definition
  return { name, description, holds, unit: holds === 'counter' ? unit : undefined, leads, nth, ofProcess, ofThread }
}

function unknown(kind: string, id: number): UsageError {
  return new UsageError(`${kind}: expected the id of an earlier own-track event, found ${id}`)
}

/** Times in milliseconds are a common mistake: a trace contains whole nanoseconds. */
function checkTime(field: string, ns: number, event: OwnEvent, track: OwnTrack): void {
  if (!Number.isSafeInteger(ns)) throw wrong(event, track, `${field} in whole nanoseconds since the origin`, ns)
}

function wrong(event: OwnEvent, track: OwnTrack, expected: string, found: unknown): UsageError {
  return new UsageError(`${event.kind} on track "${track.definition.name}": expected ${expected}, found ${found}`)
}
