import { Ascii } from '../../../bytes/ascii.ts'

/** Most digits of an exact number. */
const DIGITS_MAX = 15

/** Bytes of a key. */
export const key = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Reads a line of text from left to right, byte by byte, and decodes only what is needed. */
export class Scan {
  bytes: Uint8Array = new Uint8Array(0)
  /** The current place. */
  at = 0
  /** The line's end. */
  end = 0
  /** Seconds and nanoseconds of the last {@link time}. */
  seconds = 0
  nanos = 0

  /** The current byte; -1 at the end. */
  get byte(): number {
    return this.at < this.end ? this.bytes[this.at]! : -1
  }

  skipBlanks(): void {
    while (this.at < this.end && this.bytes[this.at] === Ascii.Blank) this.at++
  }

  /** Removes blanks at the end. */
  trimEnd(): void {
    while (this.end > this.at && this.bytes[this.end - 1] === Ascii.Blank) this.end--
  }

  /** Skips `byte`, if it is here. */
  eatByte(byte: number): boolean {
    if (this.byte !== byte) return false
    this.at++
    return true
  }

  /** Skips `word`, if it is here. */
  eat(word: Uint8Array): boolean {
    if (!this.isAt(this.at, word)) return false
    this.at += word.length
    return true
  }

  /** First place of `word` from `from` to before `limit`; -1: none. */
  find(word: Uint8Array, from: number, limit: number): number {
    const first = word[0]!
    const last = Math.min(limit, this.end - word.length + 1)
    for (let at = from; at < last; at++) if (this.bytes[at] === first && this.isAt(at, word)) return at
    return -1
  }

  /** Reads digits as a number; -1 if there are none or too many. */
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
   * Reads an integer, also as `trace-cmd report -R` prints some, `0x1000`, or ftrace's `fields` option, `0x7a88 (31368)`; NaN:
   * there is none.
   */
  integer(): number {
    const { bytes, at } = this
    if (bytes[at + 1] === Ascii.SmallX && bytes[at] === Ascii.Zero && at + 1 < this.end) return this.hexadecimal()
    const isNegative = this.eatByte(Ascii.Minus)
    const value = this.digits()
    return value < 0 ? Number.NaN : isNegative ? -value : value
  }

  /** Reads seconds with a fraction of 3, 6 or 9 digits: sets {@link seconds} and {@link nanos}. */
  time(): boolean {
    this.seconds = this.digits()
    if (this.seconds < 0 || !this.eatByte(Ascii.Point)) return false
    const start = this.at
    const fraction = this.digits()
    const length = this.at - start
    this.nanos = length === 6 ? fraction * 1000 : length === 9 ? fraction : length === 3 ? fraction * 1e6 : -1
    return this.nanos >= 0
  }

  /** Reads nanoseconds: sets {@link seconds} and {@link nanos}. */
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

  /** Is `word` at `at`? */
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

/** The columns ahead of an event's fields: thread, CPU, time, name of the event. */
export abstract class Columns {
  tid = -1
  /** The thread's process; -1 = not recorded. */
  tgid = -1
  cpu = -1
  /** The event is of an interrupt. */
  isIrq = false
  /** `[commStart, commEnd)` is the thread's command name, of that time or the latest. */
  commStart = 0
  commEnd = 0
  /** The event's name, without its system. */
  nameStart = 0
  nameEnd = 0

  constructor(protected readonly scan: Scan) {}

  /**
   * Reads the columns from the start of a line: sets the scan's time, and moves it to the event's fields. False where the line
   * has other columns.
   */
  abstract read(): boolean

  /** Reads `system:name:`, `name:` or `PERF_RECORD_NAME`, up to the fields. */
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

/** perf's records have no colon after the name. */
const RECORD = key('PERF_RECORD_')
