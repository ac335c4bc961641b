import { Ascii } from '../../bytes/ascii.ts'

/** Beyond, a power of ten is no time. */
const EXPONENT_MAX = 40
const DECIMAL = /^(-?)(\d{1,400})(?:\.(\d{0,400}))?(?:[eE]([+-]?\d{1,4}))?$/

/**
 * A decimal number of microseconds as it is written, to the nanosecond: a double holds a time of today to a quarter of a
 * microsecond only. Finer digits are rounded.
 */
export class Micros {
  /** Whole microseconds, and the nanoseconds beyond; both below 0 for a time before 0. */
  whole = 0
  nanos = 0

  /** Reads the number `[start, end)`, which may be in quotes; false if it is none, or too large to be a time. */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    if (bytes[start] === Ascii.Quote) {
      start++
      end--
    }
    const isNegative = bytes[start] === Ascii.Minus
    let at = isNegative ? start + 1 : start
    const first = at
    let whole = 0
    for (; at < end; at++) {
      const digit = bytes[at]! - 0x30
      if (digit < 0 || digit > 9) break
      whole = whole * 10 + digit
    }
    if (at === first || whole > Number.MAX_SAFE_INTEGER) return this.readSlowly(bytes, start, end)
    let nanos = 0
    if (at < end && bytes[at] === Ascii.Point) {
      at++
      for (let unit = 100; at < end; at++, unit /= 10) {
        const digit = bytes[at]! - 0x30
        if (digit < 0 || digit > 9) break
        if (unit >= 1) nanos += digit * unit
        else if (unit > 0.05 && digit >= 5) nanos++
      }
    }
    if (at !== end) return this.readSlowly(bytes, start, end)
    this.whole = isNegative ? -whole : whole
    this.nanos = isNegative ? -nanos : nanos
    return true
  }

  /** Nanoseconds since another time; NaN where a number does not hold them exactly. */
  since(whole: number, nanos: number): number {
    const ns = (this.whole - whole) * 1000 + (this.nanos - nanos)
    return Number.isSafeInteger(ns) ? ns : NaN
  }

  /** With exponents, and with more digits than a double holds. */
  private readSlowly(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start > 1000) return false
    const [, sign, whole, fraction = '', exponent = '0'] = DECIMAL.exec(ascii(bytes, start, end)) ?? []
    if (whole === undefined || Math.abs(Number(exponent)) > EXPONENT_MAX) return false
    const shift = Number(exponent) + 3 - fraction.length
    const digits = BigInt(whole + fraction)
    const scale = 10n ** BigInt(Math.abs(shift))
    const ns = (sign === '-' ? -1n : 1n) * (shift >= 0 ? digits * scale : (digits + scale / 2n) / scale)
    this.whole = Number(ns / 1000n)
    this.nanos = Number(ns % 1000n)
    return Number.isSafeInteger(this.whole)
  }
}

function ascii(bytes: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...bytes.subarray(start, end))
}
