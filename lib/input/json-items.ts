import { Ascii } from '../bytes/ascii.ts'
import { ByteCursor } from './byte-cursor.ts'
import { parsedJson, skipSpace } from './json-bytes.ts'
import { JsonWalk } from './json-walk.ts'

/** A value at one of the wanted places, or something wrong at an offset. */
export type JsonItem =
  | { readonly what: 'item'; readonly path: string; readonly byte: number; readonly value: unknown }
  | {
      /** `damaged`: no JSON there; `torn`: the input ends within a document; `large`: an item is too large. */
      readonly what: 'damaged' | 'torn' | 'large'
      readonly byte: number
      readonly detail: string
    }

/**
 * Finds items in JSON documents of any length, one after the other (JSON lines) or a single one, in bounded memory. Places are
 * paths of {@link JsonWalk}: `*` is an element of the outermost list, `experiments/*\/requests/*` a request of an experiment, the empty
 * text the outermost object itself. Values at other places are skipped. After damage it continues at the next line if the damage is in
 * the outermost value, else it ends.
 */
export class JsonItems {
  private readonly cursor: ByteCursor
  private walk: JsonWalk
  /** Values of the document that were too large, and are reported. */
  private large = 0
  /** The value at which the walk is comes after the report of one that was too large. */
  private isHeld = false
  /** Damage up to the end of the line is skipped. */
  private isInDamage = false
  private isAtEnd = false
  /** Was nothing read yet? A byte order mark may come first. */
  private isAtStart = true

  /** `paths`: places of items. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly paths: readonly string[],
  ) {
    this.cursor = new ByteCursor(source)
    this.walk = this.document()
  }

  /** Is it outside of all documents? */
  get isBetween(): boolean {
    return this.walk.depth === 0
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
      if (this.walk.hasEnded && !this.isHeld) this.walk = this.document()
      if (!this.walk.hasBegun && !this.toDocument()) return undefined
      const { walk } = this
      const isFound = this.isHeld || walk.next(isLast)
      this.isHeld = false
      if (walk.tooLarge > this.large) {
        this.large = walk.tooLarge
        this.isHeld = isFound
        return { what: 'large', byte: walk.largeByte, detail: 'expected at most 16777216 bytes, found more' }
      }
      if (isFound) return this.item()
      if (walk.damage) return this.damaged()
      if (!walk.hasEnded) return undefined
    }
    return undefined
  }

  private document(): JsonWalk {
    this.large = 0
    return new JsonWalk(this.cursor, (path, isList) => {
      if (this.enters(path, isList)) return 'enter'
      return this.paths.includes(path) ? 'take' : 'skip'
    })
  }

  /** Are there items in a value at this path? */
  private enters(path: string, isList: boolean): boolean {
    const inside = path === '' ? '' : `${path}/`
    if (isList) return this.paths.some((wanted) => wanted.startsWith(`${inside}*`))
    if (path === '' && this.paths.includes('')) return false
    return this.paths.some((wanted) => wanted !== path && wanted.startsWith(inside) && !wanted.startsWith(`${inside}*`))
  }

  /** Moves to the begin of a document; false: it is not in the window. */
  private toDocument(): boolean {
    const { cursor } = this
    if (this.isAtStart && cursor.available > 0) {
      this.isAtStart = false
      if (cursor.bytes[cursor.start] === 0xef) cursor.skip(Math.min(3, cursor.available))
    }
    if (this.isInDamage) this.skipLine()
    cursor.skip(skipSpace(cursor.bytes, cursor.start, cursor.end) - cursor.start)
    return cursor.available > 0
  }

  private item(): JsonItem {
    const { value: text, path, byte, depth } = this.walk
    const value = parsed(text)
    if (value !== undefined) return { what: 'item', path, byte, value }
    this.isInDamage = depth === 0
    return { what: 'damaged', byte, detail: `expected a JSON value, found ${JSON.stringify(text.slice(0, 40))}` }
  }

  private damaged(): JsonItem {
    const { damage, depth } = this.walk
    const { byte, expected, found } = damage!
    const isTorn = found === 'the end'
    this.isInDamage = depth === 0 && !isTorn
    this.isAtEnd = !this.isInDamage
    this.cursor.skip(Math.max(0, byte - this.cursor.offset))
    if (isTorn) return { what: 'torn', byte, detail: 'expected the rest of the document, found the end of the input' }
    return { what: 'damaged', byte, detail: `expected ${expected}, found ${found}` }
  }

  private skipLine(): void {
    const { cursor } = this
    const newline = cursor.bytes.indexOf(Ascii.LineFeed, cursor.start)
    const isFound = newline >= 0 && newline < cursor.end
    cursor.skip((isFound ? newline + 1 : cursor.end) - cursor.start)
    this.isInDamage = !isFound
  }
}

/** Numbers with 16 digits or more, which a double may not hold; texts are matched so that none is found in them. */
const LONG_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|(?<![\d.eE])-?\d{16,}(?![\d.eE])/gs
/** Words that Python and C++ write for numbers that JSON does not have. */
const NO_NUMBERS = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\b(?:NaN|nan|Infinity|inf)\b/gs

/** The value of a JSON text: integers with 16 digits or more as texts, NaN and infinity as null; undefined for no JSON. */
function parsed(text: string): unknown {
  const exact = /\d{16}/.test(text)
    ? text.replace(LONG_NUMBERS, (found) => (found.startsWith('"') ? found : `"${found}"`))
    : text
  try {
    return parsedJson(exact)
  } catch {
    try {
      return parsedJson(exact.replace(NO_NUMBERS, (found) => (found.startsWith('"') ? found : 'null')))
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
