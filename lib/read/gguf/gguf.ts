import { FormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import { typeNumbered } from '../../model/ggml-types.ts'
import { elementsOf, SIZE_MAX, type Weight } from '../../model/model-shape.ts'

/** A value of the metadata. Of long arrays, and of arrays of texts, only the length is kept. */
export type GgufValue = number | boolean | string | readonly (number | boolean)[] | { readonly length: number }

/** The start of a GGUF file, without the data of its tensors. */
export interface GgufHeader {
  readonly version: number
  readonly metadata: ReadonlyMap<string, GgufValue>
  readonly tensors: readonly Weight[]
  /** Numbers of types that are not known: sizes of such tensors come from their places. */
  readonly unknownTypes: readonly number[]
}

/** Limits for damaged files: the largest models have some 100 keys, 3 000 tensors and texts of 20 KB. */
const KEYS_MAX = 1 << 16
const TENSORS_MAX = 1 << 20
const TEXT_BYTES_MAX = 1 << 24
const DIMENSIONS_MAX = 8
const ARRAY_DEPTH_MAX = 4
/** Elements of arrays that are kept: there are some with a value for each layer. */
const KEPT_MAX = 1 << 12

/** GGUF's types of values that have a fixed size: bytes, and how to read them. 8 is a text, 9 an array. */
const SCALARS: Readonly<
  Record<number, readonly [number, (view: DataView, at: number, le: boolean) => number | boolean]>
> = {
  0: [1, (view, at) => view.getUint8(at)],
  1: [1, (view, at) => view.getInt8(at)],
  2: [2, (view, at, le) => view.getUint16(at, le)],
  3: [2, (view, at, le) => view.getInt16(at, le)],
  4: [4, (view, at, le) => view.getUint32(at, le)],
  5: [4, (view, at, le) => view.getInt32(at, le)],
  6: [4, (view, at, le) => view.getFloat32(at, le)],
  7: [1, (view, at) => view.getUint8(at) !== 0],
  10: [8, (view, at, le) => Number(view.getBigUint64(at, le))],
  11: [8, (view, at, le) => Number(view.getBigInt64(at, le))],
  12: [8, (view, at, le) => view.getFloat64(at, le)],
}
const [TEXT, ARRAY] = [8, 9]

/** Is this the start of a GGUF file? */
export const isGguf = (head: Uint8Array): boolean => 'GGUF' === String.fromCharCode(...head.subarray(0, 4))

/** Reads fields; waits for further chunks where needed. */
class HeaderFields {
  private readonly cursor: ByteCursor
  private view: DataView = new DataView(new ArrayBuffer(0))
  littleEndian = true
  /** Version 1 has sizes of 4 bytes. */
  sizeBytes = 8

  constructor(source: AsyncIterable<Uint8Array>) {
    this.cursor = new ByteCursor(source)
  }

  fail(expected: string, found: string): never {
    throw new FormatError('gguf', { byte: this.cursor.offset }, expected, found)
  }

  /** Place of the next `bytes` bytes in the view. */
  async take(bytes: number): Promise<number> {
    const { cursor } = this
    while (cursor.available < bytes) {
      if (!(await cursor.fill())) this.fail(`${bytes} more bytes of the header`, `the end after ${cursor.available}`)
    }
    if (this.view.buffer !== cursor.bytes.buffer || this.view.byteOffset !== cursor.bytes.byteOffset) {
      this.view = new DataView(cursor.bytes.buffer, cursor.bytes.byteOffset)
    }
    const at = cursor.start
    cursor.skip(bytes)
    return at
  }

  async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const part = Math.min(left, 1 << 16)
      await this.take(part)
      left -= part
    }
  }

  async u32(): Promise<number> {
    const at = await this.take(4)
    return this.view.getUint32(at, this.littleEndian)
  }

  /** A count or a size. */
  async size(max: number, what: string): Promise<number> {
    const at = await this.take(this.sizeBytes)
    const size = this.sizeBytes === 4 ? this.view.getUint32(at, this.littleEndian) : this.u64At(at)
    return size <= max ? size : this.fail(`${what} up to ${max}`, `${size}`)
  }

  u64At(at: number): number {
    return Number(this.view.getBigUint64(at, this.littleEndian))
  }

  async text(): Promise<string> {
    const length = await this.size(TEXT_BYTES_MAX, 'a length of a text')
    const at = await this.take(length)
    return new TextDecoder().decode(this.cursor.bytes.subarray(at, at + length))
  }

  async scalar(type: number): Promise<number | boolean> {
    const kind = SCALARS[type]
    if (!kind) return this.fail('a type of a value, 0 to 12', `${type}`)
    const at = await this.take(kind[0])
    return kind[1](this.view, at, this.littleEndian)
  }

  async value(type: number, depth = 0): Promise<GgufValue> {
    if (type === TEXT) return this.text()
    if (type !== ARRAY) return this.scalar(type)
    if (depth === ARRAY_DEPTH_MAX) this.fail(`at most ${ARRAY_DEPTH_MAX} arrays in each other`, 'more')
    const itemType = await this.u32()
    const length = await this.size(Number.MAX_SAFE_INTEGER, 'a length of an array')
    const scalar = SCALARS[itemType]
    if (scalar && length <= KEPT_MAX) {
      const values: (number | boolean)[] = []
      for (let i = 0; i < length; i++) values.push(await this.scalar(itemType))
      return values
    }
    if (scalar) await this.skip(length * scalar[0])
    else if (itemType === TEXT) {
      for (let i = 0; i < length; i++) await this.skip(await this.size(TEXT_BYTES_MAX, 'a length of a text'))
    } else for (let i = 0; i < length; i++) await this.value(itemType, depth + 1)
    return { length }
  }

  async close(): Promise<void> {
    await this.cursor.close()
  }
}

/**
 * Reads metadata and tensor table of a GGUF file (ggml: docs/gguf.md), versions 1 to 3 of either byte order. Stops before the data
 * of the tensors and closes the source. Throws FormatError where it is not such a file or is cut.
 */
export async function readGguf(source: AsyncIterable<Uint8Array>): Promise<GgufHeader> {
  const fields = new HeaderFields(source)
  try {
    return await headerOf(fields)
  } finally {
    await fields.close()
  }
}

async function headerOf(fields: HeaderFields): Promise<GgufHeader> {
  if ((await fields.u32()) !== 0x46554747) fields.fail('GGUF', 'other bytes')
  let version = await fields.u32()
  if (version > 0 && (version & 0xffff) === 0) {
    fields.littleEndian = false
    version >>>= 24
  }
  if (version < 1 || version > 3) fields.fail('version 1, 2 or 3', `${version}`)
  if (version === 1) fields.sizeBytes = 4
  const tensors = await fields.size(TENSORS_MAX, 'a number of tensors')
  const keys = await fields.size(KEYS_MAX, 'a number of keys')
  const metadata = new Map<string, GgufValue>()
  for (let i = 0; i < keys; i++) {
    const key = await fields.text()
    metadata.set(key, await fields.value(await fields.u32()))
  }
  return { version, metadata, ...(await tensorsOf(fields, tensors)) }
}

async function tensorsOf(fields: HeaderFields, count: number): Promise<Pick<GgufHeader, 'tensors' | 'unknownTypes'>> {
  const rows: { name: string; ne: number[]; number: number; offset: number }[] = []
  for (let i = 0; i < count; i++) {
    const name = await fields.text()
    const dimensions = await fields.u32()
    if (dimensions > DIMENSIONS_MAX) fields.fail(`at most ${DIMENSIONS_MAX} dimensions`, `${dimensions}`)
    const ne: number[] = []
    for (let d = 0; d < dimensions; d++) ne.push(await fields.size(SIZE_MAX, 'a number of elements'))
    if (!Number.isSafeInteger(elementsOf(ne))) fields.fail('at most 2^53 elements of a tensor', ne.join('×'))
    const number = await fields.u32()
    const at = await fields.take(8)
    rows.push({ name, ne, number, offset: fields.u64At(at) })
  }
  const unknownTypes = [...new Set(rows.map(({ number }) => number))].filter((number) => !typeNumbered(number))
  const places = unknownTypes.length === 0 ? [] : rows.map(({ offset }) => offset).sort((a, b) => a - b)
  const nexts = new Map(places.map((place, i) => [place, places[i + 1]]))
  const tensors = rows.map(({ name, ne, number, offset }) => {
    const type = typeNumbered(number)
    // Up to the next tensor: at most the file's alignment too much.
    const next = nexts.get(offset)
    const bytes = type ? (elementsOf(ne) / type.elements) * type.bytes : next === undefined ? -1 : next - offset
    return { name, type: type?.name ?? `type_${number}`, ne, bytes }
  })
  return { tensors, unknownTypes }
}
