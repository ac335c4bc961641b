import { Ascii } from '../../bytes/ascii.ts'
import { ByteWriter } from '../byte-writer.ts'

const encoder = new TextEncoder()

/** The digits of 000 to 999. */
const DIGITS = Uint8Array.from({ length: 3000 }, (_, i) => Ascii.Zero + (Math.floor(i / 3 / 10 ** (2 - (i % 3))) % 10))

function putThree(bytes: Uint8Array, at: number, value: number): number {
  const from = value * 3
  bytes[at] = DIGITS[from]!
  bytes[at + 1] = DIGITS[from + 1]!
  bytes[at + 2] = DIGITS[from + 2]!
  return at + 3
}

/** Appends JSON to one growing buffer of UTF-8. Independent of traces. */
export class JsonWriter extends ByteWriter {
  /** The digits of the last time's seconds, which most times have. */
  private digits = new Uint8Array()
  private seconds = 0

  /** One ASCII character of the notation. */
  sign(code: number): void {
    this.reserve(1)
    this.bytes[this.position++] = code
  }

  /** A text in quotes. Lone surrogates become U+FFFD, as in every conversion to UTF-8. */
  text(text: string): void {
    this.reserve(text.length + 2)
    if (this.putPlain(text)) return
    const quoted = JSON.stringify(text.replace(/\p{Surrogate}/gu, '\ufffd'))
    this.reserve(quoted.length * 3)
    this.position += encoder.encodeInto(quoted, this.bytes.subarray(this.position)).written
  }

  /** Any number. Infinities and NaN, which JSON lacks, become texts, which trace_processor reads as numbers. */
  number(value: number): void {
    if (value >>> 0 === value) {
      this.reserve(10)
      this.putUint32(value)
    } else if (Number.isFinite(value)) this.putAscii(String(value))
    else this.putAscii(`"${value}"`)
  }

  /** An integer of any size. */
  integer(value: bigint): void {
    this.putAscii(String(value))
  }

  /** A number with a decimal point, so that it is not read as an integer. */
  double(value: number): void {
    const text = String(value)
    if (!Number.isFinite(value)) this.putAscii(`"${text}"`)
    else this.putAscii(/^-?\d+$/.test(text) ? `${text}.0` : text)
  }

  /** Whole nanoseconds as microseconds with three decimals, without loss. */
  micros(ns: number): void {
    this.reserve(24)
    if (ns < 0) this.bytes[this.position++] = Ascii.Minus
    const absolute = Math.abs(ns)
    const seconds = Math.floor(absolute / 1e9)
    const rest = (absolute - seconds * 1e9) | 0
    const micros = (rest / 1e3) | 0
    const millis = (micros / 1e3) | 0
    if (seconds === 0) this.putUint32(micros)
    else {
      if (seconds !== this.seconds) this.keepSeconds(seconds)
      const { bytes, digits } = this
      let at = this.position
      for (let i = 0; i < digits.length; i++) bytes[at++] = digits[i]!
      at = putThree(bytes, at, millis)
      this.position = putThree(bytes, at, micros - millis * 1e3)
    }
    this.bytes[this.position++] = Ascii.Point
    this.position = putThree(this.bytes, this.position, rest - micros * 1e3)
  }

  private keepSeconds(seconds: number): void {
    this.seconds = seconds
    this.digits = encoder.encode(String(seconds))
  }

  /** Writes a text without characters to escape. Returns false, and writes nothing, if there are any. */
  private putPlain(text: string): boolean {
    const bytes = this.bytes
    let position = this.position
    bytes[position++] = Ascii.Quote
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code < 0x20 || code > 0x7e || code === Ascii.Quote || code === Ascii.Backslash) return false
      bytes[position++] = code
    }
    bytes[position++] = Ascii.Quote
    this.position = position
    return true
  }

  private putAscii(text: string): void {
    this.reserve(text.length)
    const bytes = this.bytes
    for (let i = 0; i < text.length; i++) bytes[this.position++] = text.charCodeAt(i)
  }

  private putUint32(value: number): void {
    let digits = 1
    for (let above = 10; above <= value; above *= 10) digits++
    const bytes = this.bytes
    const end = this.position + digits
    let rest = value
    for (let at = end - 1; at >= this.position; at--) {
      const tenth = (rest / 10) >>> 0
      bytes[at] = Ascii.Zero + rest - tenth * 10
      rest = tenth
    }
    this.position = end
  }
}
