import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/sql.ts'
import { compareImports } from '../../scripts/chrome-imports.mjs'
import { converted } from '../line/support.ts'

/** Our trace of Chrome JSON, compared with trace_processor's own import of the file: docs/reference/tracks.md lists what differs. */

const FOLDER = fileURLToPath(new URL('../fixtures/chrome-json', import.meta.url))
const FIXTURES = readdirSync(FOLDER).filter((name) => /\.json(\.gz)?$/.test(name))

test.each(FIXTURES)('%s: the same processes, threads, slices and arguments', async (name) => {
  const stored = readFileSync(join(FOLDER, name))
  const file = new Uint8Array(name.endsWith('.gz') ? gunzipSync(stored) : stored)
  const { compared, ours, dropped, wrong } = await compareImports(file, { convert, openTrace })
  expect(wrong).toEqual([])
  expect(compared + dropped).toBeLessThanOrEqual(ours)
  expect(ours).toBeGreaterThan(10)
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
