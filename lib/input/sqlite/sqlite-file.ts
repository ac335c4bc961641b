import { joined } from '../../bytes/joined.ts'
import { FormatError } from '../../errors.ts'
import type { SizeBeside } from '../byte-source.ts'
import type { RandomAccess } from '../random-access.ts'
import { isSqlite } from './magic.ts'
import { type OnDamage, SqliteRows } from './rows.ts'
import { type Columns, columnsOf, type Default } from './schema.ts'
import { type Decoder, readVarint, varintBytes } from './varint.ts'

const HEADER_BYTES = 100
const LEAF = 13
const INTERIOR = 5
/** Longer than any row of a profiler: a larger size is damage. */
const PAYLOAD_BYTES_MAX = 64 << 20

/** A table: its root page and its columns. */
export interface SqliteTable extends Columns {
  readonly name: string
  readonly root: number
}

/**
 * Reads the tables of an SQLite 3 file ([format](https://www.sqlite.org/fileformat2.html)), row by row in the order of
 * their ids, with a few megabytes of memory. Supports plain tables only: no indexes, no SQL. Damaged pages and rows are
 * reported and skipped.
 */
export class SqliteFile {
  readonly tables = new Map<string, SqliteTable>()
  /** Why tables, and views, cannot be read. */
  readonly refusals = new Map<string, string>()
  private readonly usableBytes: number
  private readonly hasLog: boolean
  private readonly decoder: Decoder

  private constructor(
    private readonly pager: Pager,
    header: Uint8Array,
    private readonly onDamage: OnDamage,
  ) {
    this.usableBytes = pager.pageBytes - header[20]!
    this.hasLog = header[19] === 2
    this.decoder = new TextDecoder(['utf-8', 'utf-8', 'utf-16le', 'utf-16be'][header[59]!] ?? 'utf-8')
  }

  /** Reads the schema. Throws FormatError (of `format`) for other files. */
  static async open(access: RandomAccess, format: string, onDamage: OnDamage): Promise<SqliteFile> {
    const header = await access.read(0, HEADER_BYTES)
    if (header.length < HEADER_BYTES || !isSqlite(header)) {
      const found = isSqlite(header) ? `the first ${header.length}` : 'something else'
      throw new FormatError(format, { byte: 0 }, `the ${HEADER_BYTES} bytes of an SQLite header`, found)
    }
    const pageBytes = ((header[16]! << 8) | header[17]!) === 1 ? 65_536 : (header[16]! << 8) | header[17]!
    const isSize = pageBytes >= 512 && (pageBytes & (pageBytes - 1)) === 0
    if (!isSize) throw new FormatError(format, { byte: 16 }, 'a page size: a power of 2 from 512', `${pageBytes}`)
    if (pageBytes - header[20]! < 480) {
      throw new FormatError(format, { byte: 20 }, 'at least 480 usable bytes a page', `${header[20]} reserved ones`)
    }
    const file = new SqliteFile(new Pager(access, pageBytes), header, onDamage)
    await file.readSchema()
    return file
  }

  /**
   * Describes changes of the database that are not in its file; undefined: there are none. `beside` returns the size of
   * its -wal or -journal file, which a program removes when it closes the database.
   */
  async unreadChanges(beside: SizeBeside | undefined): Promise<string | undefined> {
    if (!beside) {
      const detail = 'the database was written with a write-ahead log: changes in its -wal file, if any, are not read'
      return this.hasLog ? detail : undefined
    }
    const [log, journal] = [this.hasLog ? await beside('-wal') : 0, await beside('-journal')]
    if (log > 0) return `the -wal file of the database has ${log} bytes of changes that are not read`
    if (journal > 0) return 'the database has a -journal file: changes of a program that was killed are not undone'
    return undefined
  }

  /** A cursor over the named columns of a table, at each of its pages. */
  async *pages(table: SqliteTable, columns: readonly string[]): AsyncGenerator<SqliteRows, void> {
    const found = columns.map((name) => table.columns.find((column) => column.name === name))
    const report: OnDamage = (detail, ...rest) => this.onDamage(`table ${table.name}: ${detail}`, ...rest)
    for (const column of found) {
      if (column && column.place < 0)
        report(`column ${column.name} is not stored, but computed: it is not read`, 0, true)
    }
    const fields = found.map((column) => column?.place ?? -1)
    const rows = new SqliteRows(fields, table.rowid, this.decoder, report, defaultsOf(table))
    const taken = new Set<number>() // overflow pages: each belongs to one row
    for await (const number of this.leaves(table)) {
      const page = (await this.pager.page(number))!
      const headerAt = number === 1 ? HEADER_BYTES : 0
      rows.enter(page, headerAt, (number - 1) * this.pager.pageBytes, await this.spilled(table, page, headerAt, taken))
      yield rows
    }
  }

  private async readSchema(): Promise<void> {
    const columns = ['type', 'name', 'tbl_name', 'rootpage', 'sql'].map((name, place) => ({
      name,
      place,
      missing: null,
    }))
    const schema = { name: 'sqlite_master', root: 1, columns, rowid: -1, refusal: undefined }
    for await (const rows of this.pages(schema, ['type', 'name', 'rootpage', 'sql'])) {
      while (rows.next()) {
        const [name, sql] = [rows.text(1), rows.text(3)]
        if (rows.text(0) === 'view') this.refusals.set(name, 'is a view: its query is not evaluated')
        if (rows.text(0) !== 'table') continue
        const table = { name, root: rows.number(2), ...columnsOf(sql) }
        if (table.refusal === undefined) this.tables.set(name, table)
        else this.refusals.set(name, table.refusal)
      }
    }
  }

  /** Numbers of a table's leaf pages, in the order of its rows. A damaged page is left out with its children. */
  private async *leaves({ name, root }: SqliteTable): AsyncGenerator<number, void> {
    const stack = [root]
    const seen = new Set<number>()
    while (stack.length > 0) {
      const number = stack.pop()!
      const byte = (number - 1) * this.pager.pageBytes
      const page = number >= 1 ? await this.pager.page(number) : undefined
      if (!page) this.onDamage(`table ${name}: page ${number} is not in the file`, Math.max(0, byte))
      else if (seen.has(number)) {
        this.onDamage(`table ${name}: page ${number} occurs twice`, byte)
      } else {
        seen.add(number)
        const headerAt = number === 1 ? HEADER_BYTES : 0
        const type = page[headerAt]
        const cells = (page[headerAt + 3]! << 8) | page[headerAt + 4]!
        const isWhole = headerAt + 12 + 2 * cells <= page.length
        if (type === LEAF && isWhole) yield number
        else if (type === INTERIOR && isWhole) this.pushChildren(stack, page, headerAt, cells)
        else this.onDamage(`table ${name}: page ${number} is no page of a table (kind ${type}, ${cells} cells)`, byte)
      }
    }
  }

  private pushChildren(stack: number[], page: Uint8Array, headerAt: number, cells: number): void {
    const view = new DataView(page.buffer, page.byteOffset, page.length)
    stack.push(view.getUint32(headerAt + 8)) // the last child
    for (let cell = cells - 1; cell >= 0; cell--) {
      const at = view.getUint16(headerAt + 12 + 2 * cell)
      stack.push(at + 4 <= page.length ? view.getUint32(at) : 0)
    }
  }

  /** Whole payloads of the cells that continue in overflow pages. */
  private async spilled(
    table: SqliteTable,
    page: Uint8Array,
    headerAt: number,
    taken: Set<number>,
  ): Promise<Map<number, Uint8Array> | undefined> {
    const cells = (page[headerAt + 3]! << 8) | page[headerAt + 4]!
    const localMax = this.usableBytes - 35
    let spilled: Map<number, Uint8Array> | undefined
    for (let cell = 0; cell < cells; cell++) {
      const pointer = headerAt + 8 + 2 * cell
      const at = (page[pointer]! << 8) | page[pointer + 1]!
      const bytes = readVarint(page, at)
      if (bytes <= localMax || at + 2 > page.length) continue
      spilled ??= new Map()
      spilled.set(cell, (await this.payload(table, page, at, bytes, taken)) ?? EMPTY)
    }
    return spilled
  }

  private async payload(
    { name }: SqliteTable,
    page: Uint8Array,
    at: number,
    bytes: number,
    taken: Set<number>,
  ): Promise<Uint8Array | undefined> {
    if (bytes > PAYLOAD_BYTES_MAX) return undefined
    const start = at + varintBytes(page, at)
    const local = start + varintBytes(page, start)
    const usable = this.usableBytes
    const least = Math.floor(((usable - 12) * 32) / 255) - 23
    const surplus = least + ((bytes - least) % (usable - 4))
    const localBytes = surplus <= usable - 35 ? surplus : least
    const end = local + localBytes
    if (end + 4 > page.length) return undefined
    const parts = [page.subarray(local, end)]
    let filled = localBytes
    let next = uint32(page, end)
    while (filled < bytes) {
      const overflow = next >= 1 ? await this.pager.page(next) : undefined
      if (!overflow || taken.has(next)) {
        const problem = overflow ? 'belongs to two rows' : 'is not in the file'
        this.onDamage(`table ${name}: overflow page ${next} ${problem}`, Math.max(0, next - 1) * this.pager.pageBytes)
        return undefined
      }
      taken.add(next)
      const part = overflow.subarray(4, 4 + Math.min(usable - 4, bytes - filled))
      parts.push(part)
      filled += part.length
      next = uint32(overflow, 0)
    }
    return joined(parts)
  }
}

const EMPTY = new Uint8Array(0)

function uint32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0)
}

/** The values of rows that end before a column, by place. Columns with an expression as default cannot be added later. */
function defaultsOf({ columns }: SqliteTable): Default[] {
  return columns.filter(({ place }) => place >= 0).map(({ missing }) => missing ?? null)
}

/** Bytes that are read at once: the pages of a table mostly follow each other in the file. */
const CHUNK_BYTES = 1 << 18
const CHUNKS_MAX = 16

/** Pages of an SQLite file, numbered from 1; reads ahead, and caches a few megabytes. */
class Pager {
  private readonly chunks = new Map<number, Uint8Array>()
  private readonly pagesPerChunk: number

  constructor(
    private readonly access: RandomAccess,
    readonly pageBytes: number,
  ) {
    this.pagesPerChunk = Math.max(1, Math.floor(CHUNK_BYTES / pageBytes))
  }

  /** The bytes of a page; undefined where the file does not contain all of them. */
  async page(number: number): Promise<Uint8Array | undefined> {
    const chunk = Math.floor((number - 1) / this.pagesPerChunk)
    const bytes = this.chunks.get(chunk) ?? (await this.load(chunk))
    const start = (number - 1 - chunk * this.pagesPerChunk) * this.pageBytes
    return start + this.pageBytes <= bytes.length ? bytes.subarray(start, start + this.pageBytes) : undefined
  }

  private async load(chunk: number): Promise<Uint8Array> {
    const length = this.pagesPerChunk * this.pageBytes
    const bytes = await this.access.read(chunk * length, length)
    if (this.chunks.size === CHUNKS_MAX) this.chunks.delete(this.chunks.keys().next().value!) // the oldest
    this.chunks.set(chunk, bytes)
    return bytes
  }
}
