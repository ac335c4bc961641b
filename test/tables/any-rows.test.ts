import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { ROW_GROUP } from '../../lib/tables/table-file.ts'
import { type Column, TABLE_NAMES, TABLES, type TableName, Tables } from '../../lib/tables.ts'
import { inLong, inParts, isLong } from '../long.ts'

/** Any rows of any table, written as Parquet, are read back equal and in their order, by two independent readers. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-any-rows-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Cell = string | number | bigint | boolean | null
type Row = Readonly<Record<string, Cell>>

const TRACE_ID = '0123456789abcdef'.repeat(2)
const WHOLE = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -3, max: 3 }),
  fc.integer(),
  fc.constantFrom(0, -0, 2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53 - 1, -(2 ** 53) + 1),
)
const VALUES = {
  string: fc.oneof(
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.string({ unit: 'grapheme', maxLength: 100 }),
    fc.constantFrom('', '\0', '\uffee', '😀', "it's; --"),
  ),
  double: fc.double({ noNaN: false }),
  boolean: fc.boolean(),
}

/** Few values of a column, of which its rows take any; `stay` is how likely one is that of the row before. */
function valuesOf({ type, encoding, nullable }: Column): fc.Arbitrary<{ values: Cell[]; stay: number }> {
  const big = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  const some: fc.Arbitrary<Cell> =
    type !== 'int64' ? VALUES[type] : encoding === 'dictionary' ? fc.oneof(WHOLE, big) : WHOLE
  // A number that is none is how a column of doubles stores null.
  const cells = type === 'double' && nullable ? some.map((value) => (Number.isNaN(value) ? null : value)) : some
  const all = nullable ? fc.oneof({ weight: 3, arbitrary: cells }, fc.constant(null)) : cells
  return fc.record({
    values: fc.array(all, { minLength: 1, maxLength: 24 }),
    stay: fc.constantFrom(0, 0.5, 0.95),
  })
}

const ANY_ROWS = fc.constantFrom(...TABLE_NAMES).chain((table) => {
  const columns = Object.entries<Column>(TABLES[table].columns).filter(([name]) => name !== 'trace_id')
  return fc
    .record({
      count: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 100, max: 700 })),
      seed: fc.integer(),
      of: fc.tuple(...columns.map(([, column]) => valuesOf(column))),
    })
    .map(({ count, seed, of }) => ({ table, rows: rowsOf(count, seed, columns, of) }))
})

function rowsOf(
  count: number,
  seed: number,
  columns: readonly (readonly [string, Column])[],
  of: readonly { readonly values: readonly Cell[]; readonly stay: number }[],
): Row[] {
  let state = seed >>> 0
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  let before: Row | undefined
  return Array.from({ length: count }, () => {
    const cells = columns.map(([name], i) => {
      const { values, stay } = of[i]!
      const stays = before !== undefined && random() < stay
      return [name, stays ? before![name]! : values[Math.floor(random() * values.length)]!]
    })
    before = Object.fromEntries(cells) as Row
    return before
  })
}

async function written(table: TableName, rows: readonly Row[], isPlain: boolean): Promise<Uint8Array> {
  const plain = { codec: 'none', compress: (bytes: Uint8Array) => bytes } as const
  const tables = new Tables({ traceId: TRACE_ID, createdBy: 'test 1', ...(isPlain ? { compression: plain } : {}) })
  const pieces: Uint8Array[] = []
  for (const row of rows) tables.add(table, row as never)
  for await (const { bytes } of tables.finish()) pieces.push(bytes)
  return Buffer.concat(pieces)
}

/** The rows as they are to be read: integers as bigints, sorted within each row group; texts by their bytes, nulls first. */
function expected(table: TableName, rows: readonly Row[]): Row[] {
  const { columns, sortedBy } = TABLES[table]
  const read = rows.map((row) =>
    Object.fromEntries(
      Object.entries<Column>(columns).map(([name, { type }]) => {
        const cell = name === 'trace_id' ? TRACE_ID : row[name]!
        return [name, type === 'int64' && cell !== null ? BigInt(cell) : cell]
      }),
    ),
  )
  const compare = (a: Row, b: Row) => {
    for (const name of sortedBy) {
      const order = compareCells(a[name]!, b[name]!)
      if (order !== 0) return order
    }
    return 0
  }
  const groups: Row[] = []
  for (let at = 0; at < read.length; at += ROW_GROUP) groups.push(...read.slice(at, at + ROW_GROUP).sort(compare))
  return groups
}

function compareCells(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null)
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string))
  return a < b ? -1 : a > b ? 1 : 0
}

async function readByHyparquet(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const file = new Uint8Array(bytes).buffer
  return parquetReadObjects({ file, compressors: { GZIP: (page: Uint8Array) => gunzipSync(page) } })
}

inParts(test)('any rows of any table are read back by hyparquet', async () => {
  await fc.assert(
    fc.asyncProperty(ANY_ROWS, fc.boolean(), async ({ table, rows }, isPlain) => {
      expect(await readByHyparquet(await written(table, rows, isPlain))).toEqual(expected(table, rows))
    }),
    { numRuns: isLong ? 100 : 20, endOnFailure: true },
  )
})

test('any rows of any table are read back by DuckDB, also by its statistics', async () => {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const path = join(folder, 'any.parquet')
  await fc.assert(
    fc.asyncProperty(ANY_ROWS, async ({ table, rows }) => {
      writeFileSync(path, await written(table, rows, false))
      const all = expected(table, rows)
      const reader = await connection.runAndReadAll(`select * from read_parquet('${path}')`)
      const names = reader.columnNames()
      const read = reader.getRows().map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])))
      expect(read).toEqual(all)
      // Row groups are skipped by their bounds: each value must be within them.
      for (const [name, { type }] of Object.entries<Column>(TABLES[table].columns)) {
        if (type !== 'int64') continue
        const value = all.find((row) => row[name] !== null)?.[name]
        if (value === undefined) continue
        const found = await connection.runAndReadAll(
          `select count(*) from read_parquet('${path}') where ${name} = '${value}'::bigint`,
        )
        expect(found.getRows()).toEqual([[BigInt(all.filter((row) => row[name] === value).length)]])
      }
    }),
    { numRuns: 25, endOnFailure: true },
  )
  connection.closeSync()
  instance.closeSync()
})

inLong(test)('several row groups, with more different names than a dictionary keeps', async () => {
  const rows = Array.from({ length: 2 * ROW_GROUP + 1 }, (_, i) => ({
    call: i % 7 === 0 ? null : i,
    name: `name ${(i * 7919) % 100_003}`,
    unit: i < ROW_GROUP ? 'ns' : '',
    ts_ns: (i * 104_729) % 65_537,
    value: i / 3,
  }))
  const read = await readByHyparquet(await written('counter', rows, false))
  const all = expected('counter', rows)
  expect(read).toHaveLength(all.length)
  for (let i = 0; i < all.length; i += 5000) expect(read.slice(i, i + 5000)).toEqual(all.slice(i, i + 5000))
})

test('metadata state how rows are sorted: nulls first', async () => {
  const state = {
    tid: 1,
    ts_ns: 0,
    dur_ns: 1,
    state: 'running',
    cpu: null,
    wait: null,
    taken_by: null,
    taken_by_ns: null,
  }
  const rows = [3, null, 1].map((worker) => ({ ...state, worker, inferred: null }))
  const file = await written('state', rows, true)
  expect((await readByHyparquet(file)).map(({ worker }) => worker)).toEqual([null, 1n, 3n])
  const { row_groups, schema } = parquetMetadata(new Uint8Array(file).buffer)
  expect(row_groups[0]!.sorting_columns).toEqual(
    TABLES.state.sortedBy.map((name) => ({
      column_idx: schema.findIndex((element) => element.name === name) - 1,
      descending: false,
      nulls_first: true,
    })),
  )
})

test('one row; no rows are no file', async () => {
  const row = { call: null, name: '', unit: '', ts_ns: 0, value: -0 }
  expect(await readByHyparquet(await written('counter', [row], true))).toEqual(expected('counter', [row]))
  expect(await written('counter', [], true)).toHaveLength(0)
})
