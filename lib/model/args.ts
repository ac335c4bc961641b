/** An argument's value: `name` is an id of the shared `Names` (interned in the output), `text` is written in place. */
export type ArgValue =
  | { readonly int: number }
  | { readonly double: number }
  /** A signed 64-bit integer. */
  | { readonly big: bigint }
  | { readonly pointer: number }
  | { readonly name: number }
  | { readonly text: string }

/** An argument of a slice. `key` is an id of the shared `Names`. */
export type Arg = ArgValue & { readonly key: number }

/** Are these arguments, and not values by their keys? */
export function areArgs<T>(args: T | readonly Arg[]): args is readonly Arg[] {
  return Array.isArray(args)
}
