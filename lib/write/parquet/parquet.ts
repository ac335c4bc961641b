import type { ChunkData, FileColumn, RowGroupWriter } from '../column-data.ts'
import { type Chunk, ChunkBuffers, Codec, encodeChunk, type Page, Physical } from './chunk.ts'
import { encodeThrift, type Struct } from './thrift.ts'

const MAGIC = Uint8Array.of(0x50, 0x41, 0x52, 0x31)
/** Repetition of a column. */
const Repetition = { required: 0, optional: 1 } as const
const UTF8 = 0

/** Compresses a page: a stream of gzip, or of zstd. */
export interface Compression {
  readonly codec: keyof typeof Codec
  compress(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>
}

/** Further metadata of a file. */
export interface ParquetFacts {
  /** The program that writes it. */
  readonly createdBy: string
  readonly metadata: Readonly<Record<string, string>>
  /** Columns by which rows are sorted within a row group: rising, nulls first, texts by their bytes. */
  readonly sortedBy: readonly string[]
}

/** A row group whose columns are encoded and not compressed yet. */
interface EncodedGroup {
  readonly rows: number
  readonly chunks: readonly Chunk[]
}

/**
 * Writes one Parquet file (https://parquet.apache.org/docs/file-format/): one page for each column of a row group, without nesting. Nothing
 * but the metadata of row groups is kept.
 */
export class ParquetWriter implements RowGroupWriter {
  private readonly groups: Struct[] = []
  private readonly buffers = new ChunkBuffers()
  private offset = 0
  private rows = 0

  constructor(
    private readonly columns: readonly FileColumn[],
    private readonly compression: Compression,
    private readonly facts: ParquetFacts,
  ) {}

  /** Encodes a row group; it is compressed when its bytes are taken. */
  encode(rows: number, data: readonly ChunkData[]): AsyncIterable<Uint8Array> {
    return this.group({ rows, chunks: this.columns.map((column, i) => encodeChunk(column, data[i]!, this.buffers)) })
  }

  private async *group({ rows, chunks }: EncodedGroup): AsyncGenerator<Uint8Array, void> {
    if (this.offset === 0) yield this.passed(MAGIC)
    const begin = this.offset
    const columns: Struct[] = []
    let plainBytes = 0
    for (const [i, chunk] of chunks.entries()) {
      const { pieces, codec, plain } = await this.compressed(chunk.pages)
      const at = this.offset
      const dataAt = at + (chunk.hasDictionary ? pieces[0]!.length + pieces[1]!.length : 0)
      for (const piece of pieces) yield this.passed(piece)
      plainBytes += plain
      columns.push({ 2: { i64: at }, 3: this.metadataOf(this.columns[i]!, chunk, { codec, plain, at, dataAt }) })
    }
    this.rows += rows
    this.groups.push({
      1: columns,
      2: { i64: plainBytes },
      3: { i64: rows },
      4: this.facts.sortedBy.map((name) => ({
        1: this.columns.findIndex((column) => column.name === name),
        2: false,
        3: true,
      })),
      5: { i64: begin },
      6: { i64: this.offset - begin },
    })
  }

  /** The end of the file. */
  *finish(): Generator<Uint8Array, void> {
    if (this.offset === 0) yield this.passed(MAGIC)
    const { createdBy, metadata } = this.facts
    const fields = {
      1: 2,
      2: [{ 4: 'schema', 5: this.columns.length }, ...this.columns.map(schemaElement)],
      3: { i64: this.rows },
      4: this.groups,
      5: Object.entries(metadata).map(([key, value]) => ({ 1: key, 2: value })),
      6: createdBy,
      7: this.columns.map(() => ({ 1: {} })),
    }
    const footer = encodeThrift(fields, this.buffers.small)
    const length = new Uint8Array(4)
    new DataView(length.buffer).setUint32(0, footer.length, true)
    for (const piece of [footer, length, MAGIC]) yield this.passed(piece)
  }

  private passed(piece: Uint8Array): Uint8Array {
    this.offset += piece.length
    return piece
  }

  /** Headers and contents of pages; not compressed where that is not smaller. */
  private async compressed(pages: readonly Page[]) {
    const { codec, compress } = this.compression
    const contents = codec === 'none' ? [] : await Promise.all(pages.map(({ content }) => compress(content)))
    const sizeOf = (pieces: readonly Uint8Array[]) => pieces.reduce((sum, { length }) => sum + length, 0)
    const plainSize = sizeOf(pages.map(({ content }) => content))
    const isSmaller = contents.length > 0 && sizeOf(contents) < plainSize
    const headers = pages.map((page, i) => page.header((isSmaller ? contents[i]! : page.content).length))
    const pieces = pages.flatMap((page, i) => [headers[i]!, isSmaller ? contents[i]! : page.content])
    return { pieces, codec: isSmaller ? Codec[codec] : Codec.none, plain: plainSize + sizeOf(headers) }
  }

  private metadataOf(
    { name, type }: FileColumn,
    { encodings, values, hasDictionary, statistics }: Chunk,
    { codec, plain, at, dataAt }: { codec: number; plain: number; at: number; dataAt: number },
  ): Struct {
    return {
      1: Physical[type],
      2: encodings,
      3: [name],
      4: codec,
      5: { i64: values },
      6: { i64: plain },
      7: { i64: this.offset - at },
      9: { i64: dataAt },
      11: hasDictionary ? { i64: at } : undefined,
      12: statistics,
    }
  }
}

function schemaElement({ name, type, nullable }: FileColumn): Struct {
  const isText = type === 'string'
  return {
    1: Physical[type],
    3: nullable ? Repetition.optional : Repetition.required,
    4: name,
    6: isText ? UTF8 : undefined,
    10: isText ? { 1: {} } : undefined,
  }
}
