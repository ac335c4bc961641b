import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/sql.ts'
import { converted } from '../line/support.ts'

/** Our trace of Chrome JSON, compared with trace_processor's own import of the file: docs/tracks.md lists what differs. */

const FOLDER = fileURLToPath(new URL('../fixtures/chrome-json', import.meta.url))
const FIXTURES = readdirSync(FOLDER).filter((name) => /\.json(\.gz)?$/.test(name))

/** trace_processor reads times as doubles: microseconds since 1970 are some hundred nanoseconds off. */
const OFF_NS = 1_000

/** Paths of Python functions are shorter in ours; some slices are only there. */
const SLICES = `SELECT replace(name, rtrim(name, replace(name, '/', '')), '') AS short, ts - (SELECT min(ts) FROM slice), dur FROM slice
  WHERE coalesce(category, '') NOT IN ('phase', 'token', 'issue') ORDER BY 1, 2, 3`
const ARGS = `SELECT s.name, replace(replace(replace(key, 'debug.', ''), 'args.', ''), '.', '_') AS arg, coalesce(string_value, real_value, int_value) AS value
  FROM slice s JOIN args USING (arg_set_id) WHERE category IN ('cpu_op', 'user_annotation', 'cpu_instant_event')
  AND coalesce(string_value, '') NOT IN ('[]', '{}') ORDER BY 1, 2, 3`

interface Found {
  readonly slices: [string, number, number][]
  readonly args: string[]
  /** Slices that trace_processor dropped because they overlap others of their thread. */
  readonly dropped: number
}

async function found(bytes: Uint8Array): Promise<Found> {
  const trace = await openTrace(bytes)
  try {
    const slices = trace.query(SLICES).rows.map((row) => [...row] as [string, number, number])
    const args = trace.query(ARGS).rows.map((row) => row.join(' | '))
    const sql = "SELECT value FROM stats WHERE name = 'slice_drop_overlapping_complete_event'"
    return { slices, args, dropped: Number(trace.query(sql).rows[0]![0]) }
  } finally {
    trace.close()
  }
}

test.each(FIXTURES)('%s: the same slices and arguments', async (name) => {
  const stored = readFileSync(join(FOLDER, name))
  const file = new Uint8Array(name.endsWith('.gz') ? gunzipSync(stored) : stored)
  const [theirs, ours] = [await found(file), await found(await converted(file, { detail: 'full' }))]
  expect(theirs.slices.length).toBeGreaterThan(10)
  const rest = new Map<string, number[]>()
  for (const [short, start, dur] of ours.slices) {
    const key = `${short} ${dur}`
    rest.set(key, [...(rest.get(key) ?? []), start])
  }
  const missing = theirs.slices.filter(([short, start, dur]) => {
    const starts = rest.get(`${short} ${dur}`) ?? []
    const at = starts.findIndex((other) => Math.abs(other - start) < OFF_NS)
    if (at >= 0) starts.splice(at, 1)
    return at < 0
  })
  expect(missing).toEqual([])
  expect(ours.slices.length).toBe(theirs.slices.length + theirs.dropped)
  const known = new Set(ours.args)
  expect(theirs.args.filter((arg) => !known.has(arg))).toEqual([])
})

test('slices that overlap are all there, and what never ends or began is reported', async () => {
  const slice = { pid: 1, tid: 1, cat: 'c' }
  const events = [
    { ...slice, ph: 'X', name: 'first', ts: 10, dur: 10 },
    { ...slice, ph: 'X', name: 'overlaps', ts: 15, dur: 10 },
    { ...slice, ph: 'E', name: 'never began', ts: 40 },
  ]
  const file = new TextEncoder().encode(JSON.stringify({ traceEvents: events }))
  const durations = async (bytes: Uint8Array) => {
    const trace = await openTrace(bytes)
    const { rows } = trace.query('SELECT name, dur, category FROM slice ORDER BY ts')
    trace.close()
    return rows.map((row) => row.join(' '))
  }
  expect(await durations(await converted(file))).toEqual([
    'first 10000 c',
    'overlaps 10000 c',
    'end without a start 0 issue',
  ])
  expect(await durations(file)).not.toContain('overlaps 10000 c')
})
