/** An argument's value: `name` is an id of the shared `Names` (interned in the output), `text` is written as it is. */
export type ArgValue =
  | { readonly int: number }
  | { readonly double: number }
  /** An integer of 64 bits, with its sign. */
  | { readonly big: bigint }
  | { readonly pointer: number }
  | { readonly name: number }
  | { readonly text: string }

/** An argument of a slice. `key` is an id of the shared `Names`. */
export type Arg = ArgValue & { readonly key: number }
