import { afterAll, beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { TraceProcessor } from '../../lib/query/trace-processor.ts'
import { failure, open, smallTrace } from './helpers.ts'

let tp: TraceProcessor
beforeAll(async () => {
  tp = await open(smallTrace)
})
afterAll(() => tp.close())

const one = (sql: string) => tp.query(`SELECT ${sql}`).rows[0]?.[0]

test.each([
  ['0', 0],
  ['-1', -1],
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', 9007199254740992n],
  ['9007199254740993', 9007199254740993n],
  ['-9007199254740991', -9007199254740991],
  ['-9007199254740992', -9007199254740992n],
  ['9223372036854775807', 9223372036854775807n],
  ['-9223372036854775808', -9223372036854775808n],
  ['1.5', 1.5],
  ['-0.1', -0.1],
  ['1e308 * 10', Number.POSITIVE_INFINITY],
  ['2.0', 2],
  ['NULL', null],
  ["''", ''],
  ["'a'", 'a'],
  ["'äß😀\n'", 'äß😀\n'],
  ['char(65279)', '\ufeff'],
  ["char(65279) || 'x'", '\ufeffx'],
  ['char(1)', '\u0001'],
  // It ends texts at their first NUL, as SQL's printing does.
  ["'a' || char(0) || 'b'", 'a'],
  ["x'00ff'", new Uint8Array([0, 255])],
  ["x''", new Uint8Array(0)],
])('SELECT %s', (sql, value) => {
  expect(one(sql)).toEqual(value)
})

test('any 64-bit integer is exact', () => {
  fc.assert(
    fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { minLength: 1 }), (numbers) => {
      const { rows } = tp.query(`SELECT column1 FROM (VALUES ${numbers.map((number) => `(${number})`).join(', ')})`)
      expect(rows.map(([cell]) => BigInt(cell as number))).toEqual(numbers)
      for (const [cell] of rows) expect(typeof cell).toBe(Number.isSafeInteger(Number(cell)) ? 'number' : 'bigint')
    }),
  )
})

test('any double is exact', () => {
  const mantissa = fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n })
  fc.assert(
    // Made by a division, because SQLite does not read all decimal fractions exactly.
    fc.property(mantissa, fc.nat(62), (dividend, exponent) => {
      expect(one(`${dividend} / ${2n ** BigInt(exponent)}.0`)).toBe(Number(dividend) / 2 ** exponent + 0)
    }),
  )
})

test('any text comes back', () => {
  const text = fc.string({ unit: 'binary' }).map((value) => value.replaceAll('\0', ''))
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (texts) => {
      const { rows } = tp.query(
        `SELECT ${texts.map((value, i) => `'${value.replaceAll("'", "''")}' AS c${i}`).join(', ')}`,
      )
      expect(rows).toEqual([texts])
    }),
  )
})

test('kinds of cells may change from row to row', () => {
  const sql = "SELECT * FROM (VALUES (1, 'a', x'01'), (NULL, 2.5, 'b'), ('', NULL, -1))"
  expect(tp.query(sql).rows).toEqual([
    [1, 'a', new Uint8Array([1])],
    [null, 2.5, 'b'],
    ['', null, -1],
  ])
})

test('200 000 rows come in order', () => {
  const sql = `
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199999)
    SELECT i, 'row ' || i AS name, i / 2.0 AS half, CASE WHEN i % 3 = 0 THEN NULL ELSE i END AS gap FROM n`
  const { columns, rows } = tp.query(sql)
  expect(columns).toEqual(['i', 'name', 'half', 'gap'])
  expect(rows).toHaveLength(200_000)
  const expected = (i: number) => [i, `row ${i}`, i / 2, i % 3 === 0 ? null : i]
  expect(rows.findIndex((row, i) => row.some((cell, column) => cell !== expected(i)[column]))).toBe(-1)
})

test('a cell may be larger than a batch', () => {
  expect(one("replace(hex(zeroblob(500000)), '0', 'ä')") === 'ä'.repeat(1_000_000)).toBe(true)
  const blob = one('zeroblob(3000000)') as Uint8Array
  expect([blob.length, blob.every((byte) => byte === 0)]).toEqual([3_000_000, true])
})

test('no rows, but columns', () => {
  expect(tp.query('SELECT 1 AS a, 2 AS a, 3 AS b WHERE 0')).toEqual({ columns: ['a', 'a', 'b'], rows: [] })
})

test('of several statements the last one gives the result', () => {
  expect(tp.query('SELECT 1 AS a; SELECT 2 AS b;')).toEqual({ columns: ['b'], rows: [[2]] })
  tp.query('CREATE PERFETTO TABLE kept AS SELECT 7 AS x')
  expect(tp.query('INCLUDE PERFETTO MODULE slices.with_context; SELECT x FROM kept').rows).toEqual([[7]])
})

test('a query longer than one request', () => {
  expect(one(`1 -- ${'x'.repeat(5_000_000)}`)).toBe(1)
})

test('the time zone is UTC', () => {
  expect(one("datetime(1700000000, 'unixepoch', 'localtime')")).toBe('2023-11-14 22:13:20')
  expect(one("unixepoch('now') - unixepoch('now', 'utc')")).toBe(0)
})

test.each([
  ['SELECT nosuch\n  FROM slice', 'no such column: nosuch\nline 1 column 8\n  SELECT nosuch\n         ^'],
  ['SELECT 1;\nSELECT * FROM nosuch', 'no such table: nosuch\nline 2 column 1\n  SELECT * FROM nosuch\n  ^'],
  ['SELEC 1', "syntax error near 'SELEC'\nline 1 column 1\n  SELEC 1\n  ^"],
  ['', 'No valid SQL to run'],
  ['INCLUDE PERFETTO MODULE nosuch.foo', "INCLUDE: Package 'nosuch.foo' not found"],
])('%j is an SqlError, after which queries work', async (sql, message) => {
  const error = await failure(() => tp.query(sql))
  expect([error.name, error.message]).toEqual(['SqlError', message])
  expect(one('1')).toBe(1)
})

test.each([
  ['a text', 'hex(zeroblob(300000000))'],
  ['bytes', 'zeroblob(100000000)'],
  ['a row', Array.from({ length: 20 }, () => 'zeroblob(5000000)').join()],
])('%s above 64 MiB is refused; queries work after it, and smaller ones are read', async (_, cells) => {
  const before = tp.memorySize
  const error = await failure(() => tp.query(`SELECT ${cells}`))
  expect([error.name, error.message]).toEqual([
    'SqlError',
    'a row or a value is too large: at most 64 MiB\nhint: select parts of it (substr)',
  ])
  expect(tp.memorySize - before).toBeLessThan(512 << 20)
  expect((one('zeroblob(60000000)') as Uint8Array).length).toBe(60_000_000)
})
