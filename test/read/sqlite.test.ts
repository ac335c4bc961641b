import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { memoryAccess } from '../../lib/input/random-access.ts'
import type { SqliteRows } from '../../lib/input/sqlite/rows.ts'
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
    ['CREATE TABLE t (a INTEGER, PRIMARY KEY (a))', ['a'], 0],
    ['CREATE TABLE t (a TEXT, b INTEGER, CONSTRAINT k PRIMARY KEY ("B" DESC) UNIQUE (a))', ['a', 'b'], 1],
    ['CREATE TABLE t (a INTEGER(4) PRIMARY KEY, b INTEGER UNSIGNED)', ['a', 'b'], -1],
    ["CREATE TABLE t (a INTEGER DEFAULT 'PRIMARY KEY', b CHECK (b > 'x PRIMARY KEY'))", ['a', 'b'], -1],
    ['', [], -1],
  ] as const)('%s', (sql, names, rowid) => {
    const { columns, ...others } = columnsOf(sql)
    expect(columns.map(({ name }) => name)).toEqual(names)
    expect(others).toEqual({ rowid, refusal: undefined })
  })
})

/** What real SQLite selects from the table `t`, and what our reader finds; blobs are left out. */
async function bothOf(statements: readonly string[], columns: readonly string[], pragmas?: string) {
  let real: unknown[][] = []
  const bytes = databaseOf((db) => {
    for (const sql of statements) db.exec(sql)
    const list = columns.map((name) => `"${name}"`).join(', ')
    real = db.all(`SELECT ${list} FROM t ORDER BY rowid`).map((row) => columns.map((name) => plain((row as Row)[name])))
  }, pragmas)
  const damage: string[] = []
  const file = await SqliteFile.open(memoryAccess(bytes), 'test', (detail) => damage.push(detail))
  const found: unknown[][] = []
  for await (const page of file.pages(file.tables.get('t')!, columns)) {
    while (page.next()) found.push(columns.map((_, field) => valueAt(page, field)))
  }
  return { real, found, damage }
}

type Row = Record<string, unknown>
const plain = (value: unknown) => (typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value)

/** A field in each way in which it can be read. */
function valueAt(page: SqliteRows, field: number): unknown {
  if (page.isNull(field)) return null
  const exact = page.exact(field)
  if (Number.isNaN(exact)) return page.text(field)
  const whole = plain(exact)
  if (typeof whole === 'bigint') expect((BigInt(page.high(field)) << 32n) | BigInt(page.low(field))).toBe(whole)
  return whole
}

describe('tables beyond those of nsys are read as SQLite reads them', () => {
  const INSERTS = "INSERT INTO t VALUES (5, 'five', 50), (-7, 'seven', 70), (4294967299, 'large', 0)"

  test.each([
    'CREATE TABLE t (id INTEGER, name TEXT, n, PRIMARY KEY (id))',
    'CREATE TABLE t (id INTEGER, name TEXT, n, CONSTRAINT c PRIMARY KEY ("id" DESC))',
    'CREATE TABLE t ([id] integer, name TEXT, n, PRIMARY KEY (`ID` AUTOINCREMENT))',
    'CREATE TABLE t (id INTEGER PRIMARY KEY DESC, name TEXT, n)',
    'CREATE TABLE t (id INT PRIMARY KEY, name TEXT, n)',
    'CREATE TABLE t (id INTEGER(8) PRIMARY KEY, name TEXT, n)',
    'CREATE TABLE t (id INTEGER CONSTRAINT x NOT NULL PRIMARY KEY ON CONFLICT FAIL AUTOINCREMENT, name TEXT, n)',
    'CREATE TABLE t (id INTEGER, name TEXT, n, PRIMARY KEY (id, name))',
    'CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n ANY) STRICT',
  ])('%s', async (create) => {
    const { real, found, damage } = await bothOf([create, INSERTS], ['id', 'name', 'n'])
    expect(found).toEqual(real)
    expect(real).toHaveLength(3)
    expect(damage).toEqual([])
  })

  test.each([
    ['INTEGER DEFAULT 42', 'INT DEFAULT -7', "TEXT DEFAULT 'it''s'"],
    ['INTEGER DEFAULT 9007199254740993', 'BIGINT DEFAULT - 9223372036854775807', 'TEXT DEFAULT 12'],
    ["INTEGER DEFAULT '17'", 'REAL DEFAULT 3', "NUMERIC DEFAULT '2.5'"],
    ['TEXT DEFAULT 1.0', "DEFAULT '17'", 'DEFAULT 1e3'],
    ['BOOLEAN DEFAULT TRUE', 'INTEGER DEFAULT false', 'DEFAULT NULL'],
    ['INTEGER NOT NULL DEFAULT 5 CHECK (x > 0)', 'VARCHAR(10) COLLATE NOCASE DEFAULT "quoted"', "BLOB DEFAULT 'b'"],
    ['INTEGER REFERENCES o(id) ON DELETE SET DEFAULT', 'INTEGER DEFAULT +3', 'FLOAT DEFAULT .5'],
  ])('columns that were added later: %s, %s, %s', async (x, y, z) => {
    const statements = [
      'CREATE TABLE t (a INTEGER, b)',
      "INSERT INTO t VALUES (1, 'old'), (2, NULL)",
      ...[`ALTER TABLE t ADD COLUMN x ${x}`, `ALTER TABLE t ADD COLUMN y ${y}`],
      "INSERT INTO t VALUES (3, 'between', 8, 9)",
      `ALTER TABLE t ADD COLUMN z ${z}`,
      "INSERT INTO t VALUES (4, 'new', 1, 2, 3), (5, NULL, 6, NULL, NULL)",
    ]
    // A table that is referred to makes adding a column with a default an error unless keys are off.
    const { real, found, damage } = await bothOf(statements, ['z', 'x', 'a', 'y', 'b'], 'PRAGMA foreign_keys=off')
    expect(found).toEqual(real)
    expect(damage).toEqual([])
  })

  test('columns that are computed: stored ones are read, others are not in the rows and told of', async () => {
    const statements = [
      `CREATE TABLE t (a INTEGER, v INTEGER GENERATED ALWAYS AS (a * (2 + 1)) VIRTUAL, b TEXT,
         w AS (a || ')'), s INTEGER GENERATED ALWAYS AS (a + 1) STORED, c)`,
      "INSERT INTO t VALUES (1, 'x', 'y'), (2, 'z', NULL)",
    ]
    const { real, found, damage } = await bothOf(statements, ['c', 'b', 's', 'a'])
    expect([found, damage]).toEqual([real, []])
    const { found: computed, damage: told } = await bothOf(statements, ['v', 'c', 'w'])
    expect(computed).toEqual([
      [null, 'y', null],
      [null, null, null],
    ])
    expect(told).toEqual(
      ['v', 'w'].map((name) => `table t: column ${name} is not stored, but computed: it is not read`),
    )
  })

  test('a virtual column before the key, and rows that end before a column', async () => {
    const statements = [
      'CREATE TABLE t (v AS (id * 2), a, id INTEGER PRIMARY KEY)',
      "INSERT INTO t (a, id) VALUES ('x', 7), ('y', 9)",
      'ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 3',
    ]
    const { real, found } = await bothOf(statements, ['id', 'late', 'a'])
    expect(found).toEqual(real)
  })

  test('views, tables without row ids and virtual tables are refused, not passed over', async () => {
    const bytes = databaseOf((db) => {
      db.exec('CREATE TABLE t (a, b)')
      db.exec('CREATE VIEW v AS SELECT a FROM t')
      db.exec('CREATE TABLE w (a TEXT PRIMARY KEY, b) WITHOUT ROWID, STRICT'.replace('b)', 'b TEXT)'))
      db.exec('CREATE VIRTUAL TABLE f USING fts5(x)')
    })
    const file = await SqliteFile.open(memoryAccess(bytes), 'test', () => {})
    expect(Object.fromEntries(file.refusals)).toEqual({
      v: 'is a view: its query is not evaluated',
      w: 'is WITHOUT ROWID, which is stored in another way than other tables',
      f: 'is a virtual table, which an extension of SQLite makes',
      f_idx: 'is WITHOUT ROWID, which is stored in another way than other tables',
      f_config: 'is WITHOUT ROWID, which is stored in another way than other tables',
    })
    expect([...file.tables.keys()]).toContain('t')
  })
})
