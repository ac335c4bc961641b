import type { Default } from './schema.ts'
import { type Decoder, readRowid, readVarint, varintBytes } from './varint.ts'

/** Bytes of a value by its serial type; types from 12 on are blobs and texts. */
const LENGTHS = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0]
const NULL = 0
/** Not a serial type: the row was written before the column, which has a default value, was added. */
const ABSENT = -1
const FLOAT = 7
const ONE = 9
const TEXT_MIN = 13

/**
 * Called where something cannot be read: why, and the byte of the file. `isUnread`: it is not damaged, but this reader does
 * not support it.
 */
export type OnDamage = (detail: string, byte: number, isUnread?: boolean) => void

/**
 * A cursor over the rows of one leaf page after the other, with the fields that were requested. Decodes in place; a row is
 * valid until the next {@link next}.
 */
export class SqliteRows {
  /** Rowid of the current row. */
  rowid = 0
  private bytes: Uint8Array = new Uint8Array(0)
  private view: DataView = new DataView(new ArrayBuffer(0))
  private page: Uint8Array = new Uint8Array(0)
  private spilled: ReadonlyMap<number, Uint8Array> | undefined
  private pageOffset = 0
  private pointers = 0
  private count = 0
  private cell = 0
  /** By column: the serial type, and the offset in {@link bytes}. */
  private readonly types: Int32Array
  private readonly places: Int32Array
  private readonly columns: number
  /** By column: the value of {@link types} where a row ends before it. */
  private readonly absent: Int32Array

  /**
   * `fields` are the columns to read, by their place in the table; -1: the table has no such column. `rowidColumn` is the
   * alias of the rowid, or -1; `defaults` are the values, by place, of rows that end before a column.
   */
  constructor(
    private readonly fields: readonly number[],
    private readonly rowidColumn: number,
    private readonly decoder: Decoder,
    private readonly onDamage: OnDamage,
    private readonly defaults: readonly Default[] = [],
  ) {
    this.columns = Math.max(0, ...fields.map((field) => field + 1))
    this.types = new Int32Array(this.columns)
    this.places = new Int32Array(this.columns)
    this.absent = Int32Array.from({ length: this.columns }, (_, i) => ((defaults[i] ?? null) === null ? NULL : ABSENT))
  }

  /** Moves to a page: its cells begin after the header at `headerAt`; `spilled` contains whole payloads, by cell. */
  enter(page: Uint8Array, headerAt: number, pageOffset: number, spilled?: ReadonlyMap<number, Uint8Array>): void {
    this.page = page
    this.pageOffset = pageOffset
    this.spilled = spilled
    this.count = (page[headerAt + 3]! << 8) | page[headerAt + 4]!
    this.pointers = headerAt + 8
    this.cell = 0
  }

  /** Moves to the next row of the page; false after the last. Rows that cannot be read are reported and skipped. */
  next(): boolean {
    while (this.cell < this.count) {
      const cell = this.cell++
      const pointer = this.pointers + 2 * cell
      const at = (this.page[pointer]! << 8) | this.page[pointer + 1]!
      const wrong = this.decode(cell, at)
      if (wrong === undefined) return true
      this.onDamage(wrong, this.pageOffset + at)
    }
    return false
  }

  /** Number of rows of the page. */
  get size(): number {
    return this.count
  }

  isNull(field: number): boolean {
    const column = this.fields[field]!
    return column < 0 || (this.types[column] === NULL && column !== this.rowidColumn)
  }

  /** An integer or a real; `missing` where the field is NULL or the table has no such column. Inexact above 2^53. */
  number(field: number, missing = NaN): number {
    const column = this.fields[field]!
    if (column >= 0 && column === this.rowidColumn) return this.rowid
    const type = this.typeOf(field)
    if (type <= NULL || type > ONE) return type === ABSENT ? numberOf(this.defaults[column]!, missing) : missing
    if (type === FLOAT) return this.view.getFloat64(this.places[column]!)
    return this.high(field) * 2 ** 32 + this.low(field)
  }

  /** As {@link number}, but a bigint above 2^53. */
  exact(field: number, missing = NaN): number | bigint {
    const value = this.number(field, missing)
    const isRowid = this.fields[field] === this.rowidColumn
    if (isRowid || this.typeOf(field) === FLOAT || !(Math.abs(value) > Number.MAX_SAFE_INTEGER)) return value
    return (BigInt(this.high(field)) << 32n) | BigInt(this.low(field))
  }

  /** The upper 32 bits of an integer, signed. */
  high(field: number): number {
    const at = this.places[this.fields[field]!]!
    const type = this.typeOf(field)
    if (type >= 1 && type <= 4) return this.view.getInt8(at) >> 31
    if (type === 5) return this.view.getInt16(at)
    return type === 6 ? this.view.getInt32(at) : Number(this.unstored(field) >> 32n)
  }

  /** The lower 32 bits of an integer, unsigned. */
  low(field: number): number {
    const at = this.places[this.fields[field]!]!
    switch (this.typeOf(field)) {
      case 1:
        return this.view.getInt8(at) >>> 0
      case 2:
        return this.view.getInt16(at) >>> 0
      case 3:
        return ((this.view.getInt8(at) << 16) | this.view.getUint16(at + 1)) >>> 0
      case 4:
        return this.view.getUint32(at)
      case 5:
        return this.view.getUint32(at + 2)
      case 6:
        return this.view.getUint32(at + 4)
      case ONE:
        return 1
    }
    return Number(BigInt.asUintN(32, this.unstored(field)))
  }

  /** A text; empty where the field is NULL or no text. */
  text(field: number): string {
    const type = this.typeOf(field)
    if (type === ABSENT) return textOf(this.defaults[this.fields[field]!]!)
    if (type < TEXT_MIN || type % 2 === 0) return ''
    const at = this.places[this.fields[field]!]!
    return this.decoder.decode(this.bytes.subarray(at, at + (type - TEXT_MIN) / 2))
  }

  /** An integer that the row does not store: the rowid, or a default value; else 0. */
  private unstored(field: number): bigint {
    const column = this.fields[field]!
    if (column < 0) return 0n
    const value = column === this.rowidColumn ? this.rowid : this.types[column] === ABSENT ? this.defaults[column] : 0
    return typeof value === 'bigint' ? value : Number.isInteger(value) ? BigInt(value as number) : 0n
  }

  private typeOf(field: number): number {
    const column = this.fields[field]!
    return column < 0 ? NULL : this.types[column]!
  }

  /** Finds the fields of a row. Returns the reason where it cannot be read. */
  private decode(cell: number, at: number): string | undefined {
    const { page } = this
    if (at < this.pointers || at + 2 > page.length) return `cell ${cell} is outside of its page`
    const payloadBytes = readVarint(page, at)
    const rowidAt = at + varintBytes(page, at)
    this.rowid = readRowid(page, rowidAt)
    const whole = this.spilled?.get(cell)
    const bytes = whole ?? page
    const start = whole ? 0 : rowidAt + varintBytes(page, rowidAt)
    const end = start + (whole ? whole.length : payloadBytes)
    if (end > bytes.length) return `cell ${cell}: ${payloadBytes} bytes reach beyond its page`
    if (this.bytes !== bytes) {
      this.bytes = bytes
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    }
    return this.findFields(start, end) ? undefined : `cell ${cell}: its fields do not fit in ${payloadBytes} bytes`
  }

  private findFields(start: number, end: number): boolean {
    const { bytes, types, places, columns } = this
    const headerEnd = start + readVarint(bytes, start)
    if (!(headerEnd <= end)) return false
    let header = start + varintBytes(bytes, start)
    let place = headerEnd
    for (let column = 0; column < columns; column++) {
      if (header >= headerEnd) {
        types[column] = this.absent[column]! // the column was added after the row
        continue
      }
      let type = bytes[header]!
      if (type < 0x80) header++
      else {
        type = readVarint(bytes, header)
        header += varintBytes(bytes, header)
      }
      types[column] = type
      places[column] = place
      place += type < 12 ? LENGTHS[type]! : Math.floor((type - 12) / 2)
      if (place > end) return false
    }
    return header <= headerEnd
  }
}

function numberOf(value: Default, missing: number): number {
  return typeof value === 'string' || value === null ? missing : Number(value)
}

function textOf(value: Default): string {
  return typeof value === 'string' ? value : ''
}
