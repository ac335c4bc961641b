import type { Arg } from '../model/args.ts'

export type { ArgValue } from '../model/args.ts'

/** An argument that changes from slice to slice. */
export type ExtraArg = Arg

/**
 * Arguments that many slices share. Make one per distinct set and pass the same object again: writers encode each set
 * once and recognise it by its `id`.
 */
export interface ArgSet {
  /** Small integer, unique in the trace. */
  readonly id: number
  readonly args: readonly ExtraArg[]
}
