import { Ascii } from '../../bytes/ascii.ts'
import { ByteTable } from '../../input/byte-table.ts'
import { isNull, parsedJson, textIn, unescaped } from '../../input/json-bytes.ts'
import { type Arg, jsonOf, type Nested, nestedOf } from '../../model/args.ts'
import { I64_MAX } from '../../model/limits.ts'
import type { Names } from '../../model/names.ts'
import type { EventScanner } from './scanner.ts'

/** The decimal point, minus the byte of 0. */
const POINT = Ascii.Point - Ascii.Zero
/** Maximum length and number of interned texts. Others are written in place. */
const INTERNED_BYTES_MAX = 400
const INTERNED_MAX = 1 << 16
/** A double is exact for any number with so many digits. */
const DIGITS_MAX = 15

/** Arguments that only the profiler of PyTorch itself uses. */
const BOOKKEEPING: ReadonlySet<string> = new Set([
  ...['Ev Idx', 'Record function id', 'Python id', 'Python parent id', 'Python module id', 'cbid', 'cid', 'queued'],
])
/** Arguments of GPU work that are its place; and those that get the names of Nsight Systems. */
const PLACES: ReadonlySet<string> = new Set(['device', 'stream', 'context', 'correlation'])
const GPU_NAMES: ReadonlyMap<string, string> = new Map([
  ['registers per thread', 'registers'],
  ['shared memory', 'shared_bytes'],
  ['graph node id', 'graph_node'],
  ['graph id', 'graph'],
  ['kind', 'operation'], // `kind` is kernel, copy or set
])

/** First bytes of lists, objects, true, false and null. */
const isJson = new Uint8Array(256)
for (const byte of new TextEncoder().encode('[{tfn')) isJson[byte] = 1

/** A key of arguments. */
interface Key {
  readonly text: string
  readonly id: number
  /** Id of its name as an argument of GPU work. */
  readonly gpuId: number
  readonly isPlace: boolean
  readonly isBookkeeping: boolean
}

/** Reads the arguments of one event at a time; decodes them on demand. */
export class ArgReader {
  /** Number of arguments of the event. */
  count = 0
  /** By the scanner's numbers of keys. */
  private readonly known: Key[] = []
  private readonly texts: ByteTable<number>
  private readonly dimensions: ByteTable<number>
  private interned = 0
  private bytes: Uint8Array = new Uint8Array(0)
  private places: Int32Array = new Int32Array(0)
  /** Keys of the arguments of the event. */
  private readonly keys: Key[] = []

  /** `everything`: include the profiler's bookkeeping. */
  constructor(
    private readonly names: Names,
    private readonly everything: boolean,
  ) {
    this.texts = new ByteTable((raw) => {
      this.interned++
      return names.id(raw.startsWith('"') ? unescaped(raw.slice(1, -1)) : plainJson(raw))
    })
    this.dimensions = new ByteTable((list) => {
      this.interned++
      return names.id(list.replace(/[[\]\s]/g, '').replaceAll(',', 'x'))
    })
  }

  /** Begins an event. */
  begin(event: EventScanner): void {
    const { argPlaces, argsEnd } = event
    this.bytes = event.bytes
    this.places = argPlaces
    let count = 0
    for (let at = 0; at < argsEnd; at += 3) {
      const key = argPlaces[at]!
      this.keys[count++] = this.known[key] ?? this.remember(key, event.keys[key]!)
    }
    this.count = count
  }

  /** All arguments; undefined if there are none. */
  all(): Arg[] | undefined {
    const { count, keys, everything } = this
    let args: Arg[] | undefined
    for (let i = 0; i < count; i++) {
      const key = keys[i]!
      if (key.isBookkeeping && !everything) continue
      const arg = this.argAt(i, key.id)
      if (args) args.push(arg)
      else args = [arg]
    }
    return args
  }

  /** Arguments of GPU work, with the names of Nsight Systems, except its place. */
  ofGpu(): Arg[] {
    const { count, keys, bytes, places, everything } = this
    const args: Arg[] = []
    for (let i = 0; i < count; i++) {
      const key = keys[i]!
      if (key.isPlace || (key.isBookkeeping && !everything)) continue
      const start = places[3 * i + 1]!
      const isList = bytes[start] === Ascii.OpenSquare && this.interned < INTERNED_MAX
      const list = isList ? this.dimensions.get(bytes, start, places[3 * i + 2]!) : 0
      args.push(list > 0 ? { key: key.gpuId, name: list } : this.argAt(i, key.gpuId))
    }
    return args
  }

  /** Calls `take` for each argument that is a number. */
  eachNumber(take: (key: string, value: number) => void): void {
    for (let i = 0; i < this.count; i++) {
      const value = this.numberAt(i)
      if (Number.isFinite(value)) take(this.keys[i]!.text, value)
    }
  }

  has(key: string): boolean {
    return this.find(key) >= 0
  }

  /** An integer, also in quotes; `otherwise` if there is none of that name. */
  whole(key: string, otherwise: number): number {
    const i = this.find(key)
    const value = i < 0 ? NaN : this.numberAt(i)
    return Number.isSafeInteger(value) ? value : otherwise
  }

  /** A text, or the JSON of another value; empty if there is none of that name, or null. */
  text(key: string): string {
    const i = this.find(key)
    return i < 0 || isNull(this.bytes, this.places[3 * i + 1]!)
      ? ''
      : textIn(this.bytes, this.places[3 * i + 1]!, this.places[3 * i + 2]!)
  }

  private remember(number: number, text: string): Key {
    const { names } = this
    const key = {
      text,
      id: names.id(text),
      gpuId: names.id(GPU_NAMES.get(text) ?? text),
      isPlace: PLACES.has(text),
      isBookkeeping: BOOKKEEPING.has(text),
    }
    this.known[number] = key
    return key
  }

  private find(key: string): number {
    for (let i = 0; i < this.count; i++) if (this.keys[i]!.text === key) return i
    return -1
  }

  private numberAt(i: number): number {
    const { bytes } = this
    const start = this.places[3 * i + 1]!
    const end = this.places[3 * i + 2]!
    if (end - start > DIGITS_MAX) return Number(textIn(bytes, start, end) || NaN)
    let value = 0
    let scale = 0 // of the digits after the point; the quotient of two exact numbers is correctly rounded
    for (let at = start; at < end; at++) {
      const digit = bytes[at]! - 0x30
      if (digit >= 0 && digit <= 9) {
        value = value * 10 + digit
        scale *= 10
      } else if (digit === POINT && scale === 0 && at > start) scale = 1
      else return Number(textIn(bytes, start, end) || NaN)
    }
    return scale > 1 ? value / scale : value
  }

  private argAt(i: number, key: number): Arg {
    const { bytes } = this
    const start = this.places[3 * i + 1]!
    const end = this.places[3 * i + 2]!
    const first = bytes[start]!
    if ((first >= 0x30 && first <= 0x39) || first === Ascii.Minus) {
      const value = this.numberAt(i)
      if (Number.isSafeInteger(value)) return { key, int: value }
      return end - start < DIGITS_MAX && Number.isFinite(value)
        ? { key, double: value }
        : numberArg(key, value, textIn(bytes, start, end))
    }
    const name =
      end - start <= INTERNED_BYTES_MAX && this.interned < INTERNED_MAX ? this.texts.get(bytes, start, end) : 0
    if (isJson[first] === 1) return { key, json: name > 0 ? name : nestedOf(plainJson(textIn(bytes, start, end))) }
    return name > 0 ? { key, name } : { key, text: textIn(bytes, start, end) }
  }
}

/** JSON without control characters that are not escaped; the text itself where it is none. */
function plainJson(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that JSON wants escaped
  if (!/[\x00-\x1f]/.test(text)) return text
  try {
    return jsonOf(parsedJson(text) as Nested)
  } catch {
    return text
  }
}

/** A fraction, or an integer above 2^53. */
function numberArg(key: number, value: number, text: string): Arg {
  if (!/^-?\d{1,20}$/.test(text)) return Number.isFinite(value) ? { key, double: value } : { key, text }
  const big = BigInt(text)
  return big > I64_MAX || big < -I64_MAX ? { key, text } : { key, big }
}
