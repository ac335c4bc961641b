import { MORE, mistake, skipSpace, skipText, skipValue } from '../../input/json-bytes.ts'

/** The fields of an event that are looked at. */
export const Field = { ph: 0, cat: 1, name: 2, pid: 3, tid: 4, ts: 5, dur: 6, id: 7, id2: 8, bp: 9, args: 10 } as const
const FIELDS = Object.keys(Field).length
const OTHER = -1

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN = 0x7b
const CLOSE = 0x7d
const [a, b, c, d, i, n, p, t] = [0x61, 0x62, 0x63, 0x64, 0x69, 0x6e, 0x70, 0x74]

/** Finds the fields of an event in its bytes; nothing is decoded, and nothing made. */
export class EventScanner {
  bytes: Uint8Array = new Uint8Array(0)
  /** Where each {@link Field}'s value lies, texts with their quotes; a start of -1: there is no such field. */
  readonly starts = new Int32Array(FIELDS)
  readonly ends = new Int32Array(FIELDS)

  /** Of each argument: where its key begins and ends, without its quotes, and where its value does. */
  argPlaces = new Int32Array(64)
  /** Places of all arguments, four of each. */
  argsEnd = 0

  /** Reads the event that begins at a brace; where it ends, or why that is not known (see `input/json-bytes.ts`). */
  scan(bytes: Uint8Array, start: number, end: number): number {
    this.bytes = bytes
    for (let field = 0; field < FIELDS; field++) this.starts[field] = -1
    this.argsEnd = 0
    return this.members(bytes, start, end, false)
  }

  private members(bytes: Uint8Array, start: number, end: number, areArgs: boolean): number {
    let at = skipSpace(bytes, start + 1, end)
    for (;;) {
      if (at >= end) return MORE
      if (bytes[at] === CLOSE) return at + 1
      if (bytes[at] !== QUOTE) return mistake(at)
      const key = at + 1
      at = skipText(bytes, key, end)
      if (at < 0) return at
      const keyEnd = at - 1
      at = skipSpace(bytes, at, end)
      if (at >= end) return MORE
      if (bytes[at] !== COLON) return mistake(at)
      const value = skipSpace(bytes, at + 1, end)
      const field = areArgs ? OTHER : fieldOf(bytes, key, keyEnd - key)
      const isObject = field === Field.args && bytes[value] === OPEN
      at = isObject ? this.members(bytes, value, end, true) : skipValue(bytes, value, end)
      if (at < 0) return at
      if (areArgs) this.noteArg(key, keyEnd, value, at)
      else if (field >= 0) {
        this.starts[field] = value
        this.ends[field] = at
      }
      at = skipSpace(bytes, at, end)
      if (at >= end) return MORE
      if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end)
      else if (bytes[at] !== CLOSE) return mistake(at)
    }
  }

  private noteArg(key: number, keyEnd: number, value: number, valueEnd: number): void {
    let { argPlaces } = this
    const at = this.argsEnd
    if (at === argPlaces.length) {
      argPlaces = new Int32Array(at * 2)
      argPlaces.set(this.argPlaces)
      this.argPlaces = argPlaces
    }
    argPlaces[at] = key
    argPlaces[at + 1] = keyEnd
    argPlaces[at + 2] = value
    argPlaces[at + 3] = valueEnd
    this.argsEnd = at + 4
  }

  has(field: number): boolean {
    return this.starts[field]! >= 0
  }

  /** The first byte of a text (without its quote) or number; 0 where there is none. */
  firstByte(field: number): number {
    const start = this.starts[field]!
    if (start < 0) return 0
    const byte = this.bytes[start]!
    if (byte !== QUOTE) return byte
    return start + 1 < this.ends[field]! - 1 ? this.bytes[start + 1]! : 0
  }
}

function fieldOf(bytes: Uint8Array, at: number, length: number): number {
  const first = bytes[at]
  if (length === 2) {
    if (first === p && bytes[at + 1] === 0x68) return Field.ph
    if (first === t && bytes[at + 1] === 0x73) return Field.ts
    if (first === i && bytes[at + 1] === d) return Field.id
    if (first === b && bytes[at + 1] === p) return Field.bp
    return OTHER
  }
  if (length === 3) {
    if (first === p && bytes[at + 1] === i && bytes[at + 2] === d) return Field.pid
    if (first === t && bytes[at + 1] === i && bytes[at + 2] === d) return Field.tid
    if (first === c && bytes[at + 1] === a && bytes[at + 2] === t) return Field.cat
    if (first === d && bytes[at + 1] === 0x75 && bytes[at + 2] === 0x72) return Field.dur
    if (first === i && bytes[at + 1] === d && bytes[at + 2] === 0x32) return Field.id2
    return OTHER
  }
  if (length === 4) {
    if (first === n && bytes[at + 1] === a && bytes[at + 2] === 0x6d && bytes[at + 3] === 0x65) return Field.name
    if (first === a && bytes[at + 1] === 0x72 && bytes[at + 2] === 0x67 && bytes[at + 3] === 0x73) return Field.args
  }
  return OTHER
}
