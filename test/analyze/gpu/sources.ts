import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sqlite from 'node-sqlite3-wasm'
import type { SourceWork } from './definitions.ts'

/** GPU work and what launched it, read from the source without the library's readers. */

/** A range of the program's threads, within which work was launched. */
export interface SourceRange {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
}

export interface Launch {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
  /** Kineto: the operator that it belongs to. */
  readonly externalId: string | undefined
}

export interface Source {
  readonly work: readonly SourceWork[]
  /** Calls, by process and correlation id. */
  readonly calls: readonly Launch[]
  /** Name of a Kineto operator by its External id. */
  readonly operators: ReadonlyMap<string, string>
  readonly ranges: readonly SourceRange[]
}

type Digits = string

interface SourceEvent {
  readonly ph: string
  readonly cat?: string
  readonly name: string
  readonly pid: Digits
  readonly tid: Digits
  readonly ts: Digits
  readonly dur?: Digits
  readonly args?: Readonly<Record<string, Digits>>
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const WHATS: Readonly<Record<string, SourceWork['what']>> = {
  kernel: 'kernel',
  gpu_memcpy: 'memcpy',
  gpu_memset: 'memset',
}

/** A file of PyTorch's profiler: numbers as they are written, times in ns since the first event. */
export function kinetoSource(text: string): Source {
  const parsed = JSON.parse(text.replace(TOKEN, (token) => (token.startsWith('"') ? token : `"${token}"`)))
  const events: SourceEvent[] = (parsed.traceEvents as SourceEvent[]).filter(({ ph }) => ph === 'X')
  const nanos = (digits: Digits) => {
    const [whole, fraction = ''] = digits.split('.')
    return BigInt(whole!) * 1000n + BigInt(fraction.padEnd(3, '0').slice(0, 3))
  }
  const originNs = events.reduce((first, { ts }) => (nanos(ts) < first ? nanos(ts) : first), nanos(events[0]!.ts))
  const timesOf = ({ ts, dur = '0' }: SourceEvent) => {
    const startNs = Number(nanos(ts) - originNs)
    return { startNs, endNs: startNs + Number(nanos(dur)) }
  }
  const byCorrelation = new Map<string, SourceEvent>()
  const calls = events.filter(({ cat = '' }) => /^(cuda|hip)_(runtime|driver)$/.test(cat))
  for (const call of calls.toSorted((a, b) => timesOf(a).startNs - timesOf(b).startNs)) {
    const id = call.args?.['correlation']
    if (id !== undefined && !byCorrelation.has(id)) byCorrelation.set(id, call)
  }
  const work = events.flatMap((event): SourceWork[] => {
    const what = WHATS[event.cat ?? '']
    const { args = {} } = event
    if (!what || args['stream'] === undefined) return []
    const call = byCorrelation.get(args['correlation']!)
    return [
      {
        ...{ what, name: event.name, ...timesOf(event) },
        ...{ device: Number(args['device']), pid: 0, stream: Number(args['stream']) },
        ...{ launchNs: call ? timesOf(call).startNs : NaN, launch: call, bytes: Number(args['bytes'] ?? NaN) },
      },
    ]
  })
  const isOperator = ({ cat }: SourceEvent) => cat === 'cpu_op'
  const launchOf = (event: SourceEvent): Launch => ({
    ...{ name: event.name, pid: 0, tid: Number(event.tid), ...timesOf(event), externalId: event.args?.['External id'] },
  })
  return {
    work: work.map((of) => ({ ...of, launch: of.launch && launchOf(of.launch as SourceEvent) })).map(sameLaunch()),
    calls: calls.map(launchOf),
    operators: new Map(events.filter(isOperator).map(({ args, name }) => [args!['External id']!, name])),
    ranges: events.filter(isOperator).map((event) => ({ ...launchOf(event) })),
  }
}

/** One object for each launch. */
function sameLaunch(): (work: SourceWork) => SourceWork {
  const known = new Map<string, unknown>()
  return (work) => {
    if (!work.launch) return work
    const key = JSON.stringify(work.launch)
    if (!known.has(key)) known.set(key, work.launch)
    return { ...work, launch: known.get(key) }
  }
}

/** A report of Nsight Systems, by SQL. */
export function nsysSource(bytes: Uint8Array): Source {
  const folder = mkdtempSync(join(tmpdir(), 'gpu-'))
  const path = join(folder, 'report.sqlite')
  writeFileSync(path, bytes)
  const database = new sqlite.Database(path, { readOnly: true })
  try {
    const has = (table: string) => database.get('SELECT 1 FROM sqlite_master WHERE name = ?', [table]) !== null
    const rows = (sql: string) => database.all(sql) as Record<string, number | bigint | string | null>[]
    const pid = (column: string) => `(${column} >> 24) & 0xffffff`
    const RUNTIME = 'CUPTI_ACTIVITY_KIND_RUNTIME'
    const calls = rows(
      `SELECT start, end, ${pid('globalTid')} AS pid, globalTid & 0xffffff AS tid, correlationId AS id, value AS name
        FROM ${RUNTIME} LEFT JOIN StringIds s ON s.id = nameId ORDER BY start`,
    )
    const launches = new Map<string, Launch>()
    const callOf = (row: (typeof calls)[number]): Launch => ({
      ...{ name: String(row['name']), pid: Number(row['pid']), tid: Number(row['tid']), externalId: undefined },
      ...{ startNs: Number(row['start']), endNs: Number(row['end']) },
    })
    for (const row of calls) {
      const key = `${row['pid']} ${row['id']}`
      if (!launches.has(key)) launches.set(key, callOf(row))
    }
    const work = (['kernel', 'memcpy', 'memset'] as const).flatMap((what) => {
      const table = `CUPTI_ACTIVITY_KIND_${what.toUpperCase()}`
      if (!has(table)) return []
      const name = what === 'kernel' ? '(SELECT value FROM StringIds s WHERE s.id = shortName)' : `'${what}'`
      const size = what === 'kernel' ? 'NULL' : 'bytes'
      // The driver moves pages of unified memory: no call launches it.
      const id = what === 'memcpy' ? 'CASE WHEN copyKind > 10 THEN -1 ELSE correlationId END' : 'correlationId'
      return rows(
        `SELECT start, end, deviceId, streamId, ${pid('globalPid')} AS pid, ${id} AS id, ${name} AS name,
          ${size} AS size FROM ${table}`,
      ).map((row): SourceWork => {
        const launch = launches.get(`${row['pid']} ${row['id']}`)
        return {
          ...{ what, name: String(row['name']), startNs: Number(row['start']), endNs: Number(row['end']) },
          ...{ device: Number(row['deviceId']), pid: Number(row['pid']), stream: Number(row['streamId']) },
          ...{ launchNs: launch?.startNs ?? NaN, launch, bytes: Number(row['size'] ?? NaN) },
        }
      })
    })
    const domains = '(SELECT text FROM NVTX_EVENTS d WHERE d.eventType = 75 AND d.domainId = n.domainId LIMIT 1)'
    const text = "coalesce(nullif(n.text, ''), (SELECT value FROM StringIds s WHERE s.id = n.textId), '')"
    const ranges = !has('NVTX_EVENTS')
      ? []
      : rows(
          `SELECT start, end, ${pid('globalTid')} AS pid, globalTid & 0xffffff AS tid, ${text} AS name, ${domains} AS domain
            FROM NVTX_EVENTS n WHERE eventType IN (59, 60, 70, 71)`,
        ).map((row): SourceRange => {
          const name = String(row['name']).replace(/, (op_id|seq) = \d.*/s, '')
          return {
            name: row['domain'] ? `${row['domain']}:${name}` : name,
            ...{ pid: Number(row['pid']), tid: Number(row['tid']), startNs: Number(row['start']) },
            endNs: row['end'] === null ? Infinity : Number(row['end']),
          }
        })
    return { work, calls: calls.map(callOf), operators: new Map(), ranges }
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
}
