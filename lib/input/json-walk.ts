import { Ascii } from '../bytes/ascii.ts'
import type { ByteCursor } from './byte-cursor.ts'
import { MORE, mistakeAt, skipSpace, skipText, skipValue, textIn, ValueSkipper } from './json-bytes.ts'

/** What to do with a value: read its members or items, get it as a whole, or pass over it. */
export type Choice = 'enter' | 'take' | 'skip'

/** Largest value that is taken, in bytes. */
const VALUE_BYTES_MAX = 16 << 20
/** Longest key with the blanks around it, in bytes. */
const KEY_BYTES_MAX = 1 << 16
const DEPTH_MAX = 64

/** Why a walk ended early. */
export interface Damage {
  /** Offset in the document. */
  readonly byte: number
  readonly expected: string
  readonly found: string
}

interface Level {
  readonly path: string
  readonly isList: boolean
  /** A comma is needed before the next member. */
  hasItems: boolean
}

/**
 * Walks through a JSON document of any size and returns the values that `choose` takes, one by one. `choose` gets the path of a
 * value, with `*` for an item of a list: `buffers/*`, and whether it is a list; the document itself is the empty path. Memory: one
 * value that is taken.
 */
export class JsonWalk {
  /** Path of the value. */
  path = ''
  /** Offset of the value in the document. */
  byte = 0
  /** Set where the document cannot be read further. */
  damage: Damage | undefined
  /** Number of values that were too large to be taken. */
  tooLarge = 0
  /** Offset of the last of these. */
  largeByte = 0
  /** Something was read of the document. */
  hasBegun = false
  private text: Uint8Array = new Uint8Array(0)
  private readonly levels: Level[] = []
  private readonly skipper = new ValueSkipper()
  private isSkipping = false
  /** A window of fewer bytes does not contain the next value. */
  private needed = 0

  constructor(
    private readonly cursor: ByteCursor,
    private readonly choose: (path: string, isList: boolean) => Choice,
  ) {}

  /** The whole document was read, or is damaged. */
  get hasEnded(): boolean {
    return this.damage !== undefined || (this.hasBegun && this.levels.length === 0 && !this.isSkipping)
  }

  /** Number of open objects and lists. */
  get depth(): number {
    return this.levels.length
  }

  /** The text of the value; valid until the next {@link next}. */
  get value(): string {
    return decoder.decode(this.text)
  }

  /** Moves to the next value that is taken; false where the window does not contain one. `isLast`: no bytes follow. */
  next(isLast: boolean): boolean {
    const { cursor } = this
    while (!this.hasEnded) {
      if (!isLast && cursor.available < this.needed) return false
      this.needed = 0
      const before = cursor.offset
      if (this.step(isLast)) return true
      if (this.damage || cursor.offset > before || this.hasEnded) continue
      if (isLast) this.fail(cursor.end, 'the rest of the document')
      return false
    }
    return false
  }

  /** Reads the next piece; true where it is a value that is taken. Without progress, more bytes are needed. */
  private step(isLast: boolean): boolean {
    if (this.isSkipping) return this.skip()
    const { cursor } = this
    const { bytes, end } = cursor
    const level = this.levels.at(-1)
    let at = skipSpace(bytes, cursor.start, end)
    if (at >= end) return this.moveTo(at)
    const close = level?.isList ? Ascii.CloseSquare : Ascii.CloseCurly
    if (level && bytes[at] === close) {
      this.levels.pop()
      return this.moveTo(at + 1)
    }
    if (level?.hasItems) {
      if (bytes[at] !== Ascii.Comma) return this.fail(at, 'a comma or the end of an object or list')
      at = skipSpace(bytes, at + 1, end)
    }
    let path = level ? `${level.path}/*` : ''
    if (level && !level.isList) {
      const keyEnd = this.keyEnd(at)
      if (keyEnd < 0) return false
      path = `${level.path}/${textIn(bytes, at, keyEnd)}`
      at = skipSpace(bytes, skipSpace(bytes, keyEnd, end) + 1, end)
    }
    if (at >= end) return false
    return this.valueAt(at, path.replace(/^\//, ''), isLast)
  }

  /** The place after the key at `at`, whose colon is in the window; -1: damage, or more bytes are needed. */
  private keyEnd(at: number): number {
    const { bytes, start, end } = this.cursor
    if (at >= end) return -1
    if (bytes[at] !== Ascii.Quote) this.fail(at, 'a key')
    const keyEnd = skipText(bytes, at + 1, end)
    const colon = keyEnd < 0 ? end : skipSpace(bytes, keyEnd, end)
    if (keyEnd < MORE || (colon < end && bytes[colon] !== Ascii.Colon)) this.fail(at, 'a key and a colon')
    else if ((colon >= end ? end : colon) - start > KEY_BYTES_MAX) this.fail(at, 'a shorter key')
    return this.damage || colon >= end ? -1 : keyEnd
  }

  private valueAt(at: number, path: string, isLast: boolean): boolean {
    const { cursor } = this
    const { bytes, end } = cursor
    const first = bytes[at]
    const isOpen = first === Ascii.OpenCurly || first === Ascii.OpenSquare
    const choice = this.choose(path, first === Ascii.OpenSquare)
    if (choice === 'enter' && isOpen) {
      if (this.levels.length === DEPTH_MAX) return this.fail(at, `at most ${DEPTH_MAX} levels`)
      this.begin()
      this.levels.push({ path, isList: first === Ascii.OpenSquare, hasItems: false })
      return this.moveTo(at + 1)
    }
    if (choice !== 'take') return this.beginSkipping(at)
    let after = skipValue(bytes, at, end)
    // A number at the end of the document needs no byte after it.
    if (after === MORE && isLast && !isOpen && first !== Ascii.Quote) after = end
    if (after === MORE && end - at <= VALUE_BYTES_MAX) {
      this.needed = isLast ? 0 : 2 * cursor.available
      return false
    }
    if (after < MORE) return this.fail(mistakeAt(after)!, 'the rest of a value')
    if (after === MORE || after - at > VALUE_BYTES_MAX) {
      this.tooLarge++
      this.largeByte = cursor.offset + at - cursor.start
      return this.beginSkipping(at)
    }
    this.path = path
    this.byte = cursor.offset + at - cursor.start
    this.text = bytes.subarray(at, after)
    this.begin()
    this.moveTo(after)
    return true
  }

  /** A value begins. */
  private begin(): void {
    const level = this.levels.at(-1)
    if (level) level.hasItems = true
    this.hasBegun = true
  }

  private beginSkipping(at: number): boolean {
    this.begin()
    this.isSkipping = true
    this.skipper.begin()
    return this.moveTo(at)
  }

  private skip(): boolean {
    const { cursor, skipper } = this
    const after = skipper.skip(cursor.bytes, cursor.start, cursor.end)
    if (after < MORE) return this.fail(mistakeAt(after)!, 'the rest of a value')
    this.isSkipping = after === MORE
    return this.moveTo(after === MORE ? skipper.at : after)
  }

  /** Moves the window; never a value. */
  private moveTo(at: number): false {
    this.cursor.skip(at - this.cursor.start)
    return false
  }

  private fail(at: number, expected: string): false {
    const { bytes, start, end, offset } = this.cursor
    const rest = decoder.decode(bytes.subarray(at, Math.min(end, at + 20)))
    this.damage ??= { byte: offset + at - start, expected, found: rest === '' ? 'the end' : JSON.stringify(rest) }
    return false
  }
}

const decoder = new TextDecoder()
