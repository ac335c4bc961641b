import type { Arg } from './args.ts'

/**
 * Events on tracks of one's own: whatever ggml2perfetto knows nothing of, such as the requests of a server, drawn below
 * the input's group. Times are whole nanoseconds since the input's origin, as everywhere.
 */
export type OwnEvent = OwnTrackEvent | OwnNameEvent | OwnSliceEvent | OwnInstantEvent | OwnSampleEvent

/** A track of one's own, or a group of them: defined once, before its first use. It is shown if something is on it. */
export interface OwnTrackEvent {
  readonly kind: 'own-track'
  /** Small integer, unique in the input. */
  readonly id: number
  readonly name: string
  /** Says what the track is and how it was measured. */
  readonly description: string
  /** What it holds: `slices` (default, instants too), the samples of a `counter`, or other tracks (`group`). */
  readonly holds?: 'slices' | 'counter' | 'group' | undefined
  /** Id of the group that it lies in; by default it lies directly below the input's. */
  readonly group?: number | undefined
  /** Of a counter's values; `count` by default. */
  readonly unit?: 'bytes' | 'count' | 'ns' | undefined
  /** Its slices are nested by time, and come in order of their starts, outer before inner: what does not goes to further rows. */
  readonly nests?: boolean | undefined
  /** It is what the input is about, and stands above the rows of GPUs and of NVTX; by default below all others. */
  readonly leads?: boolean | undefined
}

/** A track is called otherwise than was known when it was defined. */
export interface OwnNameEvent {
  readonly kind: 'own-name'
  /** Id of the {@link OwnTrackEvent}. */
  readonly track: number
  readonly name: string
}

/** Arguments of a slice or an instant: as given, or with keys and texts that are interned already. */
export type OwnArgs = Readonly<Record<string, string | number>> | readonly Arg[]

/** What slices and instants have in common. */
interface OwnLabel {
  /** Id of the {@link OwnTrackEvent}. */
  readonly track: number
  readonly name: number
  /** Name of the category; by default `own`. */
  readonly category?: number | undefined
  readonly args?: OwnArgs | undefined
}

/**
 * A stretch of time, in any order. Stretches that overlap others of their track go to further rows of it; none is cut
 * or nested, unless the track says so.
 */
export interface OwnSliceEvent extends OwnLabel {
  readonly kind: 'own-slice'
  readonly startNs: number
  readonly endNs: number
  /**
   * Arrows, by ids below 2^44: slices that carry the same one are joined in order of time, until one that is among
   * the `flowEnds` of a slice.
   */
  readonly flows?: readonly number[] | undefined
  readonly flowEnds?: readonly number[] | undefined
}

/** Something that takes no time. */
export interface OwnInstantEvent extends OwnLabel {
  readonly kind: 'own-instant'
  readonly atNs: number
}

/** A sample of a counter. */
export interface OwnSampleEvent {
  readonly kind: 'own-sample'
  readonly track: number
  readonly atNs: number
  readonly value: number
}
