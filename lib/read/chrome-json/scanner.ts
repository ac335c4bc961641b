import { Ascii } from '../../bytes/ascii.ts'
import { resized } from '../../bytes/resized.ts'
import { ByteTable, isSame } from '../../input/byte-table.ts'
import { MORE, mistake, skipSpace, skipText, skipValue, unescaped } from '../../input/json-bytes.ts'

/** The fields of an event that are read, in the order of {@link FIELD_NAMES}. */
export enum Field {
  ph,
  cat,
  name,
  pid,
  tid,
  ts,
  dur,
  id,
  id2,
  bp,
  scope,
  bindId,
  flowIn,
  flowOut,
  args,
}
const FIELDS = Field.args + 1
const OTHER = -1

/** Finds the fields of an event in its bytes, without decoding or allocating. */
export class EventScanner {
  bytes: Uint8Array = new Uint8Array(0)
  /** Start and end of each {@link Field}'s value, texts with their quotes; a start of -1: there is no such field. */
  readonly starts = new Int32Array(FIELDS)
  readonly ends = new Int32Array(FIELDS)

  /** Three numbers per argument: its key (see {@link keys}), start and end of its value. */
  argPlaces = new Int32Array(48)
  /** End of the used part of {@link argPlaces}. */
  argsEnd = 0
  /** Keys of arguments by their numbers. */
  readonly keys: string[] = []
  private readonly keyNumbers = new ByteTable((raw) => this.keys.push(unescaped(raw)) - 1)

  private view = new DataView(this.bytes.buffer)
  private readonly layouts = Step.root()
  /** In an event with a new layout: the last step, if it can be remembered, and the end of its value. */
  private step: Step | undefined
  private stepEnd = 0

  /** Reads the event that begins at a brace; returns its end, or a code of `input/json-bytes.ts`. */
  scan(bytes: Uint8Array, start: number, end: number): number {
    if (bytes !== this.bytes) {
      this.bytes = bytes
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
    const known = this.known(bytes, start, end)
    if (known >= 0) return known
    this.clear()
    this.step = this.layouts
    this.stepEnd = start
    return this.members(bytes, start, end, false)
  }

  private clear(): void {
    for (let field = 0; field < FIELDS; field++) this.starts[field] = -1
    this.argsEnd = 0
  }

  /** Reads an event with a known layout; returns its end, or below 0 if the layout is new or the event is not complete. */
  private known(bytes: Uint8Array, start: number, end: number): number {
    const { view, starts, ends } = this
    this.clear()
    let step: Step | undefined = this.layouts
    for (let at = start; ; ) {
      step = step.at(view, at, end)
      if (!step) return MORE
      const value: number = at + step.length
      const { field, key } = step
      if (field === END) return value
      at = skipValue(bytes, value, end)
      if (at < 0) return at
      if (key >= 0) this.noteArg(key, value, at)
      else if (field >= 0) {
        starts[field] = value
        ends[field] = at
      }
    }
  }

  private members(bytes: Uint8Array, start: number, end: number, areArgs: boolean): number {
    let at = skipSpace(bytes, start + 1, end)
    for (;;) {
      if (at >= end) return MORE
      if (bytes[at] === Ascii.CloseCurly) {
        if (!areArgs) this.remember(at + 1, END, -1, at + 1)
        return at + 1
      }
      if (bytes[at] !== Ascii.Quote) return mistake(at)
      const key = at + 1
      at = skipText(bytes, key, end)
      if (at < 0) return at
      const keyEnd = at - 1
      at = skipSpace(bytes, at, end)
      if (at >= end) return MORE
      if (bytes[at] !== Ascii.Colon) return mistake(at)
      const value = skipSpace(bytes, at + 1, end)
      const field = areArgs ? OTHER : fieldOf(bytes, key, keyEnd - key)
      const isObject = field === Field.args && bytes[value] === Ascii.OpenCurly
      at = isObject ? this.members(bytes, value, end, true) : skipValue(bytes, value, end)
      if (at < 0) return at
      if (!isObject) this.member(areArgs ? this.keyNumbers.get(bytes, key, keyEnd) : -1, field, value, at)
      at = skipSpace(bytes, at, end)
      if (at >= end) return MORE
      if (bytes[at] === Ascii.Comma) at = skipSpace(bytes, at + 1, end)
      else if (bytes[at] !== Ascii.CloseCurly) return mistake(at)
    }
  }

  private member(key: number, field: number, value: number, valueEnd: number): void {
    if (key >= 0) this.noteArg(key, value, valueEnd)
    else if (field >= 0) {
      this.starts[field] = value
      this.ends[field] = valueEnd
    }
    this.remember(value, field, key, valueEnd)
  }

  /** Remembers the step to a value, except to `args` that is no object: the same step may lead to an object. */
  private remember(value: number, field: number, key: number, valueEnd: number): void {
    this.step = field === Field.args ? undefined : this.step?.remember(this.bytes, this.stepEnd, value, field, key)
    this.stepEnd = valueEnd
  }

  private noteArg(key: number, value: number, valueEnd: number): void {
    const at = this.argsEnd
    if (at === this.argPlaces.length) this.argPlaces = resized(this.argPlaces, at * 2)
    const { argPlaces } = this
    argPlaces[at] = key
    argPlaces[at + 1] = value
    argPlaces[at + 2] = valueEnd
    this.argsEnd = at + 3
  }

  has(field: number): boolean {
    return this.starts[field]! >= 0
  }

  /** The first byte of a text (without its quote) or number; 0 if there is none. */
  firstByte(field: number): number {
    const start = this.starts[field]!
    if (start < 0) return 0
    const byte = this.bytes[start]!
    if (byte !== Ascii.Quote) return byte
    return start + 1 < this.ends[field]! - 1 ? this.bytes[start + 1]! : 0
  }
}

/** Fields by their names in the file. */
const FIELD_NAMES = 'ph cat name pid tid ts dur id id2 bp scope bind_id flow_in flow_out args'
const FIELD_NUMBERS = new Map(FIELD_NAMES.split(' ').map((name, field) => [name, field]))
const NAME_MAX = 8

/** Only for events with a new layout, which are few. */
function fieldOf(bytes: Uint8Array, at: number, length: number): number {
  if (length > NAME_MAX) return OTHER
  return FIELD_NUMBERS.get(String.fromCharCode(...bytes.subarray(at, at + length))) ?? OTHER
}

/** Maximum length of a step, and number of steps after a value and in all: programs write few. */
const STEP_BYTES_MAX = 160
const FOLLOWERS_MAX = 24
const STEPS_MAX = 1 << 12

/** Instead of a field, of the step after the last value. */
const END = -2

/**
 * The bytes between two values of an event: the key of the second one, brackets, white space. Programs write events with the
 * same layout: steps are compared, as words, with those of earlier events, and not parsed again.
 */
class Step {
  /** Steps that followed, the latest first. */
  private readonly followers: Step[] = []
  private readonly words: Int32Array
  /** Mask of the used bytes of the last word. */
  private readonly mask: number
  private readonly bytes: Uint8Array

  /** `field`: that of the value after the step, or {@link END}; `key`: an argument's, or -1. */
  constructor(
    bytes: Uint8Array,
    readonly field: number,
    readonly key: number,
    private readonly budget: { steps: number },
  ) {
    this.words = new Int32Array((bytes.length + 3) >> 2)
    this.bytes = new Uint8Array(this.words.buffer, 0, bytes.length)
    this.bytes.set(bytes)
    const view = new DataView(this.words.buffer)
    for (let i = 0; i < this.words.length; i++) this.words[i] = view.getInt32(4 * i, true)
    const rest = bytes.length & 3
    this.mask = rest === 0 ? -1 : (1 << (8 * rest)) - 1
  }

  /** The empty step before every event. */
  static root(): Step {
    return new Step(new Uint8Array(), END, -1, { steps: 0 })
  }

  get length(): number {
    return this.bytes.length
  }

  /** The known step whose bytes are at a place, if all its words end before `end`. */
  at(view: DataView, place: number, end: number): Step | undefined {
    const { followers } = this
    for (let i = 0; i < followers.length; i++) {
      const step = followers[i]!
      if (!step.isAt(view, place, end)) continue
      if (i > 0) {
        followers[i] = followers[0]!
        followers[0] = step
      }
      return step
    }
    return undefined
  }

  /** Remembers the step `[start, end)`; undefined if there are too many. */
  remember(bytes: Uint8Array, start: number, end: number, field: number, key: number): Step | undefined {
    const { followers, budget } = this
    for (const step of followers) if (isSame(step.bytes, bytes, start, end)) return step
    if (end - start > STEP_BYTES_MAX || followers.length === FOLLOWERS_MAX || budget.steps === STEPS_MAX)
      return undefined
    budget.steps++
    const step = new Step(bytes.subarray(start, end), field, key, budget)
    followers.unshift(step)
    return step
  }

  private isAt(view: DataView, place: number, end: number): boolean {
    const { words, mask } = this
    const last = words.length - 1
    if (place + 4 * words.length > end) return false
    for (let i = 0; i < last; i++, place += 4) if (view.getInt32(place, true) !== words[i]) return false
    return (view.getInt32(place, true) & mask) === words[last]
  }
}
