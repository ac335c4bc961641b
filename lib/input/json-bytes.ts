import { Ascii } from '../ascii.ts'
/**
 * JSON as bytes, for documents that are not held whole. Places are offsets into a window `[.., end)` of the document; a
 * result that is a place tells where something ends, any other one is negative: see {@link MORE} and {@link mistakeAt}.
 */

/** The window ends before the value does. */
export const MORE = -1

const DEPTH_MAX = 512
/** What is open, the outermost first. Values are skipped one at a time. */
const openings = new Uint8Array(DEPTH_MAX)

/** What a byte may be outside of texts; and from `Stop` on, what ends the plain part of one. */
enum Kind {
  Between = 1,
  Scalar = 2,
  Stop = 4,
}
const kinds = new Uint8Array(256)
kinds.fill(Kind.Stop, 0, 0x20)
for (const byte of [Ascii.Quote, Ascii.Backslash]) kinds[byte] = Kind.Stop
for (const byte of [Ascii.Tab, Ascii.Blank, Ascii.Comma, Ascii.Colon]) kinds[byte] = Kind.Between
for (const byte of new TextEncoder().encode('+-.0123456789')) kinds[byte] = Kind.Scalar
for (const byte of new TextEncoder().encode('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'))
  kinds[byte] = Kind.Scalar

/** The result that says that the byte at a place cannot be. */
export function mistake(at: number): number {
  return -2 - at
}

/** The place of the mistake that a result tells of, or undefined. */
export function mistakeAt(result: number): number | undefined {
  return result <= -2 ? -2 - result : undefined
}

/** The first place that is no white space, at most `end`; control characters are passed, too. */
export function skipSpace(bytes: Uint8Array, at: number, end: number): number {
  while (at < end && bytes[at]! <= 0x20) at++
  return at
}

/** Where a text ends, behind its closing quote; `at` is behind the opening one. */
export function skipText(bytes: Uint8Array, at: number, end: number): number {
  for (;;) {
    // Four at a time: most of a document is in texts.
    while (at + 3 < end) {
      const four = kinds[bytes[at]!]! | kinds[bytes[at + 1]!]! | kinds[bytes[at + 2]!]! | kinds[bytes[at + 3]!]!
      if (four >= Kind.Stop) break
      at += 4
    }
    while (at < end && kinds[bytes[at]!]! < Kind.Stop) at++
    if (at >= end) return MORE
    if (bytes[at] === Ascii.Quote) return at + 1
    if (bytes[at] !== Ascii.Backslash) return mistake(at)
    at += 2
  }
}

/**
 * Where a value ends. What is in a list or an object is only looked at as far as it takes: its texts and brackets are
 * closed, and nothing else stands between them than words, numbers, commas and colons.
 */
export function skipValue(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return MORE
  const first = bytes[at]!
  if (first === Ascii.Quote) return skipText(bytes, at + 1, end)
  if (first === Ascii.OpenCurly || first === Ascii.OpenSquare) return skipNested(bytes, at, end)
  const start = at
  while (at < end && kinds[bytes[at]!] === Kind.Scalar) at++
  if (at >= end) return MORE
  return at === start ? mistake(at) : at
}

function skipNested(bytes: Uint8Array, at: number, end: number): number {
  let depth = 0
  while (at < end) {
    const byte = bytes[at]!
    if (byte === Ascii.Quote) {
      at = skipText(bytes, at + 1, end)
      if (at < 0) return at
      continue
    }
    if (byte === Ascii.OpenCurly || byte === Ascii.OpenSquare) {
      if (depth === DEPTH_MAX) return mistake(at)
      openings[depth++] = byte
    } else if (byte === Ascii.CloseCurly || byte === Ascii.CloseSquare) {
      if (openings[--depth]! + 2 !== byte) return mistake(at) // the code of a closing bracket is that of the opening one and 2
      if (depth === 0) return at + 1
    } else if (byte > 0x20 && kinds[byte] !== Kind.Scalar && kinds[byte] !== Kind.Between) return mistake(at)
    at++
  }
  return MORE
}

const decoder = new TextDecoder()

/** A text of JSON without its quotes: what it says. One whose escapes are no JSON is taken as it stands. */
export function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return text
  }
}

/** The text `[start, end)`, which may be in quotes. */
export function textIn(bytes: Uint8Array, start: number, end: number): string {
  const isQuoted = bytes[start] === Ascii.Quote
  const text = decoder.decode(isQuoted ? bytes.subarray(start + 1, end - 1) : bytes.subarray(start, end))
  return isQuoted ? unescaped(text) : text
}
