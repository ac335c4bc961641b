import { Ascii } from '../bytes/ascii.ts'
import { isSame } from './byte-table.ts'
import { CsvRow } from './csv-row.ts'

/**
 * One row of cells with names: `ts:12,func:llama_decode,`. Fields are numbered by the names given, in any order of the
 * row; cells of other names are skipped. A comma separates only before a name and a colon, or at the row's end, so that
 * values may contain commas.
 */
export class KeyedRow extends CsvRow {
  private readonly names: readonly Uint8Array[]
  /** Fields by their places in the last row: rows mostly have the same order. */
  private readonly order: number[] = []

  constructor(names: readonly string[]) {
    super()
    this.names = names.map((name) => encoder.encode(name))
    this.starts = new Int32Array(names.length)
    this.ends = new Int32Array(names.length)
  }

  /**
   * Splits the bytes `[start, end)`. {@link count} is the number of cells, of any name; a comma at the row's end has an
   * empty one after it.
   */
  override split(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes
    this.count = 0
    this.ends.fill(0)
    this.starts.fill(0)
    let at = start
    while (at < end && endOfName(bytes, at, end) < 0) at++ // a byte order mark, or damage
    while (at < end) {
      const colon = endOfName(bytes, at, end)
      let valueEnd = colon + 1
      while (valueEnd < end && !separates(bytes, valueEnd, end)) valueEnd++
      const field = this.fieldOf(bytes, at, colon)
      if (field >= 0) {
        this.starts[field] = colon + 1
        this.ends[field] = valueEnd
      }
      this.count++
      at = valueEnd + 1
    }
    if (this.count > 0 && bytes[end - 1] === Ascii.Comma) this.count++
  }

  override isEmpty(field: number): boolean {
    return field < 0 || this.starts[field] === this.ends[field]
  }

  private fieldOf(bytes: Uint8Array, start: number, end: number): number {
    const guess = this.order[this.count] ?? 0
    if (isSame(this.names[guess]!, bytes, start, end)) return guess
    const field = this.names.findIndex((name) => isSame(name, bytes, start, end))
    if (field >= 0) this.order[this.count] = field
    return field
  }
}

/** Is this a comma before another cell, or at the row's end? */
function separates(bytes: Uint8Array, at: number, end: number): boolean {
  return bytes[at] === Ascii.Comma && (at + 1 === end || endOfName(bytes, at + 1, end) >= 0)
}

/** Place of the colon after the name that begins at `start`; -1: none. */
function endOfName(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && isNameByte(bytes[at]!, at > start)) at++
  return at > start && at < end && bytes[at] === Ascii.Colon ? at : -1
}

/** Names consist of letters, digits and underscores, and do not begin with a digit. */
function isNameByte(byte: number, mayBeDigit: boolean): boolean {
  const letter = byte | 0x20
  return (letter >= 0x61 && letter <= 0x7a) || byte === 0x5f || (mayBeDigit && byte >= 0x30 && byte <= 0x39)
}

const encoder = new TextEncoder()
