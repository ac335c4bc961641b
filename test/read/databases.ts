import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sqlite from 'node-sqlite3-wasm'

/** What tests with SQLite files share: real SQLite writes them, and says what is in them. */

export type Value = number | bigint | string | null
export type Row = Readonly<Record<string, Value>>

const inFile = <T>(use: (path: string) => T): T => {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-sqlite-'))
  try {
    return use(join(folder, 'it.sqlite'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The bytes of a database that the statements make; `pragmas` come first. */
export const databaseOf = (statements: (db: sqlite.Database) => void, pragmas = 'PRAGMA page_size=1024'): Uint8Array =>
  inFile((path) => {
    const db = new sqlite.Database(path)
    db.exec(pragmas)
    db.exec('BEGIN')
    statements(db)
    db.exec('COMMIT')
    db.close()
    return new Uint8Array(readFileSync(path))
  })

/** Adds a table of rows, the columns being those of the first one, with comments as nsys has them. */
export const addTable = (db: sqlite.Database, name: string, rows: readonly Row[], types = ''): void => {
  const columns = Object.keys(rows[0]!)
  const definitions = columns.map((column, i) => {
    const type = column === 'id' && types === '' ? 'INTEGER NOT NULL PRIMARY KEY' : types
    return `    ${column}   ${type}${i + 1 < columns.length ? ',' : ''}   -- REFERENCES other(id), one\n`
  })
  db.exec(`CREATE TABLE ${name} (\n    -- A table, of rows.\n${definitions.join('')})`)
  const insert = db.prepare(`INSERT INTO ${name} VALUES (${columns.map(() => '?').join(',')})`)
  for (const row of rows) insert.run(columns.map((column) => row[column] ?? null))
  insert.finalize()
}

/** The bytes of a database after statements. */
export const withDatabase = (bytes: Uint8Array, statements: (db: sqlite.Database) => void): Uint8Array =>
  inFile((path) => {
    writeFileSync(path, bytes)
    const db = new sqlite.Database(path)
    try {
      statements(db)
    } finally {
      db.close()
    }
    return new Uint8Array(readFileSync(path))
  })
