import { ArrowWriter } from '../write/arrow/arrow.ts'
import type { RowGroupWriter } from '../write/column-data.ts'
import { gzipBytes } from '../write/gzip.ts'
import { type Compression, ParquetWriter } from '../write/parquet/parquet.ts'
import type { TableSchema } from './column.ts'
import { TABLES, TABLES_VERSION, type TableName, type TableRow } from './schema.ts'
import { type Store, storeOf } from './stores.ts'

/** Rows of a row group. */
export const ROW_GROUP = 122_880
/** What all platforms have. */
const GZIP: Compression = { codec: 'gzip', compress: gzipBytes }
/** Room for the first rows. */
const FIRST_CAPACITY = 1 << 8

/** A row without the column that is the same in all of them. */
export type NewRow<T extends TableName> = Omit<TableRow<T>, 'trace_id'>

/** A format of the files of tables: Parquet, or a stream of Arrow (IPC) that is not compressed. */
export type TablesFormat = 'parquet' | 'arrow'

/** What the files of a run have in common. */
export interface FilesOf {
  readonly traceId: string
  /** `parquet` by default. */
  readonly format?: TablesFormat | undefined
  /** How pages of Parquet are compressed; by default, by the platform's CompressionStream (gzip). */
  readonly compression?: Compression | undefined
  /** The program that writes them, with its version. */
  readonly createdBy: string
}

/**
 * One table of one run as a file: rows are collected, sorted and encoded by row groups. Bytes are taken from {@link pieces} in
 * between.
 */
export class TableFile<T extends TableName> {
  /** Rows that are not encoded yet. */
  count = 0
  /** All rows. */
  total = 0
  private capacity = 0
  private readonly stores: Readonly<Record<string, Store>>
  private readonly all: readonly Store[]
  private readonly schema: TableSchema
  private readonly writer: RowGroupWriter
  private readonly groups: (AsyncIterable<Uint8Array> | Iterable<Uint8Array>)[] = []

  constructor(
    readonly table: T,
    { traceId, format, compression = GZIP, createdBy }: FilesOf,
    /** Called when a row group is full; by default, all of it is encoded. Each writer of many rows sets its own. */
    public onFull: () => void = () => this.encode(),
  ) {
    const schema: TableSchema = TABLES[table]
    this.schema = schema
    const names = Object.keys(schema.columns)
    this.stores = Object.fromEntries(names.map((name) => [name, storeOf(schema.columns[name]!)]))
    this.all = Object.values(this.stores)
    const columns = names.map((name) => ({ name, ...schema.columns[name]! }))
    const metadata = {
      'ggml2perfetto.table': table,
      'ggml2perfetto.version': String(TABLES_VERSION),
      trace_id: traceId,
    }
    const asCodes = new Set(names.filter((name) => schema.columns[name]!.encoding === 'dictionary'))
    this.writer =
      format === 'arrow'
        ? new ArrowWriter(columns, asCodes, { ...metadata, created_by: createdBy })
        : new ParquetWriter(columns, compression, { createdBy, metadata, sortedBy: schema.sortedBy })
    this.traceId = traceId
  }

  private readonly traceId: string

  /** The values of a column, for writers of many rows. */
  store(name: string): Store {
    return this.stores[name]!
  }

  /** Adds a row. */
  add(row: NewRow<T>): void {
    const at = this.next()
    for (const name in row) this.stores[name]!.set(at, row[name as keyof typeof row] as never)
  }

  /** Makes room for a row and returns its number; all its columns but `trace_id` must be set. */
  next(): number {
    if (this.count === ROW_GROUP) this.onFull()
    if (this.count === this.capacity) {
      this.capacity = Math.min(Math.max(2 * this.capacity, FIRST_CAPACITY), ROW_GROUP)
      for (const store of this.all) store.reserve(this.capacity)
    }
    this.stores['trace_id']!.set(this.count, this.traceId)
    this.total++
    return this.count++
  }

  /** Encodes rows as a row group: all that were collected, or those for which `isReady`. */
  encode(isReady?: (row: number) => boolean): void {
    if (this.count === 0) return
    const ordered = this.order()
    const ready = isReady ? ordered.filter(isReady) : ordered
    if (ready.length > 0) {
      const data = this.all.map((store) => store.data(ready))
      this.groups.push(this.writer.encode(ready.length, data))
    }
    const left = isReady
      ? Int32Array.from({ length: this.count }, (_, row) => row).filter((row) => !isReady(row))
      : new Int32Array(0)
    for (const store of this.all) store.keep(left)
    this.count = left.length
  }

  /** Numbers of the rows as they are sorted. */
  private order(): Int32Array {
    const { count } = this
    const rows = new Int32Array(count)
    for (let i = 0; i < count; i++) rows[i] = i
    const keys = this.schema.sortedBy.map((name) => this.stores[name]!.keys(count))
    const compare = (a: number, b: number) => {
      for (const key of keys) if (key[a] !== key[b]) return key[a]! < key[b]! ? -1 : 1
      return a - b
    }
    for (let i = 1; i < count; i++) if (compare(i - 1, i) > 0) return rows.sort(compare)
    return rows
  }

  /** Are there bytes to take? */
  get hasPieces(): boolean {
    return this.groups.length > 0
  }

  /** The bytes of the row groups that were encoded so far. */
  async *pieces(): AsyncGenerator<Uint8Array, void> {
    for (let group = this.groups.shift(); group; group = this.groups.shift()) yield* group
  }

  /** The remaining bytes of the file. */
  async *finish(): AsyncGenerator<Uint8Array, void> {
    this.encode()
    yield* this.pieces()
    yield* this.writer.finish()
  }
}
