/**
 * Events on tracks of one's own: whatever ggml2perfetto knows nothing of, such as the requests of a server, drawn below
 * the input's group. Times are whole nanoseconds since the input's origin, as everywhere.
 */
export type OwnEvent = OwnTrackEvent | OwnSliceEvent | OwnInstantEvent | OwnSampleEvent

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
}

/** Arguments of a slice or an instant. */
export type OwnArgs = Readonly<Record<string, string | number>>

/**
 * A stretch of time, in any order. Stretches that overlap others of their track go to further rows of it; none is cut
 * or nested.
 */
export interface OwnSliceEvent {
  readonly kind: 'own-slice'
  /** Id of the {@link OwnTrackEvent}. */
  readonly track: number
  readonly name: number
  readonly startNs: number
  readonly endNs: number
  readonly args?: OwnArgs | undefined
}

/** Something that takes no time. */
export interface OwnInstantEvent {
  readonly kind: 'own-instant'
  readonly track: number
  readonly name: number
  readonly atNs: number
  readonly args?: OwnArgs | undefined
}

/** A sample of a counter. */
export interface OwnSampleEvent {
  readonly kind: 'own-sample'
  readonly track: number
  readonly atNs: number
  readonly value: number
}
