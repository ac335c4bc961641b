import { Ascii } from '../../bytes/ascii.ts'
import { textIn } from '../../input/json-bytes.ts'
import { type EventScanner, Field } from './scanner.ts'

/** Kinds of ids that are told apart exactly. */
const KINDS = 2 ** 11
const NUMBERS = 2 ** 32

/**
 * The id of an asynchronous operation or an arrow, of a kind, with all that makes it unique: ids are the file's, but
 * `id2.local`, which is the process's; `scope` tells equal ones apart. A number below 2^43: exact for small whole numbers, a hash for
 * others, such as addresses. Undefined where there is no id.
 */
export function idKey(event: EventScanner, kind: number, pid: number): number | undefined {
  if (event.has(Field.id) && !event.has(Field.scope)) return plainKey(event, Field.id, kind)
  const id = scopedId(event, pid)
  if (id === undefined) return undefined
  const bytes = new TextEncoder().encode(id)
  return hashed(kind, bytes, 0, bytes.length)
}

/** The key of an id that is all that a field has. */
export function plainKey({ bytes, starts, ends }: EventScanner, field: number, kind: number): number | undefined {
  const isQuoted = bytes[starts[field]!] === Ascii.Quote
  const start = starts[field]! + (isQuoted ? 1 : 0)
  const end = ends[field]! - (isQuoted ? 1 : 0)
  if (start < 0) return undefined
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9 || number >= NUMBERS / 10 - 1 || kind >= KINDS) return hashed(kind, bytes, start, end)
    number = number * 10 + digit
  }
  return kind * NUMBERS + number
}

function scopedId(event: EventScanner, pid: number): string | undefined {
  const scope = event.has(Field.scope) ? textOf(event, Field.scope) : ''
  if (event.has(Field.id)) return `${scope}\n${textOf(event, Field.id)}`
  if (!event.has(Field.id2)) return undefined
  const { global, local } = membersOf(textOf(event, Field.id2))
  if (global !== undefined) return `${scope}\n${global}`
  return local === undefined ? undefined : `${scope}\n${local}\n${pid}`
}

function textOf({ bytes, starts, ends }: EventScanner, field: number): string {
  return textIn(bytes, starts[field]!, ends[field]!)
}

function membersOf(text: string): { readonly global?: unknown; readonly local?: unknown } {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** 43 bits of a hash (FNV-1a, twice). */
function hashed(kind: number, bytes: Uint8Array, start: number, end: number): number {
  let [low, high] = [0x811c9dc5 ^ kind, 0x01000193 + kind]
  for (let at = start; at < end; at++) {
    low = Math.imul(low ^ bytes[at]!, 0x01000193)
    high = Math.imul(high ^ bytes[at]!, 0x85ebca6b)
  }
  return (high >>> 21) * NUMBERS + (low >>> 0)
}
