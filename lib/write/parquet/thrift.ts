import type { EncodingWriter } from './encodings.ts'

/** Types of Thrift's compact protocol. */
const Wire = { true: 1, false: 2, i32: 5, i64: 6, binary: 8, list: 9, struct: 12 } as const
const encoder = new TextEncoder()

/** A field of a structure: an integer, a text, a boolean, a structure, or a list of one of them. */
export type Field =
  | number
  | Int64
  | string
  | boolean
  | Uint8Array
  | Struct
  | readonly (number | string | Struct)[]
  | undefined
/** Fields by their ids, in rising order. */
export type Struct = { readonly [id: number]: Field }

/** An integer of 64 bits: up to 2^52. */
export interface Int64 {
  readonly i64: number
}

/**
 * Encodes a structure in Thrift's compact protocol, as Parquet's metadata are: https://github.com/apache/parquet-format. `writer` is empty
 * before and afterwards.
 */
export function encodeThrift(struct: Struct, writer: EncodingWriter): Uint8Array {
  writeStruct(writer, struct)
  return writer.take()
}

function writeStruct(writer: EncodingWriter, struct: Struct): void {
  let before = 0
  for (const [key, field] of Object.entries(struct)) {
    if (field === undefined) continue
    const id = Number(key)
    const wire = typeof field === 'boolean' ? (field ? Wire.true : Wire.false) : wireOf(field)
    writer.byte(((id - before) << 4) | wire)
    before = id
    if (typeof field !== 'boolean') writeField(writer, field)
  }
  writer.byte(0)
}

function wireOf(field: Exclude<Field, undefined | boolean>): number {
  if (typeof field === 'number') return Wire.i32
  if (typeof field === 'string' || ArrayBuffer.isView(field)) return Wire.binary
  if (Array.isArray(field)) return Wire.list
  return isInt64(field) ? Wire.i64 : Wire.struct
}

function writeField(writer: EncodingWriter, field: Exclude<Field, undefined | boolean>): void {
  if (typeof field === 'number') return writer.zigzag(field)
  if (typeof field === 'string') return writeBytes(writer, encoder.encode(field))
  if (ArrayBuffer.isView(field)) return writeBytes(writer, field)
  if (isList(field)) return writeList(writer, field)
  if (isInt64(field)) return writer.zigzag(field.i64)
  writeStruct(writer, field)
}

function writeList(writer: EncodingWriter, list: readonly (number | string | Struct)[]): void {
  const wire = list.length === 0 ? Wire.struct : wireOf(list[0]!)
  if (list.length < 15) writer.byte((list.length << 4) | wire)
  else {
    writer.byte(0xf0 | wire)
    writer.varint(list.length)
  }
  for (const value of list) writeField(writer, value)
}

function writeBytes(writer: EncodingWriter, bytes: Uint8Array): void {
  writer.varint(bytes.length)
  writer.raw(bytes)
}

function isList(field: Field): field is readonly (number | string | Struct)[] {
  return Array.isArray(field)
}

function isInt64(field: object): field is Int64 {
  return 'i64' in field
}
