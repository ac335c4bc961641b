import { Ascii } from '../bytes/ascii.ts'
import { growColumns } from '../bytes/resized.ts'

/** One row of comma-separated values over bytes (RFC 4180 quoting; no line breaks inside quotes). */
export class CsvRow {
  /** Fields in the current row. */
  count = 0
  protected bytes: Uint8Array = new Uint8Array(0)
  starts = new Int32Array(64)
  ends = new Int32Array(64)

  /** Splits the bytes `[start, end)`. The row refers to `bytes` until the next split. */
  split(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes
    this.count = 0
    let at = start
    for (;;) {
      if (this.count === this.starts.length) growColumns(this, ['starts', 'ends'], 2 * this.count)
      const fieldEnd = bytes[at] === Ascii.Quote ? endOfQuoted(bytes, at, end) : endOfPlain(bytes, at, end)
      this.starts[this.count] = at
      this.ends[this.count++] = fieldEnd
      if (fieldEnd >= end) return
      at = fieldEnd + 1
    }
  }

  isEmpty(field: number): boolean {
    return field < 0 || field >= this.count || this.starts[field] === this.ends[field]
  }

  text(field: number): string {
    if (this.isEmpty(field)) return ''
    const text = decoder.decode(this.bytes.subarray(this.starts[field], this.ends[field]))
    return text.startsWith('"') ? text.slice(1, text.endsWith('"') ? -1 : undefined).replaceAll('""', '"') : text
  }

  /** A number; NaN where the field is empty or no number. Digits only are the fast path; pandas writes `40.0` too. */
  number(field: number): number {
    if (this.isEmpty(field)) return NaN
    let value = 0
    for (let i = this.starts[field]!; i < this.ends[field]!; i++) {
      const digit = this.bytes[i]! - Ascii.Zero
      if (digit < 0 || digit > 9) return Number(this.text(field).trim() || NaN)
      value = value * 10 + digit
    }
    return value
  }

  /** An integer of up to 64 bits, decimal or hexadecimal (`0x…`), or undefined. */
  integer(field: number): bigint | undefined {
    const text = this.text(field)
    if (/^0x[\da-f]{1,16}$/i.test(text)) return BigInt(text)
    return /^\d{1,20}(\.0*)?$/.test(text) ? BigInt(text.split('.')[0]!) : undefined
  }

  /**
   * A decimal integer minus `origin`, exact where the difference is below 2^53; NaN where the field is no such number.
   * `originHigh` and `originLow` are the origin's quotient and remainder by 10^9.
   */
  difference(field: number, originHigh: number, originLow: number): number {
    if (this.isEmpty(field)) return NaN
    const end = this.ends[field]!
    let high = 0
    let low = 0
    for (let i = this.starts[field]!; i < end; i++) {
      const digit = this.bytes[i]! - Ascii.Zero
      if (digit < 0 || digit > 9) return this.slowDifference(field, originHigh, originLow)
      if (end - i > 9) high = high * 10 + digit
      else low = low * 10 + digit
    }
    return (high - originHigh) * 1e9 + (low - originLow)
  }

  private slowDifference(field: number, originHigh: number, originLow: number): number {
    const value = this.integer(field)
    return value === undefined ? NaN : Number(value - (BigInt(originHigh) * 1_000_000_000n + BigInt(originLow)))
  }

  /** The text of the fields from `first` to the end of the row, commas included. */
  tail(first: number): string {
    return decoder.decode(this.bytes.subarray(this.starts[first], this.ends[this.count - 1]))
  }
}

function endOfPlain(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && bytes[at] !== Ascii.Comma) at++
  return at
}

function endOfQuoted(bytes: Uint8Array, start: number, end: number): number {
  let at = start + 1
  while (at < end && (bytes[at] !== Ascii.Quote || bytes[at + 1] === Ascii.Quote))
    at += bytes[at] === Ascii.Quote ? 2 : 1
  return endOfPlain(bytes, Math.min(at, end), end)
}

const decoder = new TextDecoder()
