import type { Arg } from '../model/args.ts'

/**
 * Arguments that many slices share. Make one per distinct set and pass the same object again: writers encode each set
 * once and recognise it by its `id`.
 */
export interface ArgSet {
  /** Small integer, unique in the trace. */
  readonly id: number
  readonly args: readonly Arg[]
}

/** Name, category, arguments and arrows of a slice. */
export interface Label {
  /** Labels with the same id differ only in `extra`, the arrows and `launched`: writers encode the rest once. */
  readonly id?: number | undefined
  /** An id of the shared `Names`, or a text that is not interned (for names that rarely repeat). */
  readonly name: number | string
  /** Its kind, on which SQL can rely (`slice.category`): each slice of ours has one. Empty: none. */
  readonly category: string
  readonly args?: ArgSet | undefined
  /**
   * Slices with the same text have the same colour; by default, those with the same name (without digits). An id of the shared
   * `Names`, or a text that is not interned.
   */
  readonly colour?: number | string | undefined
  /** Arguments that differ from slice to slice. */
  readonly extra?: readonly Arg[] | undefined
  /** Ids of arrows: slices with the same id are connected in order of time. */
  readonly flows?: readonly number[] | undefined
  /** Ids of arrows that end here: later slices with these ids are not connected with earlier ones. */
  readonly flowEnds?: readonly number[] | undefined
  /** Ids of arrows from here to one other slice, which begins later, but may be written earlier. */
  readonly arrowsOut?: readonly number[] | undefined
  /** Ids of arrows to here. */
  readonly arrowsIn?: readonly number[] | undefined
  /** Id of the `GpuWork` that the slice launched. */
  readonly launched?: number | undefined
}
