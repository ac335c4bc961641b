/** A value of JSON, or an integer of 64 bits. */
export type Nested =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | readonly Nested[]
  | { readonly [key: string]: Nested }

/** The value of a JSON text; the text itself where it is none. */
export function nestedOf(text: string): Nested {
  try {
    return JSON.parse(text) as Nested
  } catch {
    return text
  }
}

/** The JSON of a value. Lone surrogates become U+FFFD, as in every conversion to UTF-8. */
export function jsonOf(value: Nested): string {
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === 'bigint') return `${part}`
    return typeof part === 'string' ? part.replace(/\p{Surrogate}/gu, '\ufffd') : part
  })
  return text ?? 'null'
}

/** An argument's value: `name` is an id of the shared `Names` (interned in the output), `text` is written in place. */
export type ArgValue =
  | { readonly int: number }
  | { readonly double: number }
  /** A signed 64-bit integer. */
  | { readonly big: bigint }
  | { readonly pointer: number }
  | { readonly name: number }
  | { readonly text: string }
  /** A value with further ones in it, or true, false, null; or an id of the shared `Names`: its JSON. */
  | { readonly json: number | Nested }

/** An argument of a slice. `key` is an id of the shared `Names`. */
export type Arg = ArgValue & { readonly key: number }

/** An argument by its fields: one of the values is defined. Arguments of slices have fields that are undefined: they are read, not looked for. */
export interface ArgFields {
  readonly key: number
  readonly int?: number
  readonly double?: number
  readonly big?: bigint
  readonly pointer?: number
  readonly name?: number
  readonly text?: string
  readonly json?: number | Nested
}

/** Are these arguments, and not values by their keys? */
export function areArgs<T>(args: T | readonly Arg[]): args is readonly Arg[] {
  return Array.isArray(args)
}
