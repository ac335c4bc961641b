import { type ChunkData, type FileColumn, type Item, presenceOf, type RowGroupWriter } from '../column-data.ts'
import { encodeFlatBuffer, type FlatTable, int8, int16, int32, int64 } from './flatbuffer.ts'

// Messages of Arrow: https://github.com/apache/arrow/blob/main/format/Message.fbs and Schema.fbs

/** Version V5 of the metadata. */
const VERSION = 4
const Header = { schema: 1, dictionary: 2, batch: 3 } as const
const TypeOf = { int: 2, float: 3, text: 5, boolean: 6 } as const
/** Precision of doubles. */
const DOUBLE = 2
/** In front of each message; the length of its metadata follows. */
const CONTINUATION = 0xffffffff
const NONE = new Uint8Array(0)
const encoder = new TextEncoder()

/** The values of one column in a record batch. */
interface Vector {
  readonly length: number
  readonly nulls: number
  readonly buffers: readonly Uint8Array[]
}

/** Texts of few distinct values, whose codes rows have. */
interface Dictionary {
  readonly id: number
  readonly vector: Vector
}

/**
 * Writes one stream of Arrow (IPC, https://arrow.apache.org/docs/format/Columnar.html): a record batch for each row group. Texts that
 * repeat are a dictionary, which each record batch replaces by its own. Nothing is kept from one to the next.
 */
export class ArrowWriter implements RowGroupWriter {
  private hasBegun = false

  /** `asCodes`: names of columns of text that are dictionaries. */
  constructor(
    private readonly columns: readonly FileColumn[],
    private readonly asCodes: ReadonlySet<string>,
    private readonly metadata: Readonly<Record<string, string>>,
  ) {}

  /** Encodes a record batch, with its dictionaries in front. */
  encode(rows: number, data: readonly ChunkData[]): Uint8Array[] {
    const dictionaries: Dictionary[] = []
    const vectors = this.columns.map((column, i) => {
      if (!this.isDictionary(column)) return vectorOf(column, data[i]!)
      const { indexes, values } = indexesOf(data[i]!)
      dictionaries.push({ id: i, vector: textVector(values) })
      return indexes
    })
    const messages = dictionaries.flatMap(({ id, vector }) => {
      const { batch, body } = batchOf(vector.length, [vector])
      return message(Header.dictionary, [int64(id), batch], body)
    })
    const { batch, body } = batchOf(rows, vectors)
    return [...this.begin(), ...messages, ...message(Header.batch, batch, body)]
  }

  /** The end of the stream. */
  finish(): Uint8Array[] {
    return [...this.begin(), prefix(0)]
  }

  private isDictionary({ name, type }: FileColumn): boolean {
    return type === 'string' && this.asCodes.has(name)
  }

  private begin(): Uint8Array[] {
    if (this.hasBegun) return []
    this.hasBegun = true
    const fields = this.columns.map((column, i): FlatTable => {
      const [type, table] = typeOf(column)
      const dictionary = this.isDictionary(column) ? [int64(i), [int32(32), int8(1)]] : undefined
      return [column.name, int8(column.nullable ? 1 : 0), int8(type), table, dictionary, { tables: [] }]
    })
    const pairs = Object.entries(this.metadata)
    return message(Header.schema, [int16(0), { tables: fields }, { tables: pairs }], [])
  }
}

/** The type of the values of a column, and its parameters. */
function typeOf({ type }: FileColumn): [type: number, parameters: FlatTable] {
  switch (type) {
    case 'string':
      return [TypeOf.text, []]
    case 'int64':
      return [TypeOf.int, [int32(64), int8(1)]]
    case 'double':
      return [TypeOf.float, [int16(DOUBLE)]]
    case 'boolean':
      return [TypeOf.boolean, []]
  }
}

/** A message: its metadata, and its body, whose buffers are padded. */
function message(header: number, table: FlatTable, body: readonly Uint8Array[]): Uint8Array[] {
  const length = body.reduce((sum, piece) => sum + piece.length, 0)
  const metadata = encodeFlatBuffer([int16(VERSION), int8(header), table, int64(length)])
  return [prefix(metadata.length), metadata, ...body.filter((piece) => piece.length > 0)]
}

function prefix(length: number): Uint8Array {
  const bytes = new Uint8Array(8)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, CONTINUATION, true)
  view.setInt32(4, length, true)
  return bytes
}

/** The metadata of a record batch, and its body. */
function batchOf(rows: number, vectors: readonly Vector[]): { batch: FlatTable; body: readonly Uint8Array[] } {
  const body: Uint8Array[] = []
  const places: number[][] = []
  let at = 0
  for (const bytes of vectors.flatMap(({ buffers }) => buffers)) {
    places.push([at, bytes.length])
    const padding = (8 - (bytes.length % 8)) % 8
    body.push(bytes, new Uint8Array(padding))
    at += bytes.length + padding
  }
  const nodes = vectors.map(({ length, nulls }) => [length, nulls])
  return { batch: [int64(rows), { pairs: nodes }, { pairs: places }], body }
}

function vectorOf(column: FileColumn, data: ChunkData): Vector {
  const { type } = column
  if (data.kind === 'flags') return { length: data.flags.length, nulls: 0, buffers: [NONE, bits(data.flags)] }
  if (type === 'string') return textVector(data.kind === 'texts' ? data.texts : itemsOf(data))
  const isThere = presenceOf(data, column)
  const items = data.kind === 'numbers' ? data.numbers : itemsOf(data)
  return vector(isThere, [type === 'double' ? doubles(items, isThere) : integers(items, isThere)])
}

/** Values of a column of codes or texts; null: none. */
function itemsOf(data: ChunkData): (Item | null)[] {
  if (data.kind === 'codes') return Array.from(data.codes, (code) => (code < 0 ? null : data.values[code]!))
  return data.kind === 'texts' ? [...data.texts] : []
}

/** Codes of the texts of a row group, in the order of their first use. */
function indexesOf(data: ChunkData): { indexes: Vector; values: readonly Item[] } {
  const { codes, values } = data as ChunkData & { kind: 'codes' }
  const places = new Int32Array(values.length).fill(-1)
  const used: Item[] = []
  const indexes = new Int32Array(codes.length)
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!
    if (code < 0) continue
    if (places[code]! < 0) places[code] = used.push(values[code]!) - 1
    indexes[i] = places[code]!
  }
  return { indexes: vector(presenceOf(data, { nullable: true }), [bytesOf(indexes)]), values: used }
}

/** A vector with its bitmap of values that are there; without one where all are. */
function vector(isThere: Uint8Array, buffers: readonly Uint8Array[]): Vector {
  let nulls = 0
  for (let i = 0; i < isThere.length; i++) nulls += 1 - isThere[i]!
  return { length: isThere.length, nulls, buffers: [nulls > 0 ? bits(isThere) : NONE, ...buffers] }
}

function textVector(texts: readonly (Item | null)[]): Vector {
  const isThere = Uint8Array.from(texts, (text) => (text === null ? 0 : 1))
  const encoded = texts.map((text) => (text === null ? NONE : encoder.encode(text as string)))
  const offsets = new Int32Array(texts.length + 1)
  for (const [i, { length }] of encoded.entries()) offsets[i + 1] = offsets[i]! + length
  const bytes = new Uint8Array(offsets[texts.length]!)
  for (const [i, text] of encoded.entries()) bytes.set(text, offsets[i]!)
  return vector(isThere, [bytesOf(offsets), bytes])
}

function doubles(items: ArrayLike<Item | null>, isThere: Uint8Array): Uint8Array {
  const values = new Float64Array(items.length)
  for (let i = 0; i < items.length; i++) if (isThere[i] === 1) values[i] = items[i] as number
  return bytesOf(values)
}

/** Integers of 64 bits, as two halves: BigInt takes several times as long. */
function integers(items: ArrayLike<Item | null>, isThere: Uint8Array): Uint8Array {
  const halves = new Int32Array(2 * items.length)
  for (let i = 0; i < items.length; i++) {
    if (isThere[i] === 0) continue
    const item = items[i] as number | bigint
    if (typeof item === 'bigint') {
      halves[2 * i] = Number(BigInt.asIntN(32, item))
      halves[2 * i + 1] = Number(BigInt.asIntN(32, item >> 32n))
    } else {
      halves[2 * i] = (item % 2 ** 32) | 0
      halves[2 * i + 1] = Math.floor(item / 2 ** 32)
    }
  }
  return bytesOf(halves)
}

/** One bit for each value, the lowest first. */
function bits(flags: Uint8Array): Uint8Array {
  const bytes = new Uint8Array((flags.length + 7) >> 3)
  for (let i = 0; i < flags.length; i++) if (flags[i] !== 0) bytes[i >> 3]! |= 1 << (i & 7)
  return bytes
}

/** The bytes of an array: little endian, as all machines are that run Node or browsers today. */
function bytesOf(array: Int32Array | Float64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
}
