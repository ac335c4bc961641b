/**
 * Cuts a report of Nsight Systems (`nsys export --type sqlite`) down to a period of time, with the GPU work that was launched
 * in it, and to the tables of events. The result contains no host, user, path or environment. Makes
 * test/fixtures/nsys.
 *
 *     node scripts/cut-nsys.mjs report.sqlite cut.sqlite <from ns> <to ns>
 */
import { rmSync } from 'node:fs'
import sqlite from 'node-sqlite3-wasm'

const WORK = ['KERNEL', 'MEMCPY', 'MEMSET'].map((kind) => `CUPTI_ACTIVITY_KIND_${kind}`)
const EVENTS = [
  ...['CUPTI_ACTIVITY_KIND_SYNCHRONIZATION', 'CUPTI_ACTIVITY_KIND_RUNTIME'],
  ...['NVTX_EVENTS', 'SCHED_EVENTS', 'OSRT_API'],
]
const SMALL = ['TARGET_INFO_SESSION_START_TIME', 'TARGET_INFO_CUDA_CONTEXT_INFO', 'TARGET_INFO_NVTX_CUDA_STREAM']
const TEXTS = ['nameId', 'textId', 'shortName', 'demangledName']

const [from, to, firstNs, lastNs] = process.argv.slice(2)
const source = new sqlite.Database(from, { readOnly: true })
rmSync(to, { force: true })
const target = new sqlite.Database(to)

const columnsOf = (table) => source.all(`PRAGMA table_info("${table}")`).map(({ name }) => name)
const sqlOf = (table) => source.get('SELECT sql FROM sqlite_master WHERE name = ?', [table])?.sql ?? undefined

/** Copies the rows of a table that match a condition, and returns the ids of the texts that they refer to. */
function copy(table, condition) {
  const sql = sqlOf(table)
  if (sql === undefined) return []
  const columns = columnsOf(table)
  target.exec(sql)
  const insert = target.prepare(`INSERT INTO "${table}" VALUES (${columns.map(() => '?').join(',')})`)
  const texts = []
  for (const row of source.all(`SELECT * FROM "${table}" WHERE ${condition} ORDER BY rowid`)) {
    insert.run(columns.map((column) => row[column]))
    for (const column of TEXTS) if (row[column] != null) texts.push(row[column])
  }
  insert.finalize()
  return texts
}

target.exec('BEGIN')
const within = `start >= ${firstNs} AND start < ${lastNs}`
const launched = `(correlationId, globalPid) IN (
  SELECT correlationId, globalTid & ~16777215 FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE ${within})`
const texts = [
  ...WORK.flatMap((table) => copy(table, `(${within}) OR ${launched}`)),
  ...EVENTS.flatMap((table) => copy(table, table === 'NVTX_EVENTS' ? `(${within}) OR eventType = 75` : within)),
]
for (const table of SMALL) copy(table, '1')
const traced = `globalTid IN (SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME)`
texts.push(...copy('ThreadNames', traced))
copy('StringIds', `id IN (${[...new Set(texts)].join(',')})`)
copy('META_DATA_EXPORT', "name IN ('EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION')")
target.exec('COMMIT')
target.exec('VACUUM')
target.close()
