import { type ChunkData, type FileColumn, type Item, missingOf, presenceOf } from '../column-data.ts'
import { EncodingWriter, widthOf } from './encodings.ts'
import { encodeThrift, type Struct } from './thrift.ts'

/** Types of Parquet, by their numbers in its metadata. */
export const Physical = { boolean: 0, int64: 2, double: 5, string: 6 } as const satisfies Readonly<
  Record<FileColumn['type'], number>
>
const Coding = { PLAIN: 0, RLE: 3, DELTA_BINARY_PACKED: 5, RLE_DICTIONARY: 8 } as const
/** Methods of compression, by their numbers. */
export const Codec = { none: 0, gzip: 2, zstd: 6 } as const
const PageType = { data: 0, dictionary: 2 } as const
/** Longer texts have no statistics. */
const STATISTICS_MAX = 64
/** Differences of whole numbers are exact below it. */
const RANGE_MAX = 2 ** 52

/** A page before its compression. */
export interface Page {
  readonly content: Uint8Array
  /** Its header, for the size of the compressed content. */
  header(compressed: number): Uint8Array
}

/** The pages of a column in a row group, and what the metadata state of them. */
export interface Chunk {
  /** The dictionary first, if there is one. */
  readonly pages: readonly Page[]
  readonly hasDictionary: boolean
  readonly encodings: readonly number[]
  readonly statistics: Struct
  readonly values: number
}

/** Buffers that are used again for each column: of a page, of a dictionary, of single values. They are empty in between. */
export class ChunkBuffers {
  readonly page = new EncodingWriter()
  readonly dictionary = new EncodingWriter()
  readonly small = new EncodingWriter()
}

/** Encodes the values of a column. */
export function encodeChunk(column: FileColumn, data: ChunkData, buffers: ChunkBuffers): Chunk {
  const writer = buffers.page
  const isThere = presenceOf(data, column)
  const missing = missingOf(isThere)
  if (column.nullable) writer.levels(isThere)
  const encoded =
    data.kind === 'codes' ? asDictionary(column, data, buffers) : asValues(column, data, { isThere, missing }, buffers)
  const { dictionary, encoding, bounds } = encoded
  const head = { 1: PageType.data, 5: { 1: isThere.length, 2: encoding, 3: Coding.RLE, 4: Coding.RLE } }
  const page = pageOf(writer.take(), head, buffers)
  return {
    pages: dictionary ? [dictionary, page] : [page],
    hasDictionary: dictionary !== undefined,
    encodings: [...new Set([...(dictionary ? [Coding.PLAIN] : []), Coding.RLE, encoding])],
    statistics: { 3: { i64: missing }, 5: bounds?.most, 6: bounds?.least },
    values: isThere.length,
  }
}

interface Bounds {
  readonly least: Uint8Array
  readonly most: Uint8Array
}

interface Encoded {
  readonly dictionary?: Page
  readonly encoding: number
  readonly bounds: Bounds | undefined
}

/** Values as indexes into those that occur in this row group, in the order of their first use. */
function asDictionary(
  column: FileColumn,
  { codes, values }: ChunkData & { kind: 'codes' },
  buffers: ChunkBuffers,
): Encoded {
  const { page: writer, dictionary: plain } = buffers
  const places = new Int32Array(values.length).fill(-1)
  const used: Item[] = []
  const indexes = new Int32Array(codes.length)
  let count = 0
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!
    if (code < 0) continue
    let place = places[code]!
    if (place < 0) {
      place = used.length
      places[code] = place
      used.push(values[code]!)
    }
    indexes[count++] = place
  }
  if (count === 0) return { encoding: Coding.PLAIN, bounds: undefined }
  const width = widthOf(used.length - 1)
  writer.byte(width)
  writer.runs(indexes.subarray(0, count), width)
  const bounds = writePlain(column, used, plain, buffers)
  const head = { 1: PageType.dictionary, 7: { 1: used.length, 2: Coding.PLAIN } }
  const dictionary = pageOf(plain.take(), head, buffers)
  return { dictionary, encoding: Coding.RLE_DICTIONARY, bounds }
}

function asValues(
  column: FileColumn,
  data: Exclude<ChunkData, { kind: 'codes' }>,
  { isThere, missing }: { readonly isThere: Uint8Array; readonly missing: number },
  buffers: ChunkBuffers,
): Encoded {
  const writer = buffers.page
  if (data.kind === 'flags') {
    writer.flags(data.flags)
    return { encoding: Coding.PLAIN, bounds: undefined }
  }
  if (data.kind === 'texts') {
    const there = data.texts.filter((text) => text !== null)
    return { encoding: Coding.PLAIN, bounds: writePlain(column, there, writer, buffers) }
  }
  const there = missing === 0 ? data.numbers : thoseOf(data.numbers, isThere, missing)
  let [least, most] = [Infinity, -Infinity]
  for (let i = 0; i < there.length; i++) {
    const value = there[i]!
    if (value < least) least = value
    if (value > most) most = value
  }
  const isSmall = Math.abs(least) < RANGE_MAX && most - least < RANGE_MAX
  if (!data.isDelta || column.type !== 'int64' || !isSmall)
    return { encoding: Coding.PLAIN, bounds: writePlain(column, there, writer, buffers) }
  writer.delta(there)
  return { encoding: Coding.DELTA_BINARY_PACKED, bounds: boundsOf(column, least, most, buffers) }
}

function thoseOf(numbers: Float64Array, isThere: Uint8Array, missing: number): Float64Array {
  const those = new Float64Array(numbers.length - missing)
  for (let i = 0, count = 0; i < numbers.length && count < those.length; i++)
    if (isThere[i] === 1) those[count++] = numbers[i]!
  return those
}

/** Writes values and returns the bytes of the least and the greatest one; undefined where there are none, or long ones. */
function writePlain(
  column: FileColumn,
  values: ArrayLike<Item>,
  writer: EncodingWriter,
  buffers: ChunkBuffers,
): Bounds | undefined {
  if (column.type === 'string') return writeTexts(values as ArrayLike<string>, writer)
  let [least, most]: [number | bigint, number | bigint] = [Infinity, -Infinity]
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number | bigint
    if (column.type === 'double') writer.double(value as number)
    else writer.int64(value)
    if (value < least) least = value
    if (value > most) most = value
  }
  return boundsOf(column, least, most, buffers)
}

function writeTexts(values: ArrayLike<string>, writer: EncodingWriter): Bounds | undefined {
  let [least, most]: [Uint8Array | undefined, Uint8Array | undefined] = [undefined, undefined]
  let isShort = true
  for (let i = 0; i < values.length; i++) {
    const bytes = writer.text(values[i]!)
    isShort &&= bytes.length <= STATISTICS_MAX
    if (!isShort) continue
    if (!least || compare(bytes, least) < 0) least = bytes
    if (!most || compare(bytes, most) > 0) most = bytes
  }
  return isShort && least && most ? { least, most } : undefined
}

function boundsOf(
  { type }: FileColumn,
  least: number | bigint,
  most: number | bigint,
  { small: writer }: ChunkBuffers,
): Bounds | undefined {
  if (least > most) return undefined
  const bytes = (value: number | bigint) => {
    if (type === 'double') writer.double(value as number)
    else writer.int64(value)
    return writer.take()
  }
  // Parquet: the least 0 of doubles is −0, the greatest +0.
  return { least: bytes(least === 0 && type === 'double' ? -0 : least), most: bytes(most === 0 ? 0 : most) }
}

/** Order of texts in Parquet: by their bytes in UTF-8. */
function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

function pageOf(content: Uint8Array, { 1: type, ...rest }: Struct, { small }: ChunkBuffers): Page {
  return {
    content,
    header: (compressed) => encodeThrift({ 1: type, 2: content.length, 3: compressed, ...rest }, small),
  }
}
