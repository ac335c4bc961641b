/** An argument's value: `name` is an id of the shared `Names` (interned in the output), `text` is written as it is. */
export type ArgValue =
  | { readonly int: number }
  | { readonly double: number }
  /** An integer of 64 bits, with its sign. */
  | { readonly big: bigint }
  | { readonly pointer: number }
  | { readonly name: number }
  | { readonly text: string }

/** An argument that changes from slice to slice. `key` is an id of the shared `Names`. */
export type ExtraArg = ArgValue & { readonly key: number }

/**
 * Arguments that many slices share. Make one per distinct set and pass the same object again: writers encode each set
 * once and recognise it by its `id`.
 */
export interface ArgSet {
  /** Small integer, unique in the trace. */
  readonly id: number
  readonly args: readonly ExtraArg[]
}
