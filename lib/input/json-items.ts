import { Ascii } from '../bytes/ascii.ts'
import { ByteCursor } from './byte-cursor.ts'
import { MORE, mistakeAt, skipSpace, skipText, skipValue, textIn, ValueSkipper } from './json-bytes.ts'

/** Longest item that is decoded; longer ones are skipped. */
export const ITEM_BYTES_MAX = 16 << 20
/** Open lists and objects around items. */
const DEPTH_MAX = 16

/** A value at one of the wanted places, or something wrong at an offset. */
export type JsonItem =
  | { readonly what: 'item'; readonly path: string; readonly byte: number; readonly value: unknown }
  | {
      /** `damaged`: no JSON there; `torn`: the input ends within a document; `large`: an item is too large. */
      readonly what: 'damaged' | 'torn' | 'large'
      readonly byte: number
      readonly detail: string
    }

interface Open {
  readonly isList: boolean
  readonly path: string
  /** Was there a value in it? */
  hasValue: boolean
}

/**
 * Finds items in JSON documents of any length, one after the other (JSON lines) or a single one, in bounded memory. Places are
 * keys joined by points, elements of lists `[]`: `[]` is an element of the outermost list, `experiments[].requests[]` a request of an
 * experiment, the empty text the outermost object itself. Values at other places are skipped. After damage it continues at the next
 * line if the damage is in the outermost value, else it ends.
 */
export class JsonItems {
  private readonly cursor: ByteCursor
  private readonly open: Open[] = []
  private readonly skipper = new ValueSkipper()
  /** A value that is larger than the window is skipped. */
  private isSkipping = false
  /** Damage up to the end of the line is skipped. */
  private isInDamage = false
  private isAtEnd = false
  /** Was nothing read yet? A byte order mark may come first. */
  private isAtStart = true
  /** Bytes of a window that did not contain the end of an item: it is searched again in one of twice the size. */
  private searched = 0

  /** `paths`: places of items. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly paths: readonly string[],
  ) {
    this.cursor = new ByteCursor(source)
  }

  /** Is it outside of all documents? */
  get isBetween(): boolean {
    return this.open.length === 0
  }

  /** Reads the next chunk; false at the end of the input. */
  fill(): Promise<boolean> {
    return this.cursor.fill()
  }

  async close(): Promise<void> {
    await this.cursor.close()
  }

  /** The next item in the window; undefined: there is none. `isLast`: no more bytes follow. */
  next(isLast: boolean): JsonItem | undefined {
    while (!this.isAtEnd) {
      const found = this.step(isLast)
      if (found === 'more') return isLast ? this.atEnd() : undefined
      if (found) return found
    }
    return undefined
  }

  private step(isLast: boolean): JsonItem | 'more' | undefined {
    const { cursor } = this
    if (this.isInDamage) return this.skipLine()
    if (this.isSkipping) return this.skipOn()
    if (!isLast && cursor.available < 2 * this.searched) return 'more'
    if (this.isAtStart && cursor.available > 0) {
      this.isAtStart = false
      if (cursor.bytes[cursor.start] === 0xef) cursor.skip(Math.min(3, cursor.available))
    }
    this.moveTo(skipSpace(cursor.bytes, cursor.start, cursor.end))
    if (cursor.available === 0) return 'more'
    const around = this.open.at(-1)
    const byte = cursor.bytes[cursor.start]!
    if (around && byte === (around.isList ? Ascii.CloseSquare : Ascii.CloseCurly)) {
      this.open.pop()
      this.moveTo(cursor.start + 1)
      return undefined
    }
    if (around?.hasValue) {
      if (byte !== Ascii.Comma) return this.damaged('a comma or the end of a list or an object', cursor.start)
      around.hasValue = false
      this.moveTo(cursor.start + 1)
      return undefined
    }
    return this.member(around, isLast)
  }

  /** Reads a key, if the value has one, and the value. */
  private member(around: Open | undefined, isLast: boolean): JsonItem | 'more' | undefined {
    const { bytes, start, end } = this.cursor
    if (!around || around.isList) return this.value(start, around ? `${around.path}[]` : '', isLast)
    if (bytes[start] !== Ascii.Quote) return this.damaged('a key', start)
    const keyEnd = skipText(bytes, start + 1, end)
    if (keyEnd === MORE) return this.isTooLong() ? this.damaged('a key', start) : this.more()
    if (keyEnd < 0) return this.damaged('a key', mistakeAt(keyEnd)!)
    const colon = skipSpace(bytes, keyEnd, end)
    if (colon >= end) return 'more'
    if (bytes[colon] !== Ascii.Colon) return this.damaged('a colon', colon)
    const at = skipSpace(bytes, colon + 1, end)
    if (at >= end) return 'more'
    const key = textIn(bytes, start, keyEnd)
    return this.value(at, around.path === '' ? key : `${around.path}.${key}`, isLast)
  }

  private value(at: number, path: string, isLast: boolean): JsonItem | 'more' | undefined {
    const { bytes, end } = this.cursor
    const first = bytes[at]
    if (this.enters(first, path)) {
      if (this.open.length >= DEPTH_MAX) return this.damaged(`at most ${DEPTH_MAX} lists and objects in each other`, at)
      this.begun()
      this.open.push({ isList: first === Ascii.OpenSquare, path, hasValue: false })
      this.moveTo(at + 1)
      return undefined
    }
    const isItem = this.paths.includes(path)
    if (!isItem) {
      this.moveTo(at)
      this.skipper.begin()
      this.isSkipping = true
      return undefined
    }
    const after = skipValue(bytes, at, end)
    if (after === MORE) {
      if (isLast && isScalar(bytes, at, end)) return this.item(at, end, path)
      if (!this.isTooLong()) return this.more()
      const found = this.problem('large', `expected at most ${ITEM_BYTES_MAX} bytes, found more`, at)
      this.moveTo(at)
      this.skipper.begin()
      this.isSkipping = true
      return found
    }
    return after < 0 ? this.damaged('a value', mistakeAt(after)!) : this.item(at, after, path)
  }

  private item(at: number, after: number, path: string): JsonItem {
    const byte = this.offsetOf(at)
    const text = decoder.decode(this.cursor.bytes.subarray(at, after))
    const value = parsed(text)
    this.begun()
    this.moveTo(after)
    if (value === undefined) {
      this.isInDamage = this.open.length === 0
      const detail = `expected a JSON value, found ${JSON.stringify(text.slice(0, 40))}`
      return { what: 'damaged', byte, detail }
    }
    return { what: 'item', path, byte, value }
  }

  /** The list or object around, if any, contains a value. */
  private begun(): void {
    const around = this.open.at(-1)
    if (around) around.hasValue = true
  }

  /** Are there items in the value that begins with this byte? */
  private enters(first: number | undefined, path: string): boolean {
    const isList = first === Ascii.OpenSquare
    if (!isList && first !== Ascii.OpenCurly) return false
    const inside = isList ? `${path}[]` : path === '' ? '' : `${path}.`
    return this.paths.some((wanted) => {
      if (isList) return wanted.startsWith(inside)
      return inside === ''
        ? wanted !== '' && !wanted.startsWith('[]') && !this.paths.includes('')
        : wanted.startsWith(inside)
    })
  }

  private skipOn(): JsonItem | 'more' | undefined {
    const { cursor } = this
    const after = this.skipper.skip(cursor.bytes, cursor.start, cursor.end)
    if (after === MORE) {
      this.moveTo(this.skipper.at)
      return 'more'
    }
    this.isSkipping = false
    if (after < 0) return this.damaged('a value', mistakeAt(after)!)
    this.begun()
    this.moveTo(after)
    return undefined
  }

  private skipLine(): 'more' | undefined {
    const { cursor } = this
    const newline = cursor.bytes.indexOf(Ascii.LineFeed, cursor.start)
    const isFound = newline >= 0 && newline < cursor.end
    this.moveTo(isFound ? newline + 1 : cursor.end)
    this.isInDamage = !isFound
    return isFound ? undefined : 'more'
  }

  private damaged(expected: string, at: number): JsonItem {
    const { bytes, end } = this.cursor
    const rest = decoder.decode(bytes.subarray(at, Math.min(end, at + 20)))
    const found = this.problem('damaged', `expected ${expected}, found ${JSON.stringify(rest)}`, at)
    this.isInDamage = this.open.length === 0
    this.isAtEnd = this.open.length > 0
    this.isSkipping = false
    this.moveTo(at)
    return found
  }

  private atEnd(): JsonItem | undefined {
    this.isAtEnd = true
    const isWhole = this.open.length === 0 && !this.isSkipping && this.cursor.available === 0
    if (isWhole || this.isInDamage) return undefined
    return this.problem('torn', 'expected the rest of the document, found the end of the input', this.cursor.end)
  }

  private problem(what: 'damaged' | 'torn' | 'large', detail: string, at: number): JsonItem {
    return { what, byte: this.offsetOf(at), detail }
  }

  private more(): 'more' {
    this.searched = this.cursor.available
    return 'more'
  }

  private isTooLong(): boolean {
    return this.cursor.available > ITEM_BYTES_MAX
  }

  private offsetOf(at: number): number {
    return this.cursor.offset + at - this.cursor.start
  }

  private moveTo(at: number): void {
    if (at > this.cursor.start) this.searched = 0
    this.cursor.skip(at - this.cursor.start)
  }
}

const decoder = new TextDecoder()

/** A number or a word that the end of the input may end. */
function isScalar(bytes: Uint8Array, at: number, end: number): boolean {
  return /^[-\w.+]+$/.test(decoder.decode(bytes.subarray(at, Math.min(end, at + 40)))) && end - at < 40
}

/** Numbers with 16 digits or more, which a double may not hold; texts are matched so that none is found in them. */
const LONG_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\d.eE])-?\d{16,}(?![\d.eE])/g
/** Words that Python and C++ write for numbers that JSON does not have. */
const NO_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|nan|Infinity|inf)\b/g

/** The value of a JSON text: integers with 16 digits or more as texts, NaN and infinity as null; undefined for no JSON. */
function parsed(text: string): unknown {
  const exact = /\d{16}/.test(text)
    ? text.replace(LONG_NUMBERS, (found) => (found.startsWith('"') ? found : `"${found}"`))
    : text
  try {
    return JSON.parse(exact)
  } catch {
    try {
      return JSON.parse(exact.replace(NO_NUMBERS, (found) => (found.startsWith('"') ? found : 'null')))
    } catch {
      return undefined
    }
  }
}

/** An integer of any size, from a number or a text of digits; undefined for anything else. */
export function bigOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined
  return typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? BigInt(value) : undefined
}
