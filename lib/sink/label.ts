import type { Arg } from '../model/args.ts'

/** The fixed words for what a slice is; each slice has one, and SQL can rely on them (`slice.category`). */
export type Category =
  | 'phase'
  | 'token'
  | 'graph'
  | 'operator'
  | 'barrier'
  | 'copy'
  | 'expert'
  | 'range'
  | 'nvtx'
  | 'state'
  | 'fault'
  | 'tensor'
  | 'nvtx_gpu'
  | 'api'
  | 'gpu'
  | 'sync'
  | 'issue'
  | 'own'

/**
 * Arguments that many slices share. Make one per distinct set and pass the same object again: writers encode each set
 * once and recognise it by its `id`.
 */
export interface ArgSet {
  /** Small integer, unique in the trace. */
  readonly id: number
  readonly args: readonly Arg[]
}

/** What the viewer shows of a slice. */
export interface Label {
  /** Labels with the same id differ in `extra`, the arrows and `launched` only: writers encode the rest once. */
  readonly id?: number | undefined
  /** An id of the shared `Names`, or a text that is written as it is (for names that hardly repeat). */
  readonly name: number | string
  /** Tracks that a program adds have categories of their own. */
  readonly category: Category | (string & {})
  readonly args?: ArgSet | undefined
  /** Arguments that change from slice to slice. */
  readonly extra?: readonly Arg[] | undefined
  /** Arrows: slices that carry the same id are joined in order of time. */
  readonly flows?: readonly number[] | undefined
  /** Arrows that end here: later slices with these ids are not joined with earlier ones. */
  readonly flowEnds?: readonly number[] | undefined
  /** Id of the `GpuWork` that the slice launched. */
  readonly launched?: number | undefined
}
