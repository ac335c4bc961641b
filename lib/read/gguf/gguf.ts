import { FormatError } from '../../errors.ts'
import { ByteCursor } from '../../input/byte-cursor.ts'
import { typeNumbered } from '../../model/ggml-types.ts'
import { elementsOf, SIZE_MAX, type Weight } from '../../model/model-shape.ts'

/** A value of the metadata. Of long texts, long arrays, and arrays of texts, only the length is kept. */
export type GgufValue = number | boolean | string | readonly (number | boolean)[] | { readonly length: number }

/** The start of a GGUF file, without the data of its tensors. */
export interface GgufHeader {
  readonly version: number
  readonly metadata: ReadonlyMap<string, GgufValue>
  readonly tensors: readonly Weight[]
  /** Numbers of types that are not known: sizes of such tensors come from their places. */
  readonly unknownTypes: readonly number[]
}

/** Limits for damaged files: the largest models have some 100 keys, 50 000 tensors, texts of 20 KB, and arrays of 500 000 elements. */
const KEYS_MAX = 1 << 16
const TENSORS_MAX = 1 << 18
const TEXT_BYTES_MAX = 1 << 24
const KEY_BYTES_MAX = 1 << 16
const NAME_BYTES_MAX = 1 << 8
const ELEMENTS_MAX = 1 << 30
/** As ggml's. */
const DIMENSIONS_MAX = 4
const ARRAY_DEPTH_MAX = 4
/** Elements of arrays, and bytes of texts, that are kept: there are arrays with a value for each layer. */
const KEPT_MAX = 1 << 12
/** The same of all values together, and bytes of all names. */
const [ALL_KEPT_MAX, NAMES_BYTES_MAX] = [1 << 22, 1 << 26]

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
  /** Where the latest field begins. */
  private at = 0
  /** Elements and bytes of values, and bytes of names, that may still be kept. */
  private left = ALL_KEPT_MAX
  private leftOfNames = NAMES_BYTES_MAX

  constructor(source: AsyncIterable<Uint8Array>) {
    this.cursor = new ByteCursor(source)
  }

  /** Throws for the latest field. */
  fail(expected: string, found: string): never {
    throw new FormatError('gguf', { byte: this.at }, expected, found)
  }

  /** Place of the next `bytes` bytes in the view. */
  async take(bytes: number): Promise<number> {
    const { cursor } = this
    this.at = cursor.offset
    if (!(await cursor.has(bytes))) this.fail(`${bytes} more bytes of the header`, `the end after ${cursor.available}`)
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
    if (this.sizeBytes === 8) return this.u64(max, what)
    const size = await this.u32()
    return size <= max ? size : this.fail(`${what} up to ${max}`, `${size}`)
  }

  async u64(max: number, what: string): Promise<number> {
    const at = await this.take(8)
    const size = this.view.getBigUint64(at, this.littleEndian)
    return size <= max ? Number(size) : this.fail(`${what} up to ${max}`, `${size}`)
  }

  /** A name of a key or a tensor. */
  async name(what: string, max: number): Promise<string> {
    const length = await this.size(Math.min(max, this.leftOfNames), `a length of ${what}`)
    this.leftOfNames -= length
    return this.decoded(length)
  }

  private async text(): Promise<string | { readonly length: number }> {
    const length = await this.size(TEXT_BYTES_MAX, 'a length of a text')
    if (this.keeps(length)) return this.decoded(length)
    await this.skip(length)
    return { length }
  }

  private async decoded(length: number): Promise<string> {
    const at = await this.take(length)
    return new TextDecoder().decode(this.cursor.bytes.subarray(at, at + length))
  }

  /** May a value of so many elements or bytes be kept? */
  private keeps(length: number): boolean {
    if (length > KEPT_MAX || length > this.left) return false
    this.left -= length
    return true
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
    const isKnown = SCALARS[itemType] !== undefined || itemType === TEXT || itemType === ARRAY
    if (!isKnown) this.fail('a type of elements, 0 to 12', `${itemType}`)
    const length = await this.size(ELEMENTS_MAX, 'a length of an array')
    const scalar = SCALARS[itemType]
    if (scalar && this.keeps(length)) {
      const [bytes, read] = scalar
      const at = await this.take(length * bytes)
      return Array.from({ length }, (_, i) => read(this.view, at + i * bytes, this.littleEndian))
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
    const key = await fields.name('a key', KEY_BYTES_MAX)
    if (metadata.has(key)) fields.fail('keys that differ', `${JSON.stringify(shortOf(key))} twice`)
    metadata.set(key, await fields.value(await fields.u32()))
  }
  return { version, metadata, ...(await tensorsOf(fields, tensors)) }
}

const shortOf = (name: string) => (name.length > NAME_BYTES_MAX ? `${name.slice(0, NAME_BYTES_MAX)}…` : name)

interface Row {
  readonly name: string
  readonly ne: readonly number[]
  /** Of the type. */
  readonly number: number
  readonly offset: number
}

async function rowOf(fields: HeaderFields): Promise<Row> {
  const name = await fields.name('the name of a tensor', NAME_BYTES_MAX)
  const dimensions = await fields.u32()
  if (dimensions > DIMENSIONS_MAX) fields.fail(`at most ${DIMENSIONS_MAX} dimensions`, `${dimensions}`)
  const ne: number[] = []
  for (let d = 0; d < dimensions; d++) ne.push(await fields.size(SIZE_MAX, 'a number of elements'))
  if (!Number.isSafeInteger(elementsOf(ne))) fields.fail('at most 2^53 elements of a tensor', ne.join('×'))
  const number = await fields.u32()
  const type = typeNumbered(number)
  if (type && (ne[0] ?? 1) % type.elements !== 0)
    fields.fail(`rows of blocks of ${type.elements} elements, as ${type.name} has`, `rows of ${ne[0] ?? 1}`)
  return { name, ne, number, offset: await fields.u64(Number.MAX_SAFE_INTEGER, 'a place') }
}

async function tensorsOf(fields: HeaderFields, count: number): Promise<Pick<GgufHeader, 'tensors' | 'unknownTypes'>> {
  const rows: Row[] = []
  const names = new Set<string>()
  for (let i = 0; i < count; i++) {
    const row = await rowOf(fields)
    if (names.has(row.name)) fields.fail('tensors of different names', `${JSON.stringify(row.name)} twice`)
    names.add(row.name)
    rows.push(row)
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
