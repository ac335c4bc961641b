import { Ascii } from '../../ascii.ts'
import { FormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import { mistakeAt, skipSpace, skipText, skipValue, textIn } from '../../input/json-bytes.ts'
import type { About } from './about.ts'
import { Micros } from './micros.ts'
import { EventScanner, Field } from './scanner.ts'

/** An event or another member of the document is held whole. */
const PART_BYTES_MAX = 64 << 20
/** From here on, more is read at once than what comes at once. */
const GROWING_BYTES = 1 << 20
/** What an event may begin with, where the one before it is damaged. */
const EVENT_START = /[,[]\s{0,64}\{\s{0,64}"(?:ph|cat|name|pid|tid|ts|dur|id|args|s|bp|id2|tts)"\s{0,8}:/g
const LOOK_BACK = 256
const BYTE_ORDER_MARK = 0xef
const METADATA = 0x4d
const HINT = 'Chrome JSON is an object with a list "traceEvents", or a list of events'
const latin1 = new TextDecoder('latin1')

/** Gets the events of a document, and what was wrong with it. */
export interface Taker {
  event(event: EventScanner, byte: number): void
  issue(title: string, detail: string, byte: number): void
}

/** What comes next: members of the outermost object, events, an event behind damage; or nothing. */
type State = 'start' | 'members' | 'events' | 'lost' | 'end'

/** A trace as JSON: an object with a list of events among others, or that list itself. */
export class Document {
  private readonly cursor: ByteCursor
  private readonly scanner = new EventScanner()
  private state: State = 'start'
  private isObject = false
  private hasList = false
  /** Offset of the damage that is being passed. */
  private lostAt = 0

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly format: string,
    private readonly about: About,
    private readonly taker: Taker,
  ) {
    this.cursor = new ByteCursor(source)
  }

  async close(): Promise<void> {
    await this.cursor.close()
  }

  /** Times of the first few events, in nanoseconds; reads no further than to them. */
  async firstTimes(count: number): Promise<bigint[]> {
    while (this.state !== 'events' && this.state !== 'end') if (!this.step() && !(await this.grow())) break
    for (;;) {
      const { times, isOver } = this.lookAhead(count)
      if (isOver || !(await this.grow())) return times
    }
  }

  /** Reads what is there, and then more of the document; false at its end. */
  async read(): Promise<boolean> {
    while (this.step()) {
      // on and on
    }
    if (this.state === 'end') return false
    if (await this.grow()) return true
    this.endEarly()
    return false
  }

  /** Goes on as far as the window allows; false where it takes more of the document. */
  private step(): boolean {
    if (this.state === 'start') return this.begin()
    if (this.state === 'members') return this.member()
    if (this.state === 'events') return this.events()
    return this.state === 'lost' && this.find()
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
    cursor.skip(1)
    this.isObject = first === Ascii.OpenCurly
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
      this.state = 'end'
      return true
    }
    if (bytes[start] !== Ascii.Quote) return this.lose(start, 'expected a key')
    let at = skipText(bytes, start + 1, end)
    if (at < 0) return this.lose(mistakeAt(at), 'expected the end of a text')
    const key = textIn(bytes, start, at)
    at = skipSpace(bytes, at, end)
    if (at >= end) return false
    if (bytes[at] !== Ascii.Colon) return this.lose(at, 'expected a colon')
    const value = skipSpace(bytes, at + 1, end)
    if (value >= end) return false
    if (key === 'traceEvents' && bytes[value] === Ascii.OpenSquare) {
      cursor.skip(value + 1 - start)
      this.hasList = true
      this.state = 'events'
      return true
    }
    at = skipValue(bytes, value, end)
    if (at < 0) return this.lose(mistakeAt(at), 'expected a value')
    this.about.take(key, bytes, value, at)
    cursor.skip(at - start)
    return true
  }

  /** Reads the events of the window. */
  private events(): boolean {
    const { cursor, scanner } = this
    const { bytes, end } = cursor
    for (;;) {
      let at = skipSpace(bytes, cursor.start, end)
      if (at < end && bytes[at] === Ascii.Comma) at = skipSpace(bytes, at + 1, end)
      if (at >= end) {
        cursor.skip(at - cursor.start)
        return false
      }
      if (bytes[at] === Ascii.CloseSquare) {
        cursor.skip(at + 1 - cursor.start)
        this.state = this.isObject ? 'members' : 'end'
        return true
      }
      if (bytes[at] !== Ascii.OpenCurly) return this.lose(at, 'expected an event')
      const after = scanner.scan(bytes, at, end)
      if (after < 0) {
        cursor.skip(at - cursor.start)
        return this.lose(mistakeAt(after), 'expected the rest of an event')
      }
      this.taker.event(scanner, cursor.offset + at - cursor.start)
      cursor.skip(after - cursor.start)
    }
  }

  /** There is a mistake in the window, or (`undefined`) only the end of what is there. False where more is needed. */
  private lose(at: number | undefined, expected: string): boolean {
    const { cursor, format } = this
    if (at === undefined && cursor.available <= PART_BYTES_MAX) return false
    const place = at ?? cursor.start
    const found = at === undefined ? `more than ${PART_BYTES_MAX} bytes` : describe(cursor.bytes[at]!)
    const byte = cursor.offset + place - cursor.start
    if (!this.hasList && at === undefined) throw new FormatError(format, { byte }, expected, found)
    this.taker.issue('damaged document', `${expected}, found ${found}; read on from the next event`, byte)
    cursor.skip(Math.max(0, place - LOOK_BACK - cursor.start))
    this.state = 'lost'
    this.lostAt = byte
    return true
  }

  /** Looks for the next event behind damage. */
  private find(): boolean {
    const { cursor } = this
    const from = Math.max(cursor.start, cursor.start + this.lostAt - cursor.offset)
    const text = latin1.decode(cursor.bytes.subarray(cursor.start, cursor.end))
    EVENT_START.lastIndex = Math.max(0, from - cursor.start - LOOK_BACK)
    for (let found = EVENT_START.exec(text); found; found = EVENT_START.exec(text)) {
      const brace = found.index + found[0].indexOf('{')
      if (cursor.start + brace <= from) continue
      cursor.skip(brace)
      this.hasList = true
      this.state = 'events'
      return true
    }
    cursor.skip(Math.max(0, cursor.available - LOOK_BACK))
    this.lostAt = Math.max(this.lostAt, cursor.offset)
    return false
  }

  private endEarly(): void {
    const { cursor, taker } = this
    const byte = cursor.offset + cursor.available
    if (!this.hasList) throw this.withoutList('the end')
    if (this.state === 'events' && cursor.available > 0) {
      taker.issue('torn event', `expected the rest of an event, found the end after ${cursor.available} bytes`, byte)
    } else if (this.isObject && this.state !== 'lost') {
      taker.issue('document without an end', 'expected the end of the list of events, found the end of the file', byte)
    }
  }

  private withoutList(found: string): FormatError {
    return new FormatError(this.format, { byte: this.cursor.offset }, 'a list called "traceEvents"', found, HINT)
  }

  /** Times of the next events; `isOver`: more of the document would not change them. */
  private lookAhead(count: number): { times: bigint[]; isOver: boolean } {
    const { bytes, start, end } = this.cursor
    const [ahead, micros, times] = [new EventScanner(), new Micros(), [] as bigint[]]
    for (let at = start; ; ) {
      at = skipSpace(bytes, at, end)
      if (at < end && bytes[at] === Ascii.Comma) at = skipSpace(bytes, at + 1, end)
      if (at >= end) return { times, isOver: false }
      if (bytes[at] !== Ascii.OpenCurly) return { times, isOver: true }
      at = ahead.scan(bytes, at, end)
      if (at < 0) return { times, isOver: mistakeAt(at) !== undefined }
      const time = ahead.starts[Field.ts]!
      if (time < 0 || ahead.firstByte(Field.ph) === METADATA) continue
      if (micros.read(bytes, time, ahead.ends[Field.ts]!) && micros.whole >= 0) {
        times.push(BigInt(micros.whole) * 1000n + BigInt(micros.nanos))
      }
      if (times.length === count) return { times, isOver: true }
    }
  }

  private skipSpace(): void {
    const { cursor } = this
    cursor.skip(skipSpace(cursor.bytes, cursor.start, cursor.end) - cursor.start)
  }

  /** Adds to the window; the more, the more is in it. */
  private async grow(): Promise<boolean> {
    const { cursor } = this
    const wanted = cursor.available < GROWING_BYTES ? cursor.available + 1 : cursor.available * 2
    while (cursor.available < wanted) if (!(await cursor.fill())) return false
    return true
  }
}

function describe(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? `"${String.fromCharCode(byte)}"` : `byte 0x${byte.toString(16).padStart(2, '0')}`
}
