import { Ascii } from '../../bytes/ascii.ts'
import { FormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import {
  MORE,
  mistake,
  mistakeAt,
  skipSpace,
  skipText,
  skipValue,
  textIn,
  ValueSkipper,
} from '../../input/json-bytes.ts'
import type { IssueCode } from '../../model/issues.ts'
import type { About } from './about.ts'
import { Micros } from './fields.ts'
import { EventScanner, Field } from './scanner.ts'

/** Maximum size of an event, which must fit into the window. */
const EVENT_BYTES_MAX = 16 << 20
/** Maximum distance from a member's key to its value. */
const KEY_BYTES_MAX = 1 << 16
/** Longer values of members are skipped. */
const VALUE_BYTES_MAX = 1 << 20
/** The first times are read within so many bytes from the first event that has a time. */
const AHEAD_BYTES_MAX = 1 << 20
/** Maximum number of events without a time, and of damages, before the first event that has a time. */
const EARLY_MAX = 1000
/** A larger window doubles when it grows. */
const GROWING_BYTES = 1 << 15
/** The start of an event after damage or a hole in the file. */
const EVENT_KEY = '\\s{0,64}\\{\\s{0,64}"(?:ph|cat|name|pid|tid|ts|dur|id|args|s|bp|id2|tts)"\\s{0,8}:'
const EVENT_START = new RegExp(`[,[\\0]${EVENT_KEY}`, 'g')
const LINE_START = new RegExp(`[,\\n\\0]${EVENT_KEY}`, 'g')
const LOOK_BACK = 256
const BYTE_ORDER_MARK = 0xef
const METADATA = 0x4d
const HINT = 'Chrome JSON is an object with a list "traceEvents", or a list of events'
const latin1 = new TextDecoder('latin1')

/** Gets the events and issues of a document. */
export interface Taker {
  event(event: EventScanner, byte: number): void
  issue(code: IssueCode, detail: string, byte: number): void
}

/**
 * What follows: members of the outermost object, events, the rest of a skipped value, damage up to the next event, the bytes after
 * the document, or nothing.
 */
type State = 'start' | 'members' | 'events' | 'skipping' | 'damage' | 'after' | 'end'

/** A trace as JSON: an object with a list of events among others, that list itself, or (`isLines`) only events, one per line. */
export class Document {
  private readonly cursor: ByteCursor
  private readonly scanner = new EventScanner()
  private state: State = 'start'
  private isObject = false
  private hasList = false
  /** Offset up to which damage was skipped. */
  private damageAt = 0
  /** The value that is skipped, of a member or (no key) an event, and the offset up to which it was skipped. */
  private readonly skipper = new ValueSkipper()
  private skippedKey: string | undefined
  private skippedTo = 0
  /** No event with a time was read yet; and the number of other events and damages. */
  private isAhead = false
  private early = 0
  private readonly micros = new Micros()

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly format: string,
    private readonly about: About,
    private readonly taker: Taker,
    private readonly isLines: boolean,
  ) {
    this.cursor = new ByteCursor(source)
  }

  async close(): Promise<void> {
    await this.cursor.close()
  }

  /**
   * Times of the first few events, in nanoseconds; reads little more of the document. Events before the first one with a time are
   * passed on: names of threads may be most of a document.
   */
  async firstTimes(count: number): Promise<bigint[]> {
    this.isAhead = true
    while (this.isAhead && !this.hasEnded) if (!this.step() && this.isAhead && !(await this.grow())) break
    this.isAhead = false
    for (;;) {
      const { times, isOver } = this.lookAhead(count)
      if (isOver || !(await this.grow())) return times
    }
  }

  /** Reads the events in the window, then fills the window; false at the end of the document. */
  async read(): Promise<boolean> {
    for (let hasRead = true; hasRead; ) hasRead = this.step()
    if (this.state === 'end') return false
    if (await this.grow()) return true
    if (this.state !== 'after') this.endEarly()
    return false
  }

  private get hasEnded(): boolean {
    return this.state === 'after' || this.state === 'end'
  }

  /** Reads the next piece; false if the window does not contain all of it. */
  private step(): boolean {
    switch (this.state) {
      case 'start':
        return this.begin()
      case 'members':
        return this.member()
      case 'events':
        return this.events()
      case 'skipping':
        return this.skip()
      case 'damage':
        return this.findEvent()
      case 'after':
        return this.checkEnd()
      case 'end':
        return false
    }
  }

  private begin(): boolean {
    const { cursor } = this
    if (cursor.offset === 0 && cursor.bytes[cursor.start] === BYTE_ORDER_MARK && cursor.available >= 3) cursor.skip(3)
    this.skipSpace()
    if (cursor.available === 0) return false
    const first = cursor.bytes[cursor.start]
    if (first !== Ascii.OpenCurly && first !== Ascii.OpenSquare) {
      const found = JSON.stringify(String.fromCharCode(first!))
      throw new FormatError(this.format, { byte: cursor.offset }, 'an object or a list of events', found)
    }
    if (!this.isLines) cursor.skip(1)
    this.isObject = first === Ascii.OpenCurly && !this.isLines
    this.hasList = !this.isObject
    this.state = this.isObject ? 'members' : 'events'
    return true
  }

  /** Reads a member of the outermost object. */
  private member(): boolean {
    const { cursor } = this
    this.skipSpace()
    const { bytes, start, end } = cursor
    if (start >= end) return false
    if (bytes[start] === Ascii.Comma) {
      cursor.skip(1)
      return true
    }
    if (bytes[start] === Ascii.CloseCurly) {
      if (!this.hasList) throw this.withoutList('the end of the object')
      cursor.skip(1)
      this.state = 'after'
      return true
    }
    if (bytes[start] !== Ascii.Quote) return this.reportDamage(start, 'expected a key')
    const value = valuePlace(bytes, start, end)
    const wrong = mistakeAt(value)
    const isTooLong = (wrong ?? (value < 0 ? end : value)) - start > KEY_BYTES_MAX
    if (isTooLong) return this.reportDamage(start, 'expected a key and its value', `more than ${KEY_BYTES_MAX} bytes`)
    if (wrong !== undefined) return this.reportDamage(wrong, 'expected a key, a colon and a value')
    if (value < 0) return false
    const key = textIn(bytes, start, skipText(bytes, start + 1, end))
    if (key === 'traceEvents' && bytes[value] === Ascii.OpenSquare) {
      cursor.skip(value + 1 - start)
      this.hasList = true
      this.state = 'events'
      return true
    }
    if (!this.about.wants(key)) return this.beginSkipping(key, value)
    const after = skipValue(bytes, value, end)
    if ((mistakeAt(after) ?? (after < 0 ? end : after)) - value > VALUE_BYTES_MAX) return this.beginSkipping(key, value)
    if (after === MORE) return false
    if (after < 0) return this.reportDamage(mistakeAt(after)!, 'expected a value')
    this.about.take(key, bytes, value, after)
    cursor.skip(after - start)
    return true
  }

  /** Reads the events of the window. */
  private events(): boolean {
    const { cursor, scanner } = this
    const { bytes, end } = cursor
    for (;;) {
      const at = nextItem(bytes, cursor.start, end)
      cursor.skip(at - cursor.start)
      if (at >= end) return false
      if (bytes[at] === Ascii.CloseSquare) {
        cursor.skip(1)
        this.state = this.isObject ? 'members' : 'after'
        return true
      }
      if (bytes[at] !== Ascii.OpenCurly) return this.reportDamage(at, 'expected an event')
      const after = scanner.scan(bytes, at, end)
      const wrong = mistakeAt(after)
      if ((wrong ?? (after < 0 ? end : after)) - at > EVENT_BYTES_MAX) return this.skipLargeEvent(at)
      if (wrong !== undefined) return this.reportDamage(wrong, 'expected the rest of an event')
      if (after < 0) return false
      if (this.isAhead && this.hasTime(scanner)) {
        this.isAhead = false
        return false
      }
      this.taker.event(scanner, cursor.offset)
      cursor.skip(after - at)
    }
  }

  /** Has an event a time? Counts events before the first one with a time, except names. */
  private hasTime(event: EventScanner): boolean {
    if (event.firstByte(Field.ph) === METADATA) return false
    const start = event.starts[Field.ts]!
    if (start >= 0 && this.micros.read(event.bytes, start, event.ends[Field.ts]!)) return true
    this.countEarly()
    return false
  }

  private countEarly(): void {
    if (!this.isAhead || ++this.early < EARLY_MAX) return
    const found = `${EARLY_MAX} that have none or are damaged`
    throw new FormatError(this.format, { byte: this.cursor.offset }, 'an event with a time', found)
  }

  private skipLargeEvent(at: number): boolean {
    const { cursor, taker } = this
    this.countEarly()
    const detail = `expected an event of at most ${EVENT_BYTES_MAX} bytes, found a larger one: left out`
    taker.issue('json-large-event', detail, cursor.offset)
    return this.beginSkipping(undefined, at)
  }

  /** Skips the value at a place of the window. */
  private beginSkipping(key: string | undefined, at: number): boolean {
    this.skipper.begin()
    this.skippedKey = key
    this.skippedTo = this.cursor.offset + at - this.cursor.start
    this.state = 'skipping'
    return true
  }

  /** Skips a value up to the end of the window; keeps its last bytes for the recovery from a mistake. */
  private skip(): boolean {
    const { cursor, skipper } = this
    const { bytes, start, end } = cursor
    const after = skipper.skip(bytes, start + this.skippedTo - cursor.offset, end)
    if (after === MORE) {
      this.skippedTo = cursor.offset + skipper.at - start
      cursor.skip(Math.max(0, skipper.at - LOOK_BACK - start))
      return false
    }
    if (after < 0) return this.reportDamage(mistakeAt(after)!, 'expected the rest of a value')
    cursor.skip(after - start)
    if (this.skippedKey !== undefined) this.about.skip(this.skippedKey, skipper.items)
    this.state = this.skippedKey === undefined ? 'events' : 'members'
    return true
  }

  /** Only white space may follow the document. */
  private checkEnd(): boolean {
    const { cursor } = this
    this.skipSpace()
    if (cursor.available === 0) return false
    const found = describe(cursor.bytes[cursor.start]!)
    const detail = `expected the end of the file after the end of the document, found ${found}: not read`
    this.taker.issue('json-behind-end', detail, cursor.offset)
    this.state = 'end'
    return false
  }

  /** Reports a mistake at a place of the window. */
  private reportDamage(at: number, expected: string, found = describe(this.cursor.bytes[at]!)): boolean {
    const { cursor } = this
    const byte = cursor.offset + at - cursor.start
    this.countEarly()
    this.taker.issue('json-damaged', `${expected}, found ${found}; reading continues at the next event`, byte)
    cursor.skip(Math.max(0, at - LOOK_BACK - cursor.start))
    this.state = 'damage'
    this.damageAt = byte
    return true
  }

  /** Searches for the next event after damage. */
  private findEvent(): boolean {
    const { cursor } = this
    const from = Math.max(cursor.start, cursor.start + this.damageAt - cursor.offset)
    const text = latin1.decode(cursor.bytes.subarray(cursor.start, cursor.end))
    const start = this.isLines ? LINE_START : EVENT_START
    start.lastIndex = Math.max(0, from - cursor.start - LOOK_BACK)
    for (let found = start.exec(text); found; found = start.exec(text)) {
      const brace = found.index + found[0].indexOf('{')
      if (cursor.start + brace < from) continue
      cursor.skip(brace)
      this.hasList = true
      this.state = 'events'
      return true
    }
    cursor.skip(Math.max(0, cursor.available - LOOK_BACK))
    this.damageAt = Math.max(this.damageAt, cursor.offset)
    return false
  }

  private endEarly(): void {
    const { cursor, taker } = this
    const byte = cursor.offset + cursor.available
    if (!this.hasList) throw this.withoutList('the end')
    if (this.state === 'events' && cursor.available > 0) {
      taker.issue('torn-record', `expected the rest of an event, found the end after ${cursor.available} bytes`, byte)
    } else if (this.isObject && this.state !== 'damage') {
      taker.issue('json-without-end', 'expected the end of the list of events, found the end of the file', byte)
    }
  }

  private withoutList(found: string): FormatError {
    return new FormatError(this.format, { byte: this.cursor.offset }, 'a list called "traceEvents"', found, HINT)
  }

  /** Times of the next events; `isOver`: more of the document does not change them. */
  private lookAhead(count: number): { times: bigint[]; isOver: boolean } {
    const { bytes, start, end } = this.cursor
    const { micros, scanner: ahead } = this
    const times: bigint[] = []
    for (let at = start; ; ) {
      at = nextItem(bytes, at, end)
      if (at - start > AHEAD_BYTES_MAX) return { times, isOver: true }
      if (at >= end) return { times, isOver: false }
      if (bytes[at] !== Ascii.OpenCurly) return { times, isOver: true }
      at = ahead.scan(bytes, at, end)
      if ((at < 0 ? end : at) - start > AHEAD_BYTES_MAX) return { times, isOver: true }
      if (at < 0) return { times, isOver: mistakeAt(at) !== undefined }
      const time = ahead.starts[Field.ts]!
      if (time < 0 || ahead.firstByte(Field.ph) === METADATA) continue
      if (micros.read(bytes, time, ahead.ends[Field.ts]!)) {
        times.push(BigInt(micros.whole) * 1000n + BigInt(micros.nanos))
      }
      if (times.length === count) return { times, isOver: true }
    }
  }

  private skipSpace(): void {
    const { cursor } = this
    cursor.skip(skipSpace(cursor.bytes, cursor.start, cursor.end) - cursor.start)
  }

  /** Adds bytes to the window, more to a larger one. False at the end of the input. */
  private async grow(): Promise<boolean> {
    const { cursor } = this
    const before = cursor.available
    const wanted = before < GROWING_BYTES ? before + 1 : Math.min(before * 2, Math.max(EVENT_BYTES_MAX, before) + 1)
    while (cursor.available < wanted) if (!(await cursor.fill())) break
    return cursor.available > before
  }
}

/** The place after white space, and after a comma and white space. */
function nextItem(bytes: Uint8Array, start: number, end: number): number {
  const at = skipSpace(bytes, start, end)
  return at < end && bytes[at] === Ascii.Comma ? skipSpace(bytes, at + 1, end) : at
}

/** Start of the value of a member whose key begins at a quote. */
function valuePlace(bytes: Uint8Array, quote: number, end: number): number {
  const keyEnd = skipText(bytes, quote + 1, end)
  if (keyEnd < 0) return keyEnd
  const colon = skipSpace(bytes, keyEnd, end)
  if (colon >= end) return MORE
  if (bytes[colon] !== Ascii.Colon) return mistake(colon)
  const value = skipSpace(bytes, colon + 1, end)
  return value < end ? value : MORE
}

function describe(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? `"${String.fromCharCode(byte)}"` : `byte 0x${byte.toString(16).padStart(2, '0')}`
}
