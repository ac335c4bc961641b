import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { memoryAccess } from '../../lib/input/random-access.ts'
import { columnsOf } from '../../lib/input/sqlite/schema.ts'
import { SqliteFile } from '../../lib/input/sqlite/sqlite-file.ts'
import { databaseOf } from './databases.ts'

/** Tables as real SQLite writes them, read by our own reader. */

type Read = { readonly rowid: number; readonly values: readonly (bigint | number | string | null)[] }

/** All rows of the table `t(a, b, c)`, and what was said of damage. */
async function readAll(bytes: Uint8Array): Promise<{ rows: Read[]; damage: string[] }> {
  const damage: string[] = []
  const file = await SqliteFile.open(memoryAccess(bytes), 'test', (detail) => damage.push(detail))
  const rows: Read[] = []
  const table = file.tables.get('t')
  if (!table) return { rows, damage }
  for await (const page of file.pages(table, ['a', 'b', 'c', 'none'])) {
    while (page.next()) {
      expect(page.isNull(3)).toBe(true)
      const values = [0, 1, 2].map((field) => {
        if (page.isNull(field)) return null
        const number = page.number(field)
        if (Number.isNaN(number)) return page.text(field)
        return Number.isInteger(number) ? (BigInt(page.high(field)) << 32n) | BigInt(page.low(field)) : number
      })
      rows.push({ rowid: page.rowid, values })
    }
  }
  return { rows, damage }
}

const value = fc.oneof(
  fc.constant(null),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.integer({ min: -300, max: 300 }).map(BigInt),
  fc.integer().map(BigInt),
  fc.integer({ min: -(2 ** 46), max: 2 ** 46 }).map(BigInt),
  fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
  fc.string({ maxLength: 30, unit: 'grapheme' }).filter((text) => text !== '' && !text.includes('\0')),
  fc.integer({ min: 400, max: 9000 }).map((length) => 'long text é '.repeat(length / 10)),
)

test('every row is as it was written: all kinds of values, overflow pages, page sizes, encodings', async () => {
  const pragmas = fc.record({
    pageBytes: fc.constantFrom(512, 1024, 4096, 65_536),
    encoding: fc.constantFrom('UTF-8', 'UTF-16le', 'UTF-16be'),
  })
  const property = fc.asyncProperty(
    fc.array(fc.tuple(value, value, value), { maxLength: 60 }),
    pragmas,
    async (rows, { pageBytes, encoding }) => {
      const bytes = databaseOf((db) => {
        db.exec('CREATE TABLE t (a, b, c)')
        const insert = db.prepare('INSERT INTO t VALUES (?, ?, ?)')
        for (const row of rows) insert.run(row)
        insert.finalize()
      }, `PRAGMA page_size=${pageBytes}; PRAGMA encoding='${encoding}'`)
      const read = await readAll(bytes)
      expect(read.damage).toEqual([])
      expect(read.rows).toEqual(rows.map((values, i) => ({ rowid: i + 1, values })))
    },
  )
  await fc.assert(property, { numRuns: 60 })
})

test('tables of many pages come in the order of their rows, deleted ones left out', async () => {
  const bytes = databaseOf((db) => {
    db.exec('CREATE TABLE other (x)')
    db.exec('CREATE TABLE t (a INTEGER PRIMARY KEY, b, c)')
    const [insert, also] = [db.prepare('INSERT INTO t VALUES (?, ?, ?)'), db.prepare('INSERT INTO other VALUES (?)')]
    for (let i = 0; i < 9000; i++) {
      insert.run([i * 3, `text ${i}`, i % 7])
      also.run([`between ${i}`])
    }
    insert.finalize()
    also.finalize()
    db.exec('DELETE FROM t WHERE a % 5 = 0')
    db.exec('ALTER TABLE t ADD COLUMN late')
  }, 'PRAGMA page_size=512')
  const { rows, damage } = await readAll(bytes)
  const kept = Array.from({ length: 9000 }, (_, i) => i).filter((i) => (i * 3) % 5 !== 0)
  expect(damage).toEqual([])
  expect(rows.map(({ rowid }) => rowid)).toEqual(kept.map((i) => i * 3))
  expect(rows.map(({ values }) => values[1])).toEqual(kept.map((i) => `text ${i}`))
})

test('a damaged page costs its own rows only, and is told of', async () => {
  const whole = databaseOf((db) => {
    db.exec('CREATE TABLE t (a, b, c)')
    const insert = db.prepare('INSERT INTO t VALUES (?, ?, ?)')
    for (let i = 0; i < 2000; i++) insert.run([i, 'x'.repeat(20), null])
    insert.finalize()
  })
  const pages = whole.length / 1024
  for (const page of [3, 5, Math.floor(pages / 2)]) {
    const bytes = whole.slice()
    bytes.fill(0, page * 1024, page * 1024 + 1024)
    const { rows, damage } = await readAll(bytes)
    expect(damage).toEqual([`table t: page ${page + 1} is no page of a table (kind 0, 0 cells)`])
    expect(rows.length).toBeGreaterThan(1900)
    expect(rows.length).toBeLessThan(2000)
  }
  const { rows, damage } = await readAll(whole.slice(0, whole.length - 1024 * 3 - 100))
  expect(rows.length).toBeGreaterThan(1800)
  expect(damage.length).toBe(4)
  expect(damage[0]).toMatch(/^table t: page \d+ is not in the file$/)
})

describe('columns of a CREATE TABLE statement', () => {
  test.each([
    ['CREATE TABLE t(a,b INTEGER PRIMARY KEY,c)', ['a', 'b', 'c'], 1],
    ['CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, -- ID, of (it)\n value TEXT)', ['id', 'value'], 0],
    ['CREATE TABLE t (id INT PRIMARY KEY, "a ""b" TEXT /* x, y */, [c d] NUMERIC(3, 4))', ['id', 'a "b', 'c d'], -1],
    ["CREATE TABLE t (a TEXT DEFAULT 'x -- ,(', b, PRIMARY KEY (a, b), CHECK (a > b))", ['a', 'b'], -1],
    ['CREATE TABLE t (a INTEGER, PRIMARY KEY (a))', ['a'], -1],
    ['', [], -1],
  ] as const)('%s', (sql, names, rowid) => {
    expect(columnsOf(sql)).toEqual({ names, rowid })
  })
})
