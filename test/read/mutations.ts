import { checksum, Header, MAGIC } from '../../lib/log/ggtrace-layout.ts'
import { withDatabase } from './databases.ts'

/** Real inputs with one field changed throughout. */

/** A change, and what makes the input with it: of most changes only some are tried. undefined: it cannot be changed so. */
export type Mutation = readonly [change: string, make: () => Uint8Array | undefined]

const encoder = new TextEncoder()
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** JSON with each key of a plain value in turn. */
export function* ofJson(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  const text = textOf(bytes)
  const keys = new Set([...text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:\s*(?=["\d\-ntf])/g)].map(([, key]) => key!))
  for (const key of keys) for (const value of values) yield [`${key}: ${value}`, () => withJson(bytes, key, value)]
}

/** JSON in which a key has another value. */
export function withJson(bytes: Uint8Array, key: string, value: string): Uint8Array {
  const field = new RegExp(`("${escaped(key)}"\\s*:\\s*)(?:"(?:[^"\\\\]|\\\\.)*"|-?[\\d.eE+-]+|null|true|false)`, 'g')
  return encoder.encode(textOf(bytes).replace(field, (_, before: string) => before + value))
}

const CELLS = /,(?=(?:[^"]*"[^"]*")*[^"]*$)/

/** CSV with each column in turn, but for its head. */
export function* ofCsv(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  const columns = Math.max(
    ...textOf(bytes)
      .split('\n')
      .map((line) => line.split(CELLS).length),
  )
  for (let column = 0; column < columns; column++)
    for (const value of values) yield [`column ${column}: ${value}`, () => withCsv(bytes, column, value)]
}

/** CSV in which a column has another value. */
export function withCsv(bytes: Uint8Array, column: number, value: string): Uint8Array {
  let isHead = true
  const lines = textOf(bytes)
    .split('\n')
    .map((line) => {
      const cells = line.split(CELLS)
      if (cells[column] === undefined || cells.length < 3) return line
      if (isHead) isHead = false
      else cells[column] = cells[column].startsWith('"') ? `"${value}"` : value
      return cells.join(',')
    })
  return encoder.encode(lines.join('\n'))
}

const NUMBER = /(?<![\w.])\d+(?:\.\d+)?(?![\w.])/g
const WORD = /[A-Za-z_][\w:./-]*/g

/** Lines with the n-th number, or the n-th word, of each in turn. */
export function* ofLines(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  for (let nth = 0; nth < 12; nth++)
    for (const value of values) yield [`number ${nth}: ${value}`, () => withNth(bytes, NUMBER, nth, value)]
  for (let nth = 0; nth < 8; nth++) yield [`word ${nth}: none`, () => withNth(bytes, WORD, nth, '')]
}

function withNth(bytes: Uint8Array, what: RegExp, nth: number, value: string): Uint8Array {
  const changed = textOf(bytes)
    .split('\n')
    .map((line) => {
      let count = 0
      return line.replace(what, (found) => (count++ === nth ? value : found))
    })
  return encoder.encode(changed.join('\n'))
}

/** Columns of tables of SQLite, each in turn. `values` are of SQL. */
export function* ofSqlite(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  const columns: (readonly [string, string])[] = []
  withDatabase(bytes, (db) => {
    const tables = db.all("select name from sqlite_master where type = 'table'")
    for (const { name } of tables)
      for (const column of db.all(`pragma table_info(${name})`)) columns.push([`${name}`, `${column['name']}`])
  })
  for (const [table, column] of columns)
    for (const value of values) yield [`${table}.${column}: ${value}`, () => withValue(bytes, table, column, value)]
}

/** undefined: SQLite refuses the value. */
function withValue(bytes: Uint8Array, table: string, column: string, value: string): Uint8Array | undefined {
  try {
    return withSqlite(bytes, table, column, value)
  } catch (error) {
    if (/datatype mismatch|constraint/.test(`${error}`)) return undefined
    throw error
  }
}

/** A database in which a column has another value. */
export const withSqlite = (bytes: Uint8Array, table: string, column: string, value: string): Uint8Array =>
  withDatabase(bytes, (db) => db.exec(`update or ignore ${table} set ${column} = ${value}`))

/** Words of a binary input that are changed: each of a small one, some of a large one. */
const WORDS_MAX = 400

/** Binary records with each word of 8 bytes in turn. `values` are its bytes in hexadecimal digits. */
export function* ofWords(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  const step = 8 * Math.ceil(bytes.length / 8 / WORDS_MAX)
  for (let at = 0; at + 8 <= bytes.length; at += step)
    for (const value of values) yield [`byte ${at}: ${value}`, () => withWord(bytes, at, value)]
}

function withWord(bytes: Uint8Array, at: number, value: string): Uint8Array {
  const changed = Uint8Array.from(bytes)
  changed.set(Buffer.from(value, 'hex'), at)
  return changed
}

/** The same of a .ggtrace, with the checksum of the changed block, which a reader otherwise leaves out. */
export function* ofBlocks(bytes: Uint8Array, values: readonly string[]): Generator<Mutation> {
  for (const [change, make] of ofWords(bytes, values)) yield [change, () => withChecksums(make()!)]
}

function withChecksums(changed: Uint8Array): Uint8Array {
  const view = new DataView(changed.buffer)
  for (let at = 0, size = 0; at + 12 <= changed.length && view.getUint32(at, true) === MAGIC; at += size) {
    size = view.getUint32(at + 4, true)
    if (size < 12 || at + size > changed.length) break
    view.setUint32(at + Header.checksum, checksum(view, at, size), true)
  }
  return changed
}
