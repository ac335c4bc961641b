import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import sqlite from 'node-sqlite3-wasm'
import { eventsOf, Names, summarize, type TraceEvent } from '../../lib/index.ts'
import { fileSource } from '../../lib/node.ts'
import { reportOf } from './reports.ts'

/** Reports that were changed with SQLite itself: read right, or an issue says what is not read. */

/** A report after some statements, as a file; `use` gets its path. */
async function changed<T>(statements: readonly string[], use: (path: string) => Promise<T>, close = true): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-nsys-'))
  try {
    const path = join(folder, 'report.sqlite')
    writeFileSync(path, reportOf())
    const db = new sqlite.Database(path)
    for (const sql of statements) db.exec(sql)
    if (close) db.close()
    const result = await use(path)
    if (!close) db.close()
    return result
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const ofFile = (path: string) => summarize({ name: 'report', source: fileSource(path) })
const unread = async (path: string) =>
  (await ofFile(path)).issues.filter(({ code }) => code === 'unread-table').map(({ first }) => first.detail)

async function kernels(path: string): Promise<[string, number][]> {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'report', source: fileSource(path) }, names)) events.push(...batch)
  return events.flatMap((event) =>
    event.kind === 'gpu' && event.what === 'kernel' ? [[names.text(event.name), event.startNs]] : [],
  )
}

/** Copies a table into one of another definition. */
const remade = (table: string, columns: string): string[] => [
  `ALTER TABLE ${table} RENAME TO old`,
  `CREATE TABLE ${table} (${columns})`,
  `INSERT INTO ${table} SELECT * FROM old`,
  'DROP TABLE old',
]
const KERNELS = 'CUPTI_ACTIVITY_KIND_KERNEL'

describe('tables', () => {
  test('whose key is a constraint of the table have their names', async () => {
    const sound = await changed([], kernels)
    expect(sound.map(([name]) => name)).toEqual(['gemm', 'gemm', 'gemm'])
    expect(await changed(remade('StringIds', 'id INTEGER, value TEXT, PRIMARY KEY (id)'), kernels)).toEqual(sound)
  })

  test('with a column that was added later, and its default', async () => {
    const statements = ['DROP TABLE IF EXISTS x', `ALTER TABLE ${KERNELS} RENAME COLUMN shortName TO was`]
    const added = [...statements, `ALTER TABLE ${KERNELS} ADD COLUMN shortName INTEGER DEFAULT 5`]
    expect((await changed(added, kernels)).map(([name]) => name)).toEqual(['main', 'main', 'main'])
  })

  test.each([
    ['a view', 'CREATE VIEW', 'AS SELECT * FROM old', 'is a view: its query is not evaluated'],
    [
      'WITHOUT ROWID',
      'CREATE TABLE',
      '(start INTEGER PRIMARY KEY, "end" INTEGER) WITHOUT ROWID',
      'is WITHOUT ROWID, which is stored in another way than other tables',
    ],
  ])('that are %s are told of', async (_, create, as, why) => {
    const statements = [`ALTER TABLE ${KERNELS} RENAME TO old`, `${create} ${KERNELS} ${as}`]
    expect(await changed(statements, unread)).toEqual([`table ${KERNELS} ${why}`])
    expect(await changed(statements, kernels)).toEqual([])
  })

  test('that all hang on: a view of texts is refused', async () => {
    const statements = ['ALTER TABLE StringIds RENAME TO old', 'CREATE VIEW StringIds AS SELECT * FROM old']
    await expect(changed(statements, ofFile)).rejects.toThrow(
      'expected the table StringIds, found one that is a view: its query is not evaluated',
    )
  })

  test('with a column that is computed are told of, once', async () => {
    const statements = [
      `ALTER TABLE ${KERNELS} RENAME TO old`,
      `CREATE TABLE ${KERNELS} (start INTEGER, "end" AS (start + 5), deviceId, contextId, streamId, globalPid)`,
      `INSERT INTO ${KERNELS} SELECT start, deviceId, contextId, streamId, globalPid FROM old`,
    ]
    expect(await changed(statements, unread)).toEqual([
      `table ${KERNELS}: column end is not stored, but computed: it is not read`,
    ])
  })
})

describe('a write-ahead log', () => {
  const WAL = ['PRAGMA locking_mode=EXCLUSIVE', 'PRAGMA journal_mode=WAL', `DELETE FROM ${KERNELS} WHERE start = 5000`]

  test('that was closed is all in the file', async () => {
    const [bytes, found, left] = await changed(WAL, async (path) => {
      return [readFileSync(path), await unread(path), existsSync(`${path}-wal`)]
    })
    expect([bytes[18], bytes[19], left]).toEqual([2, 2, false])
    expect(found).toEqual([])
    expect(await changed(WAL, kernels)).toHaveLength(2)
    // Of bytes alone, nobody knows what was beside them.
    const { issues } = await summarize({ name: 'report', source: bytes })
    expect(issues.map(({ first }) => first.detail)).toContain(
      'the database was written with a write-ahead log: changes in its -wal file, if any, are not read',
    )
  })

  test('that is still beside the file has changes that are not read: an issue says so', async () => {
    const found = await changed(WAL, unread, false)
    expect(found).toEqual([
      expect.stringMatching(/^the -wal file of the database has \d+ bytes of changes that are not read$/),
    ])
  })

  test('a journal beside the file', async () => {
    const found = await changed([], async (path) => {
      writeFileSync(`${path}-journal`, 'x')
      return unread(path)
    })
    expect(found).toEqual(['the database has a -journal file: changes of a program that was killed are not undone'])
  })
})
