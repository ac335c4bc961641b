import type { Arg } from './args.ts'
import { type Bounds, impossible, NEAR, type Wrong, wrongAmount } from './bounds.ts'
import { TIME_NS_MAX } from './limits.ts'

/**
 * Events on custom tracks, for data that ggml2perfetto has no events for, such as the requests of a server. Drawn below the
 * input's group. Times are whole nanoseconds since the input's origin, as everywhere.
 */
export type OwnEvent = OwnTrackEvent | OwnNameEvent | OwnSliceEvent | OwnInstantEvent | OwnSampleEvent

/** A process by its number; without a name, ''. `sortIndex`: its place among the others, if the file states one. */
export interface OwnProcess {
  readonly pid: number
  readonly name: string
  readonly sortIndex?: number | undefined
  /** Further texts about it, such as the titles of a browser's pages. */
  readonly labels?: readonly string[] | undefined
}

/** A thread of a process, as {@link OwnProcess}. */
export interface OwnThread extends Omit<OwnProcess, 'labels'> {
  readonly tid: number
}

/** A custom track, or a group of them: defined once, before its first use. It is shown if it contains events. */
export interface OwnTrackEvent {
  readonly kind: 'own-track'
  /** Small integer, unique in the input. */
  readonly id: number
  readonly name: string
  /** What the track shows and how it was measured. */
  readonly description: string
  /** Its contents: `slices` (default; instants too), the samples of a `counter`, or other tracks (`group`). */
  readonly holds?: 'slices' | 'counter' | 'group' | undefined
  /** Id of the group, or of the track of slices, that it is below; by default the input's group. */
  readonly group?: number | undefined
  /** Of a counter's values; `count` by default. */
  readonly unit?: 'bytes' | 'count' | 'ns' | undefined
  /** Its slices nest, and come in order of their starts, outer before inner; any others go to further rows. */
  readonly nests?: boolean | undefined
  /** It goes above the others of its group; without a group, it is main content of the input and goes above NVTX and calls of GPUs. */
  readonly leads?: boolean | undefined
  /** The process and the thread that its slices are of; -1 = not known. */
  readonly pid?: number | undefined
  readonly tid?: number | undefined
  /** Of a group: it is this process. Viewers show processes at the top, and SQL finds its slices by `process`. */
  readonly ofProcess?: OwnProcess | undefined
  /** Of a track in such a group: it is this thread. */
  readonly ofThread?: OwnThread | undefined
  /** Its name where viewers close the groups of the trace: it is a row at the top then, and of no thread. By default it stays in its group. */
  readonly atTop?: string | undefined
}

/** A new name of a track whose name was not known when it was defined. */
export interface OwnNameEvent {
  readonly kind: 'own-name'
  /** Id of the {@link OwnTrackEvent}. */
  readonly track: number
  readonly name: string
  readonly ofProcess?: OwnProcess | undefined
  readonly ofThread?: OwnThread | undefined
  readonly atTop?: string | undefined
}

/** Arguments of a slice or an instant: plain, or with interned keys and texts. */
export type OwnArgs = Readonly<Record<string, string | number>> | readonly Arg[]

/** Common fields of slices and instants. */
export interface OwnLabel {
  /** Id of the {@link OwnTrackEvent}. */
  readonly track: number
  readonly name: number
  /** Name of the category; by default `own`. */
  readonly category?: number | undefined
  readonly args?: OwnArgs | undefined
}

/**
 * An interval, in any order. Slices that overlap others of their track go to further rows of it; they are not cut, and nest
 * only where the track says so.
 */
export interface OwnSliceEvent extends OwnLabel {
  readonly kind: 'own-slice'
  readonly startNs: number
  readonly endNs: number
  /**
   * Ids of arrows, below 2^44: slices with the same id are joined in order of time, up to the slice that has it in
   * `flowEnds`.
   */
  readonly flows?: readonly number[] | undefined
  readonly flowEnds?: readonly number[] | undefined
}

/** An event without a duration. */
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

/** Their ranges. */
export const OWN_BOUNDS: Bounds<OwnEvent> = {
  'own-track': wrongAmount,
  'own-name': wrongAmount,
  'own-slice': (event) => tooFar('startNs', event.startNs) ?? tooFar('endNs', event.endNs),
  'own-instant': (event) => tooFar('atNs', event.atNs),
  'own-sample': (event) => tooFar('atNs', event.atNs),
}

/** The timeline reports other wrong times of own events: they are mistakes of the program. */
function tooFar(field: string, ns: number): Wrong | undefined {
  return Math.abs(ns) > TIME_NS_MAX ? impossible(field, NEAR, ns) : undefined
}
