import { Ascii } from '../bytes/ascii.ts'
/**
 * JSON as bytes, for documents that are not in memory as a whole. Places are offsets into a window `[.., end)` of the
 * document. Functions return the place where something ends, or a negative number: see {@link MORE} and {@link mistakeAt}.
 */

/** The window ends before the value does. */
export const MORE = -1

const DEPTH_MAX = 512

/** Kinds of bytes outside of texts; `Stop` ends the plain part of a text. */
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
/** White space of JSON: the zeros in a hole of a file are none. */
const blanks = new Uint8Array(256)
for (const byte of [Ascii.Tab, Ascii.LineFeed, Ascii.Return, Ascii.Blank]) blanks[byte] = 1

/** The result for a byte that JSON does not allow at a place. */
export function mistake(at: number): number {
  return -2 - at
}

/** The place of the mistake, or undefined where the result is none. */
export function mistakeAt(result: number): number | undefined {
  return result <= -2 ? -2 - result : undefined
}

/** The first place without white space, at most `end`. */
export function skipSpace(bytes: Uint8Array, at: number, end: number): number {
  while (at < end && blanks[bytes[at]!] === 1) at++
  return at
}

/**
 * The place after a text's closing quote; `at` is after the opening one. Control characters that are not escaped are part of a text, as
 * some programs write them; zeros are a hole of the file, and a line feed at which JSON continues is the end of a torn line.
 */
export function skipText(bytes: Uint8Array, at: number, end: number): number {
  for (;;) {
    // Four at a time: most bytes of a document are in texts.
    while (at + 3 < end) {
      const four = kinds[bytes[at]!]! | kinds[bytes[at + 1]!]! | kinds[bytes[at + 2]!]! | kinds[bytes[at + 3]!]!
      if (four >= Kind.Stop) break
      at += 4
    }
    while (at < end && kinds[bytes[at]!]! < Kind.Stop) at++
    if (at >= end) return MORE
    const byte = bytes[at]!
    if (byte === Ascii.Quote) return at + 1
    if (byte === 0) return mistake(at)
    if (byte === Ascii.LineFeed) {
      const next = afterLineFeed(bytes, at, end)
      if (next < 0) return next
      at = next
    } else at += byte === Ascii.Backslash ? 2 : 1
  }
}

/** What continues a document after a line. */
const continuing = new Uint8Array(256)
for (const byte of [Ascii.OpenCurly, Ascii.CloseCurly, Ascii.CloseSquare]) continuing[byte] = 1
/** What follows the closing quote of a text. */
const following = blanks.slice()
for (const byte of [Ascii.Comma, Ascii.Colon, Ascii.CloseCurly, Ascii.CloseSquare]) following[byte] = 1

/** The place after a line feed within a text and the white space after it; a mistake where the text was torn there. */
function afterLineFeed(bytes: Uint8Array, at: number, end: number): number {
  const next = skipSpace(bytes, at, end)
  if (next + 1 >= end) return MORE
  const byte = bytes[next]!
  const isTorn = byte === Ascii.Quote ? following[bytes[next + 1]!] === 0 : continuing[byte] === 1
  return isTorn ? mistake(at) : next
}

/**
 * The place after a value. The contents of lists and objects are checked in part only: texts and brackets are closed,
 * and nothing else is between them than words, numbers, commas and colons.
 */
export function skipValue(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return MORE
  const first = bytes[at]!
  if (first === Ascii.Quote) return skipText(bytes, at + 1, end)
  if (first === Ascii.OpenCurly || first === Ascii.OpenSquare) {
    whole.begin()
    return whole.skip(bytes, at, end)
  }
  const start = at
  while (at < end && kinds[bytes[at]!] === Kind.Scalar) at++
  if (at >= end) return MORE
  return at === start ? mistake(at) : at
}

/** Skips a value of any length, window by window, without keeping its bytes. */
export class ValueSkipper {
  /** After {@link MORE}: the place where the next window has to begin. */
  at = 0
  /** Number of lists and objects directly in the value. */
  items = 0
  private depth = 0
  private isIn: 'nothing' | 'text' | 'scalar' | 'brackets' = 'nothing'
  /** Open brackets, the outermost first. */
  private readonly openings = new Uint8Array(DEPTH_MAX)

  /** A value begins. */
  begin(): void {
    this.items = 0
    this.depth = 0
    this.isIn = 'nothing'
  }

  /** The place after the value in the window that begins at `at`. */
  skip(bytes: Uint8Array, at: number, end: number): number {
    if (at < end && this.isIn === 'nothing') {
      const kind = kinds[bytes[at]!]
      if (kind === Kind.Scalar) this.isIn = 'scalar'
      else if (bytes[at] === Ascii.Quote) {
        this.isIn = 'text'
        at++
      } else if (bytes[at] === Ascii.OpenCurly || bytes[at] === Ascii.OpenSquare) this.isIn = 'brackets'
      else return mistake(at)
    }
    if (this.isIn === 'scalar') {
      while (at < end && kinds[bytes[at]!] === Kind.Scalar) at++
      return at < end ? at : this.pause(at)
    }
    while (at < end) {
      if (this.isIn === 'text') {
        const after = skipText(bytes, at, end)
        if (after === MORE) return this.pause(textSoFar(bytes, at, end))
        if (after < 0 || this.depth === 0) return after
        this.isIn = 'brackets'
        at = after
      }
      at = this.skipBrackets(bytes, at, end)
      if (at < 0 || this.depth === 0) return at
    }
    return this.pause(end)
  }

  /** Skips to the end of the value, to after the opening quote of a text, or to the window's end. */
  private skipBrackets(bytes: Uint8Array, at: number, end: number): number {
    const { openings } = this
    let { depth } = this
    for (; at < end; at++) {
      const byte = bytes[at]!
      if (byte === Ascii.Quote) {
        this.isIn = 'text'
        at++
        break
      }
      if (byte === Ascii.OpenCurly || byte === Ascii.OpenSquare) {
        if (depth === DEPTH_MAX) return mistake(at)
        if (depth === 1) this.items++
        openings[depth++] = byte
      } else if (byte === Ascii.CloseCurly || byte === Ascii.CloseSquare) {
        if (openings[--depth]! + 2 !== byte) return mistake(at) // the code of a closing bracket is that of the opening one and 2
        if (depth === 0) {
          at++
          break
        }
      } else if (kinds[byte] !== Kind.Scalar && kinds[byte] !== Kind.Between && blanks[byte] !== 1) return mistake(at)
    }
    this.depth = depth
    return at
  }

  private pause(at: number): number {
    this.at = at
    return MORE
  }
}

/** For values within one window. */
const whole = new ValueSkipper()

/** The place to continue a text that does not end in the window: not between a backslash and the byte it escapes. */
function textSoFar(bytes: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && bytes[at - 1] === Ascii.Backslash) at--
  return end - ((end - at) % 2)
}

const decoder = new TextDecoder()

/** The value of a JSON text without its quotes; the text itself where its escapes are no JSON. */
export function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return String(parsedJson(`"${text}"`))
  } catch {
    return text
  }
}

const TEXTS = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)/gs
// biome-ignore lint/suspicious/noControlCharactersInRegex: those that JSON wants escaped
const CONTROL = /[\x01-\x1f]/g

/** The value of a JSON text, in whose texts control characters may be unescaped. Throws SyntaxError as JSON.parse does. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const escaped = text.replace(TEXTS, (found) =>
      found.replace(CONTROL, (control) => JSON.stringify(control).slice(1, -1)),
    )
    if (escaped === text) throw error
    return JSON.parse(escaped)
  }
}

/** The text `[start, end)`, which may be in quotes. */
export function textIn(bytes: Uint8Array, start: number, end: number): string {
  const isQuoted = bytes[start] === Ascii.Quote
  const text = decoder.decode(isQuoted ? bytes.subarray(start + 1, end - 1) : bytes.subarray(start, end))
  return isQuoted ? unescaped(text) : text
}

/** Is it JSON's null? No other value begins with its letter. */
export const isNull = (bytes: Uint8Array, start: number) => bytes[start] === 0x6e
