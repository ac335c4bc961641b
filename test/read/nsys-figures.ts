import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sqlite from 'node-sqlite3-wasm'
import type { openTrace } from '../../lib/node.ts'
import { ZERO_NS } from '../origin.ts'

/** What a report of Nsight Systems says by SQL, and what its trace says by SQL: the same, if all is well. */

/** A trace that questions can be asked. */
export type Trace = Awaited<ReturnType<typeof openTrace>>

/** Count, first start, last end, durations added up. */
export type Figures = readonly (bigint | null)[]
export type FiguresByKind = Readonly<Record<string, Figures>>
/** `start duration name`, sorted. */
export type RowsByKind = Readonly<Record<string, readonly string[]>>

const CUPTI = 'CUPTI_ACTIVITY_KIND_'
/** Types of NVTX rows that are ranges, and those that are marks. */
const RANGES = '(35, 37, 59, 60, 66, 68, 70, 71)'
const MARKS = '(34, 65)'

interface Kind {
  /** Of the report: tables and the condition on their rows. */
  readonly tables: readonly string[]
  readonly condition?: string
  /** Expression for the name of a row of such a table. */
  readonly name: (text: (column: string) => string) => string
  /** Of the trace: from slices `s`, their tracks `t`, the tracks above `g`. */
  readonly drawn: string
}

const texts = (text: (column: string) => string) => text('nameId')
const nvtxName = (text: (column: string) => string) => `coalesce(nullif(text, ''), ${text('textId')}, '')`
const work = (kind: string) => `gpu_slice s WHERE extract_arg(s.arg_set_id, 'kind') = '${kind}'`
const slices = (condition: string) =>
  `slice s JOIN track t ON t.id = s.track_id LEFT JOIN track g ON g.id = t.parent_id WHERE ${condition}`
export const COPIES = [
  ...['Unknown', 'Host-to-Device', 'Device-to-Host', 'Host-to-Array', 'Array-to-Host', 'Array-to-Array'],
  ...['Array-to-Device', 'Device-to-Array', 'Device-to-Device', 'Host-to-Host', 'Peer-to-Peer'],
  ...['Unified Host-to-Device', 'Unified Device-to-Host', 'Unified Device-to-Device'],
]
const copied = `CASE copyKind ${COPIES.map((name, id) => `WHEN ${id} THEN '[CUDA memcpy ${name}]'`).join(' ')} END`
const SYNC = `CASE syncType WHEN 1 THEN 'event synchronize' WHEN 2 THEN 'stream wait event'
  WHEN 3 THEN 'stream synchronize' WHEN 4 THEN 'context synchronize' ELSE 'synchronize' END`

const KINDS: Readonly<Record<string, Kind>> = {
  kernel: {
    tables: [`${CUPTI}KERNEL`],
    name: (text) => `coalesce(nullif(${text('shortName')}, ''), ${text('demangledName')})`,
    drawn: work('kernel'),
  },
  memcpy: { tables: [`${CUPTI}MEMCPY`], name: () => copied, drawn: work('memcpy') },
  memset: { tables: [`${CUPTI}MEMSET`], name: () => "'[CUDA memset]'", drawn: work('memset') },
  graph: { tables: [`${CUPTI}GRAPH_TRACE`], name: () => "'CUDA graph'", drawn: work('graph') },
  sync: {
    tables: [`${CUPTI}SYNCHRONIZATION`],
    name: () => SYNC,
    drawn: slices("category = 'sync' AND s.name != 'event'"),
  },
  cuda: {
    tables: [`${CUPTI}RUNTIME`, `${CUPTI}DRIVER`, 'CUDNN_EVENTS', 'CUBLAS_EVENTS'],
    name: texts,
    drawn: slices("category = 'api' AND (g.name = 'CUDA API' OR t.name GLOB '*: CUDA API*')"),
  },
  os: {
    tables: ['OSRT_API'],
    name: texts,
    drawn: slices("category = 'api' AND (g.name = 'OS runtime' OR t.name GLOB '*: OS runtime*')"),
  },
  nvtx: {
    tables: ['NVTX_EVENTS'],
    condition: `eventType IN ${RANGES}`,
    name: nvtxName,
    drawn: slices("category = 'nvtx' AND s.dur > 0"),
  },
  mark: {
    tables: ['NVTX_EVENTS'],
    condition: `eventType IN ${MARKS}`,
    name: nvtxName,
    drawn: slices("category = 'nvtx' AND s.dur = 0"),
  },
}

/** Calls a function with real SQLite on a report. */
export function withReport<T>(bytes: Uint8Array, use: (db: sqlite.Database) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-nsys-'))
  const path = join(folder, 'report.sqlite')
  writeFileSync(path, bytes)
  const db = new sqlite.Database(path)
  try {
    db.exec('PRAGMA temp_store = MEMORY')
    return use(db)
  } finally {
    db.close()
    rmSync(folder, { recursive: true })
  }
}

/** All rows of a query, integers as bigints. */
export const ask = (db: sqlite.Database, sql: string): (bigint | string | null)[][] =>
  db
    .all(sql)
    .map((row) =>
      Object.values(row).map((value) =>
        typeof value === 'number' ? BigInt(value) : (value as bigint | string | null),
      ),
    )

const hasTable = (db: sqlite.Database, table: string) =>
  db.get('SELECT 1 FROM sqlite_master WHERE name = ?', [table]) !== null

export const originOf = (db: sqlite.Database): bigint =>
  ask(db, 'SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME')[0]![0] as bigint

const FIGURES = 'count(*), min(start), max(coalesce(end, start)), sum(coalesce(end, start) - start)'
const later = (figures: readonly (bigint | string | null)[], originNs: bigint): Figures =>
  (figures as readonly (bigint | null)[]).map((value, i) =>
    value === null || (i !== 1 && i !== 2) ? value : value + originNs,
  )

/** Of every kind that a report has, its figures and rows; by SQL on the report. */
export function told(db: sqlite.Database): { figures: FiguresByKind; rows: RowsByKind } {
  const originNs = originOf(db)
  const figures: Record<string, Figures> = {}
  const rows: Record<string, string[]> = {}
  const text = (column: string) => `(SELECT value FROM StringIds WHERE id = ${column})`
  for (const [kind, { tables, condition = '1', name }] of Object.entries(KINDS)) {
    const parts = tables
      .filter((table) => hasTable(db, table))
      .map((table) => `SELECT start, end, ${name(text)} AS name FROM ${table} WHERE ${condition}`)
    if (parts.length === 0) continue
    const all = parts.join(' UNION ALL ')
    if (ask(db, `SELECT count(*) FROM (${all})`)[0]![0] === 0n) continue
    figures[kind] = later(ask(db, `SELECT ${FIGURES} FROM (${all})`)[0]!, originNs)
    const strip = kind === 'cuda' || kind === 'os'
    rows[kind] = ask(db, all)
      .map(([start, end, called]) => {
        const shown = strip ? `${called}`.replace(/_v\d{4,5}(?=_|$)/, '') : called
        return `${(start as bigint) + originNs} ${((end ?? start) as bigint) - (start as bigint)} ${shown}`
      })
      .sort()
  }
  return { figures, rows }
}

/** The same, by SQL on the trace. */
export function drawn(trace: Trace, kinds: readonly string[]): { figures: FiguresByKind; rows: RowsByKind } {
  const figures: Record<string, Figures> = {}
  const rows: Record<string, string[]> = {}
  for (const kind of kinds) {
    const from = KINDS[kind]!.drawn
    const sum = `SELECT count(*), min(s.ts) + ${ZERO_NS}, max(s.ts + s.dur) + ${ZERO_NS}, sum(s.dur) FROM ${from}`
    figures[kind] = trace.query(sum).rows[0]!.map((value) => (value === null ? null : BigInt(value as number)))
    rows[kind] = trace
      .query(`SELECT s.ts + ${ZERO_NS}, s.dur, s.name FROM ${from}`)
      .rows.map((cells) => cells.join(' '))
      .sort()
  }
  return { figures, rows }
}

/** Kinds of which a trace has anything. */
export const KIND_NAMES: readonly string[] = Object.keys(KINDS)

const LAUNCHES = `
  CREATE TEMP TABLE work AS ${['KERNEL', 'MEMCPY', 'MEMSET', 'GRAPH_TRACE']
    .map((kind) => `SELECT start, end, correlationId, globalPid FROM ${CUPTI}${kind}`)
    .join(' UNION ALL ')};
  CREATE INDEX temp.by_launch ON work (correlationId, globalPid);
  CREATE TEMP TABLE launch AS SELECT r.globalTid, r.start AS at, r.correlationId, w.start, w.end
    FROM ${CUPTI}RUNTIME r JOIN work w ON w.correlationId = r.correlationId AND w.globalPid = (r.globalTid & ~16777215);
  CREATE INDEX temp.by_thread ON launch (globalTid, at);`

/** Makes the table `launch`: each piece of GPU work whose launch is in the report. */
export function makeLaunches(db: sqlite.Database): void {
  const missing = ['KERNEL', 'MEMCPY', 'MEMSET', 'GRAPH_TRACE', 'RUNTIME'].filter((kind) => !hasTable(db, CUPTI + kind))
  for (const kind of missing) {
    db.exec(`CREATE TEMP TABLE ${CUPTI}${kind} (start, end, correlationId, globalPid, globalTid)`)
  }
  db.exec(LAUNCHES)
}

/** Thread of the call, correlation id and duration of each piece of work that was launched; sorted. */
export const toldLaunches = (db: sqlite.Database): string[] =>
  ask(db, 'SELECT globalTid & 16777215, (globalTid >> 24) & 16777215, correlationId, end - start FROM launch')
    .map((cells) => cells.join(' '))
    .sort()

/** Figures of the projections of NVTX ranges on the GPU, and how many pieces of work they have, and how long they took. */
export function toldProjections(db: sqlite.Database): Figures {
  if (!hasTable(db, 'NVTX_EVENTS')) return [0n, null, null, null, null, null]
  const sql = `SELECT count(*), min(first), max(last), sum(last - first), sum(works), sum(busy) FROM (
    SELECT min(l.start) AS first, max(l.end) AS last, count(*) AS works, sum(l.end - l.start) AS busy
    FROM NVTX_EVENTS n JOIN launch l ON l.globalTid = n.globalTid AND l.at BETWEEN n.start AND n.end
    WHERE n.eventType IN ${RANGES} GROUP BY n.rowid)`
  return later(ask(db, sql)[0]!, originOf(db))
}

export const drawnProjections = (trace: Trace): Figures =>
  trace
    .query(`SELECT count(*), min(ts) + ${ZERO_NS}, max(ts + dur) + ${ZERO_NS}, sum(dur), sum(extract_arg(arg_set_id, 'debug.gpu_work')),
      sum(extract_arg(arg_set_id, 'debug.busy_ns')) FROM slice WHERE category = 'nvtx_gpu'`)
    .rows[0]!.map((value) => (value === null ? null : BigInt(value as number)))

/** How often and how long each thread ran. */
export function toldRunning(db: sqlite.Database): Figures {
  if (!hasTable(db, 'SCHED_EVENTS')) return [0n, null, null, null]
  const sql = `SELECT count(*), min(start), max(next), sum(next - start) FROM (
    SELECT start, isSchedIn, lead(start) OVER (PARTITION BY globalTid ORDER BY start, rowid) AS next FROM SCHED_EVENTS)
    WHERE isSchedIn AND next IS NOT NULL`
  return later(ask(db, sql)[0]!, originOf(db))
}

export const drawnRunning = (trace: Trace): Figures =>
  trace
    .query(
      `SELECT count(*), min(ts) + ${ZERO_NS}, max(ts + dur) + ${ZERO_NS}, sum(dur) FROM slice WHERE category = 'state' AND name GLOB 'running*'`,
    )
    .rows[0]!.map((value) => (value === null ? null : BigInt(value as number)))

/** Tables of facts on the machine and on who used it. */
const PRIVATE = [
  ...[
    'TARGET_INFO_SYSTEM_ENV',
    'META_DATA_CAPTURE',
    'META_DATA_EXPORT',
    'EXPORT_META_DATA',
    'PROCESSES',
    'ProcessStreams',
  ],
  ...['TARGET_INFO_GPU', 'TARGET_INFO_CUDA_DEVICE'],
]
/** What a trace may tell of them: names of programs and GPUs, versions of nsys and of its schema. */
const PUBLIC = /^(?:EXPORT_(?:PRODUCT|SCHEMA)_\w+|CpuArchitecture|Supported\w*ABIs|HardwarePlatform)$/

/**
 * Parts of the texts of these tables that nothing else would have: whatever is no plain word or number, and plain words that
 * name the host or a user.
 */
export function secretsOf(db: sqlite.Database): string[] {
  const secrets = new Set<string>()
  const open = new Set(ask(db, `SELECT value FROM StringIds`).flatMap(([value]) => `${value}`.split(/[^\w.+-]+/)))
  for (const table of PRIVATE.filter((name) => hasTable(db, name))) {
    for (const row of db.all(`SELECT * FROM ${table}`)) {
      if (PUBLIC.test(`${row['name']}`)) continue
      const names =
        /(?:host(?:name)?|user(?:_name)?)$/i.test(`${row['name']}`) || /^\w*(?:USER|HOST|NAME)=/.test(`${row['value']}`)
      for (const [column, value] of Object.entries(row)) {
        if (typeof value !== 'string' || (table === 'TARGET_INFO_GPU' && column === 'name')) continue
        for (const part of value.split(/[\s;,=:"'{}[\]()]+/)) {
          const isWord = /^[A-Za-z]+\d*$|^[\d.]+$/.test(part)
          if (part.length >= 5 && !open.has(part) && (!isWord || names)) secrets.add(part)
        }
      }
    }
  }
  return [...secrets]
}

/** What nsys itself calls the kinds of copies, where it says so. */
export const copyKinds = (db: sqlite.Database): readonly unknown[] =>
  hasTable(db, 'ENUM_CUDA_MEMCPY_OPER') ? ask(db, 'SELECT label FROM ENUM_CUDA_MEMCPY_OPER ORDER BY id').flat() : COPIES
