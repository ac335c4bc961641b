import { resized } from '../../bytes/resized.ts'

/** An integer of some bytes. */
interface FlatInteger {
  readonly bytes: 1 | 2 | 4 | 8
  readonly value: number
}

/** A value of a table: an integer of some bytes, or what is written elsewhere and pointed to. */
type FlatField = FlatInteger | string | FlatTable | FlatList | undefined
/** Fields in the order of their schema; undefined: its default. */
export type FlatTable = readonly FlatField[]
/** A vector: of tables, or of structures that are pairs of 64-bit integers. */
type FlatList = { readonly tables: readonly FlatTable[] } | { readonly pairs: readonly (readonly number[])[] }

/** An integer of 8 bits. */
export const int8 = (value: number): FlatField => ({ bytes: 1, value })
/** An integer of 16 bits. */
export const int16 = (value: number): FlatField => ({ bytes: 2, value })
/** An integer of 32 bits. */
export const int32 = (value: number): FlatField => ({ bytes: 4, value })
/** An integer of 64 bits. */
export const int64 = (value: number): FlatField => ({ bytes: 8, value })

const encoder = new TextEncoder()

/**
 * Encodes a table as a FlatBuffer (https://flatbuffers.dev/internals/), padded to 8 bytes: from front to back, what is pointed to
 * after what points there.
 */
export function encodeFlatBuffer(root: FlatTable): Uint8Array {
  const writer = new FlatWriter()
  writer.root(root)
  return writer.finish()
}

class FlatWriter {
  private bytes = new Uint8Array(1 << 12)
  private view = new DataView(this.bytes.buffer)
  private end = 0
  /** Pointers whose targets are not written yet. */
  private readonly waiting: { readonly at: number; readonly target: string | FlatTable | FlatList }[] = []

  root(table: FlatTable): void {
    this.point(this.room(4), table)
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const target = this.write(next.target)
      this.view.setUint32(next.at, target - next.at, true)
    }
  }

  finish(): Uint8Array {
    this.align(8, 0)
    return this.bytes.slice(0, this.end)
  }

  private point(at: number, target: string | FlatTable | FlatList): void {
    this.waiting.push({ at, target })
  }

  /** Appends zeros and returns where they begin. */
  private room(bytes: number): number {
    const at = this.end
    this.end += bytes
    if (this.end > this.bytes.length) {
      this.bytes = resized(this.bytes, 2 * this.end)
      this.view = new DataView(this.bytes.buffer)
    }
    return at
  }

  /** What follows `after` further bytes begins at a multiple of `to`. */
  private align(to: number, after: number): void {
    this.room((to - ((this.end + after) % to)) % to)
  }

  private write(target: string | FlatTable | FlatList): number {
    if (typeof target === 'string') return this.text(target)
    return isTable(target) ? this.table(target) : this.list(target)
  }

  private text(text: string): number {
    const encoded = encoder.encode(text)
    this.align(4, 0)
    const at = this.room(4 + encoded.length + 1) // texts end in 0
    this.view.setUint32(at, encoded.length, true)
    this.bytes.set(encoded, at + 4)
    return at
  }

  private list(list: FlatList): number {
    const items = 'tables' in list ? list.tables : list.pairs
    this.align(8, 4)
    const at = this.room(4)
    this.view.setUint32(at, items.length, true)
    if ('pairs' in list) for (const value of list.pairs.flat()) this.int64(this.room(8), value)
    else {
      const first = this.room(4 * items.length)
      for (const [i, table] of list.tables.entries()) this.point(first + 4 * i, table)
    }
    return at
  }

  /** The places of the fields come first (vtable), then the fields. */
  private table(fields: FlatTable): number {
    const head = 4 + 2 * fields.length
    this.align(8, head)
    const vtable = this.room(head)
    const table = this.room(4)
    this.view.setInt32(table, table - vtable, true)
    for (const [i, field] of fields.entries()) {
      if (field === undefined) continue
      const size = isInteger(field) ? field.bytes : 4
      this.align(size, 0)
      const at = this.room(size)
      this.view.setUint16(vtable + 4 + 2 * i, at - table, true)
      if (isInteger(field)) this.integer(at, field.bytes, field.value)
      else this.point(at, field)
    }
    this.view.setUint16(vtable, head, true)
    this.view.setUint16(vtable + 2, this.end - table, true)
    return table
  }

  private integer(at: number, bytes: 1 | 2 | 4 | 8, value: number): void {
    if (bytes === 1) this.view.setUint8(at, value)
    else if (bytes === 2) this.view.setInt16(at, value, true)
    else if (bytes === 4) this.view.setInt32(at, value, true)
    else this.int64(at, value)
  }

  private int64(at: number, value: number): void {
    this.view.setBigInt64(at, BigInt(value), true)
  }
}

function isTable(target: FlatTable | FlatList): target is FlatTable {
  return Array.isArray(target)
}

function isInteger(field: Exclude<FlatField, undefined>): field is FlatInteger {
  return typeof field === 'object' && 'bytes' in field
}
