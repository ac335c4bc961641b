import { checkNames, UsageError } from '../../errors.ts'
import { INT32_MAX } from '../../model/limits.ts'
import type { Track } from '../../sink/track.ts'
import type { PerfettoWriter } from '../perfetto/perfetto.ts'
import type { Details, Labels, TraceArgs } from './labels.ts'
import type { Time, TraceTimes } from './times.ts'

/** Perfetto never ends slices that are nested deeper on a track. */
const DEPTH_MAX = 512

/** How a track is shown. */
export interface TrackOptions {
  /** What it shows, and how it was measured. */
  readonly description?: string | undefined
  /** Its place among the tracks of the same parent: smaller ones first. By default, they are in the order in which they are made. */
  readonly order?: number | undefined
}

/** How a counter is shown. */
export interface CounterOptions extends TrackOptions {
  /** `bytes`, `count` and `ns` are known to viewers; others are shown as they are. */
  readonly unit?: string | undefined
}

const TRACK: Readonly<Record<keyof TrackOptions, true>> = { description: true, order: true }
/** Names of the options that all tracks have. */
export const TRACK_NAMES = Object.keys(TRACK)

/** What defines a track. */
type Defined = TrackOptions & Partial<Pick<Track, 'kind' | 'unit' | 'merges' | 'ofProcess' | 'ofThread'>>

/** What the tracks of one trace share. */
export interface Shared {
  readonly writer: PerfettoWriter
  readonly labels: Labels
  readonly times: TraceTimes
  /** All tracks of slices. */
  readonly tracks: SliceTrack[]
  /** A new id of a track. */
  newId(): number
  /** Something is to be written: throws UsageError if the trace is finished. */
  writing(): void
}

/** What tracks are added to: a trace, a process, or another track. */
export class TrackParent {
  private children = 0

  /** `uuid`: id of the track; 0 = the top. */
  constructor(
    protected readonly shared: Shared,
    protected readonly uuid: number,
  ) {}

  /** Adds a track of slices, which nest. Further tracks may be below it. */
  track(name: string, options: TrackOptions = {}): SliceTrack {
    checkNames('track', options, TRACK_NAMES)
    return this.slices(name, options)
  }

  /** Adds a track of slices that may overlap, such as requests: viewers show it with as many rows as it needs. */
  spans(name: string, options: TrackOptions = {}): SpanTrack {
    checkNames('spans', options, TRACK_NAMES)
    const ofRows = { ...options, order: options.order ?? this.children, merges: true }
    this.children++
    return new SpanTrack(() => this.slices(name, ofRows))
  }

  /** Adds a track that shows a number over time. */
  counter(name: string, { unit, ...options }: CounterOptions = {}): CounterTrack {
    checkNames('counter', options, [...TRACK_NAMES, 'unit'])
    return new CounterTrack(this.shared, name, this.define(name, { ...options, kind: 'counter', unit }))
  }

  protected slices(name: string, options: Defined): SliceTrack {
    const track = new SliceTrack(this.shared, this.define(name, options), name)
    this.shared.tracks.push(track)
    return track
  }

  /** Writes the descriptor of a track below this one. Returns its id. */
  protected define(name: string, options: Defined): number {
    const { description = '', order = this.children, kind = 'slices', unit, merges, ofProcess, ofThread } = options
    if (!Number.isSafeInteger(order) || Math.abs(order) > INT32_MAX)
      throw new UsageError(`track "${name}": expected a whole number of 32 bits as its order, found ${order}`)
    this.shared.writing()
    this.children++
    const uuid = this.shared.newId()
    const how = { description, rank: order, kind, unit, merges, ofProcess, ofThread, ordersChildren: true }
    this.shared.writer.track({ uuid, parent: this.uuid, name, ...how })
    return uuid
  }
}

/**
 * A track of slices that nest. Its slices and instants come in order of time. A slice is complete, or it begins and ends; of complete
 * ones, the outer comes before the inner.
 */
export class SliceTrack extends TrackParent {
  /** Ends of the open slices, the innermost last; Infinity for those that end by {@link end}. */
  private readonly ends: number[] = []
  private lastNs = -Infinity

  constructor(
    shared: Shared,
    uuid: number,
    readonly name: string,
  ) {
    super(shared, uuid)
  }

  /** Begins a slice, in the one that is open. One that never ends is shown as unfinished. */
  begin(at: Time, name: string, details?: Details): void {
    const ns = this.advance(at)
    this.open(ns, Infinity, name, details)
  }

  /** Ends the innermost slice that {@link begin} began; `args` are added to its own. */
  end(at: Time, args?: TraceArgs): void {
    const { shared, ends } = this
    const ns = this.advance(at)
    const end = ends.at(-1)
    if (end === undefined)
      throw this.wrong(`an end at ${at} without a begin`, 'each end is of a begin before it on the same track')
    if (end !== Infinity) {
      throw this.wrong(
        `an end at ${at}, before a slice in it ends`,
        'a complete slice ends before the one around it; slices that overlap are for spans(…)',
      )
    }
    ends.pop()
    if (args) shared.writer.endWith(this.uuid, ns, shared.labels.args(args))
    else shared.writer.end(this.uuid, ns)
  }

  /** Writes a complete slice. */
  slice(start: Time, end: Time, name: string, details?: Details): void {
    const startNs = this.advance(start)
    const endNs = this.shared.times.ns(end)
    if (endNs < startNs) throw this.wrong(`a slice from ${start} to ${end}`, 'a slice ends when it begins, or later')
    if (endNs > (this.ends.at(-1) ?? Infinity)) {
      throw this.wrong(
        `a slice to ${end}, after the one around it ends`,
        'slices that overlap are for spans(…), or for tracks of their own',
      )
    }
    this.open(startNs, endNs, name, details)
  }

  /** Writes an event without a duration. */
  instant(at: Time, name: string, details?: Details): void {
    const { shared } = this
    const ns = this.advance(at)
    shared.writer.instant(this.uuid, ns, shared.labels.of(name, details))
  }

  /** Is no slice open at this time? */
  isFree(at: Time): boolean {
    const ns = this.shared.times.ns(at)
    return ns >= this.lastNs && (this.ends.length === 0 || this.ends[0]! <= ns)
  }

  /** Ends complete slices. */
  finish(): void {
    this.close(Number.MAX_SAFE_INTEGER)
  }

  private open(ns: number, endNs: number, name: string, details: Details | undefined): void {
    const { shared, ends } = this
    if (ends.length === DEPTH_MAX) throw this.wrong(`${DEPTH_MAX + 1} slices in one another`, 'are ends missing?')
    shared.writer.begin(this.uuid, ns, shared.labels.of(name, details))
    ends.push(endNs)
  }

  /** Comes before each event: ends the complete slices before it. */
  private advance(at: Time): number {
    this.shared.writing()
    const ns = this.shared.times.ns(at)
    if (ns < this.lastNs) {
      throw this.wrong(
        `an event at ${at}, before the last one`,
        'events of a track come in order of time, and outer slices before inner ones; those in any order are for spans(…)',
      )
    }
    this.close(ns)
    this.lastNs = ns
    return ns
  }

  private close(untilNs: number): void {
    const { ends } = this
    for (let end = ends.at(-1); end !== undefined && end <= untilNs; end = ends.at(-1)) {
      this.shared.writer.end(this.uuid, end)
      ends.pop()
    }
  }

  private wrong(found: string, hint: string): UsageError {
    return new UsageError(`track "${this.name}": ${found}\nhint: ${hint}`)
  }
}

/** A track of slices that may overlap. Those that do are in rows of their own. */
export class SpanTrack {
  private readonly rows: SliceTrack[] = []

  /** `add` defines a row. */
  constructor(private readonly add: () => SliceTrack) {}

  /** Begins a slice. Others may begin before it ends. */
  begin(at: Time, name: string, details?: Details): Span {
    const row = this.rowAt(at)
    row.begin(at, name, details)
    return new Span(row, name)
  }

  /** Writes a complete slice. */
  slice(start: Time, end: Time, name: string, details?: Details): void {
    this.rowAt(start).slice(start, end, name, details)
  }

  private rowAt(at: Time): SliceTrack {
    const free = this.rows.find((row) => row.isFree(at))
    if (free) return free
    const row = this.add()
    this.rows.push(row)
    return row
  }
}

/** A slice of a {@link SpanTrack} that has not ended. It may contain others. */
export class Span {
  private hasEnded = false

  constructor(
    private readonly row: SliceTrack,
    private readonly name: string,
  ) {}

  /** The same as on a {@link SliceTrack}: within this slice. */
  slice(start: Time, end: Time, name: string, details?: Details): void {
    this.running().slice(start, end, name, details)
  }

  /** An event without a duration, within this slice. */
  instant(at: Time, name: string, details?: Details): void {
    this.running().instant(at, name, details)
  }

  /** Ends the slice; `args` are added to its own. */
  end(at: Time, args?: TraceArgs): void {
    this.running().end(at, args)
    this.hasEnded = true
  }

  private running(): SliceTrack {
    if (!this.hasEnded) return this.row
    throw new UsageError(`span "${this.name}": it has ended\nhint: each span ends once; begin(…) returns a new one`)
  }
}

/** A track of a number over time. Its samples may come in any order. */
export class CounterTrack {
  constructor(
    private readonly shared: Shared,
    readonly name: string,
    private readonly uuid: number,
  ) {}

  /** Writes a value, which lasts until the next one. */
  sample(at: Time, value: number): void {
    const { shared } = this
    shared.writing()
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new UsageError(
        `counter "${this.name}": expected a finite number, found ${value}\nhint: leave out a sample that is not known`,
      )
    }
    shared.writer.counter(this.uuid, shared.times.ns(at), value)
  }
}
