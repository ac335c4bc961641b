import { Ascii } from '../../../bytes/ascii.ts'

/** Digits of a number that stays exact. */
const DIGITS_MAX = 15

/** Bytes of a key. */
export const key = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Reads a line of text from left to right, byte by byte: nothing is decoded that is not needed. */
export class Scan {
  bytes: Uint8Array = new Uint8Array(0)
  /** Where it is. */
  at = 0
  /** The line's end. */
  end = 0
  /** Seconds and nanoseconds of the last {@link time}. */
  seconds = 0
  nanos = 0

  /** The byte here; -1 at the end. */
  get byte(): number {
    return this.at < this.end ? this.bytes[this.at]! : -1
  }

  skipBlanks(): void {
    while (this.at < this.end && this.bytes[this.at] === Ascii.Blank) this.at++
  }

  /** Takes blanks off the end. */
  trimEnd(): void {
    while (this.end > this.at && this.bytes[this.end - 1] === Ascii.Blank) this.end--
  }

  /** Moves behind `byte`, if it is here. */
  eatByte(byte: number): boolean {
    if (this.byte !== byte) return false
    this.at++
    return true
  }

  /** Moves behind `word`, if it is here. */
  eat(word: Uint8Array): boolean {
    if (!this.isAt(this.at, word)) return false
    this.at += word.length
    return true
  }

  /** Where `word` comes first, from `from` to before `limit`; -1 if nowhere. */
  find(word: Uint8Array, from: number, limit: number): number {
    const first = word[0]!
    const last = Math.min(limit, this.end - word.length + 1)
    for (let at = from; at < last; at++) if (this.bytes[at] === first && this.isAt(at, word)) return at
    return -1
  }

  /** Digits, as a number; -1 if none are here or too many. */
  digits(): number {
    const { bytes, end, at: start } = this
    let value = 0
    let at = start
    for (; at < end; at++) {
      const byte = bytes[at]!
      if (byte < Ascii.Zero || byte > Ascii.Nine) break
      value = value * 10 + byte - Ascii.Zero
    }
    this.at = at
    return at === start || at - start > DIGITS_MAX ? -1 : value
  }

  /**
   * A whole number, also as `trace-cmd report -R` prints some, `0x1000`, or ftrace's `fields` option, `0x7a88 (31368)`. Not one: NaN.
   */
  integer(): number {
    const { bytes, at } = this
    if (bytes[at + 1] === Ascii.SmallX && bytes[at] === Ascii.Zero && at + 1 < this.end) return this.hexadecimal()
    const isNegative = this.eatByte(Ascii.Minus)
    const value = this.digits()
    return value < 0 ? Number.NaN : isNegative ? -value : value
  }

  /** Seconds with a fraction of 3, 6 or 9 digits: sets {@link seconds} and {@link nanos}. */
  time(): boolean {
    this.seconds = this.digits()
    if (this.seconds < 0 || !this.eatByte(Ascii.Point)) return false
    const start = this.at
    const fraction = this.digits()
    const length = this.at - start
    this.nanos = length === 6 ? fraction * 1000 : length === 9 ? fraction : length === 3 ? fraction * 1e6 : -1
    return this.nanos >= 0
  }

  /** Nanoseconds: sets {@link seconds} and {@link nanos}. */
  nanoseconds(): boolean {
    const { bytes, at: start } = this
    let end = start
    while (end < this.end && bytes[end]! >= Ascii.Zero && bytes[end]! <= Ascii.Nine) end++
    const split = Math.max(start, end - 9)
    let nanos = 0
    for (let at = split; at < end; at++) nanos = nanos * 10 + bytes[at]! - Ascii.Zero
    let seconds = 0
    for (let at = start; at < split; at++) seconds = seconds * 10 + bytes[at]! - Ascii.Zero
    this.seconds = seconds
    this.nanos = nanos
    this.at = end
    return end > start && split - start <= DIGITS_MAX
  }

  /** Moves to the next blank, or to the end. */
  skipWord(): void {
    while (this.at < this.end && this.bytes[this.at] !== Ascii.Blank) this.at++
  }

  /** Is `word` at that place? */
  isAt(at: number, word: Uint8Array): boolean {
    const { bytes } = this
    if (at < 0 || at + word.length > this.end) return false
    for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false
    return true
  }

  private hexadecimal(): number {
    let value = 0
    let digits = 0
    for (this.at += 2; this.at < this.end; this.at++, digits++) {
      const digit = Number.parseInt(String.fromCharCode(this.byte), 16)
      if (Number.isNaN(digit)) break
      value = value * 16 + digit
    }
    if (this.bytes[this.at + 1] !== Ascii.OpenRound) return digits > 0 && digits <= DIGITS_MAX ? value : Number.NaN
    this.at += 2
    const isNegative = this.eatByte(Ascii.Minus)
    const decimal = this.digits()
    return this.eatByte(0x29) && decimal >= 0 ? (isNegative ? -decimal : decimal) : Number.NaN
  }
}

/** What stands ahead of an event's own fields on its line: who, where, when, which event. */
export abstract class Columns {
  /** Thread that it happened on. */
  tid = -1
  /** Its process; -1 = not told. */
  tgid = -1
  cpu = -1
  /** In an interrupt. */
  isIrq = false
  /** The thread's command name, as it was then or is now: `[commStart, commEnd)`. */
  commStart = 0
  commEnd = 0
  /** The event's name, without its system. */
  nameStart = 0
  nameEnd = 0

  constructor(protected readonly scan: Scan) {}

  /**
   * Reads the columns of the line that the scan is at the start of, and leaves it at the event's fields, its time being that of
   * the line. False where it is no such line.
   */
  abstract read(): boolean

  /** Reads `system:name:`, `name:` or `PERF_RECORD_NAME`, up to the fields behind it. */
  protected readName(): boolean {
    const { scan } = this
    const { bytes, end } = scan
    let at = scan.at
    this.nameStart = at
    for (; at < end && bytes[at] !== Ascii.Blank && bytes[at] !== Ascii.OpenRound; at++) {
      if (bytes[at - 1] === Ascii.Colon && at > this.nameStart) this.nameStart = at
    }
    const isRecord = bytes[at - 1] !== Ascii.Colon
    this.nameEnd = isRecord ? at : at - 1
    if (this.nameEnd <= this.nameStart) return false
    scan.at = this.nameStart
    if (isRecord && !scan.eat(RECORD)) return false
    scan.at = at
    scan.skipBlanks()
    return true
  }

  /** `[007]` */
  protected readCpu(): boolean {
    this.scan.at++
    this.cpu = this.scan.digits()
    return this.cpu >= 0 && this.scan.eatByte(Ascii.CloseSquare)
  }
}

/** Perf's own records have no colon behind them. */
const RECORD = key('PERF_RECORD_')
