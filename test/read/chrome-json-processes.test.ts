import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { converted } from '../line/support.ts'

/** Processes and threads of Chrome JSON are those that trace_processor finds in the file itself: SQL by process and thread works. */

const encode = (text: string) => new TextEncoder().encode(text)
const meta = (name: string, args: object, more: object) => ({ ph: 'M', name, args, ...more })
/** Empty lists and objects, which trace_processor leaves out, are texts of ours. */
const ARGS = {
  request: { path: '/a', size: { width: 640, sides: [1, 2.5, { x: 'y' }] }, tags: [], more: {} },
  list: [1, [], 2, null, 3, { flag: false }],
  isLast: true,
  nothing: null,
  'torn\nline': 'a\tb',
}
const EVENTS = [
  { ph: 'X', pid: 10, tid: 10, name: 'main work', cat: 'app', ts: 100, dur: 50 },
  { ph: 'X', pid: 10, tid: 10, name: 'inner', cat: 'app', ts: 110, dur: 20, args: ARGS },
  { ph: 'X', pid: 10, tid: 10, name: 'without a category', ts: 140, dur: 2 },
  { ph: 'X', pid: 10, tid: 11, name: 'worker work', cat: 'app', ts: 105, dur: 50 },
  { ph: 'B', pid: 20, tid: 21, name: 'pair', cat: 'net', ts: 130 },
  { ph: 'E', pid: 20, tid: 21, name: 'pair', cat: 'net', ts: 180 },
  { ph: 'i', pid: 10, tid: 12, name: 'mark', cat: 'app', ts: 150, s: 't' },
  { ph: 'C', pid: 20, name: 'queue', ts: 140, args: { length: 3 } },
  // Names may come after the events, and be replaced.
  meta('process_name', { name: 'server' }, { pid: 10 }),
  meta('thread_name', { name: 'Early' }, { pid: 10, tid: 10 }),
  meta('thread_name', { name: 'Main' }, { pid: 10, tid: 10 }),
  meta('thread_name', { name: 'Worker' }, { pid: 10, tid: 11 }),
  meta('process_labels', { labels: 'first page,second page' }, { pid: 10 }),
  meta('process_sort_index', { sort_index: 7 }, { pid: 20 }),
  meta('thread_sort_index', { sort_index: -3 }, { pid: 10, tid: 11 }),
  meta('process_name', { name: 'client' }, { pid: 20 }),
]
const QUERIES = {
  processes: 'SELECT pid, name FROM process WHERE pid > 0 ORDER BY pid',
  threads: `SELECT pid, tid, thread.name, is_main_thread FROM thread JOIN process USING (upid)
    WHERE tid > 0 AND (EXISTS (SELECT 1 FROM thread_track JOIN slice ON track_id = thread_track.id
      WHERE thread_track.utid = thread.utid)) ORDER BY pid, tid`,
  slices: `SELECT process.name, thread.name, s.name, s.ts - (SELECT min(ts) FROM slice), s.dur, s.depth, parent.name, s.category
    FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid) JOIN process USING (upid)
    LEFT JOIN slice parent ON parent.id = s.parent_id ORDER BY 1, 2, s.ts, s.depth`,
  args: `SELECT s.name, substr(key, instr(key, '.') + 1) AS name, value_type, coalesce(string_value, real_value, int_value) AS value
    FROM slice s JOIN args USING (arg_set_id) WHERE coalesce(string_value, '') NOT IN ('[]', '{}') ORDER BY s.ts, 2`,
}

async function found(bytes: Uint8Array) {
  const trace = await openTrace(bytes)
  try {
    return Object.fromEntries(
      Object.entries(QUERIES).map(([name, sql]) => [name, trace.query(sql).rows.map((row) => [...row])]),
    )
  } finally {
    trace.close()
  }
}

test('processes, threads and slices are the same as in an import of the file by trace_processor', async () => {
  const file = encode(JSON.stringify({ traceEvents: EVENTS }))
  const ours = await found(await converted(file))
  expect(ours).toEqual(await found(file))
  expect(ours['threads']).toContainEqual([10, 11, 'Worker', 0])
  expect(ours['slices']).toContainEqual(['server', 'Main', 'inner', 10_000, 20_000, 1, 'main work', 'app'])
  expect(ours['slices']).toContainEqual(['server', 'Main', 'without a category', 40_000, 2_000, 1, 'main work', null])
  expect(ours['args']).toContainEqual(['inner', 'request.size.sides[2].x', 'string', 'y'])
  expect(ours['args']!.length).toBeGreaterThan(10)
})

test('so are those of the same trace as JSON', async () => {
  const file = encode(JSON.stringify({ traceEvents: EVENTS }))
  const json = await converted(file, { to: 'json' })
  expect(await found(json)).toEqual(await found(file))
  const { traceEvents } = JSON.parse(new TextDecoder().decode(json)) as { traceEvents: Record<string, unknown>[] }
  const inner = traceEvents.find(({ name }) => name === 'inner')!
  expect(inner).toMatchObject({ pid: 10, tid: 10, args: ARGS })
  expect(traceEvents.filter(({ ph }) => ph === 'M').map(({ pid, tid, name, args }) => [pid, tid, name, args])).toEqual(
    expect.arrayContaining([
      [10, undefined, 'process_labels', { labels: 'first page,second page' }],
      [10, 11, 'thread_sort_index', { sort_index: -3 }],
      [20, undefined, 'process_sort_index', { sort_index: 7 }],
    ]),
  )
})

test('rows that are no threads have numbers that no thread of the process has', async () => {
  const operation = { pid: 20, tid: 21, name: 'request', cat: 'net', id: 1 }
  const events = [...EVENTS, { ...operation, ph: 'b', ts: 131 }, { ...operation, ph: 'e', ts: 199 }]
  const json = await converted(encode(JSON.stringify({ traceEvents: events })), { to: 'json' })
  const trace = await openTrace(json)
  try {
    const sql = `SELECT process.name, tid > 1 << 22 FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)
      JOIN process USING (upid) WHERE slice.name = 'request'`
    expect(trace.query(sql).rows).toEqual([['client', 1]])
  } finally {
    trace.close()
  }
})

test('slices of a thread that overlap are in further rows of this thread, with counters and operations below their process', async () => {
  const overlapping = { ph: 'X', pid: 10, tid: 11, name: 'overlapping', ts: 120, dur: 100 }
  const operation = { pid: 20, tid: 21, name: 'request', cat: 'net', id: 1 }
  const more = [overlapping, { ...operation, ph: 'b', ts: 131 }, { ...operation, ph: 'e', ts: 199 }]
  const trace = await openTrace(await converted(encode(JSON.stringify({ traceEvents: [...EVENTS, ...more] }))))
  try {
    const rows = (sql: string) => trace.query(sql).rows.map((row) => [...row])
    expect(
      rows(`SELECT thread.name, t.name FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid)
        WHERE s.name = 'overlapping'`),
    ).toEqual([['Worker', 'Worker 11 (2)']])
    expect(
      rows(
        `SELECT process.name, s.name FROM slice s JOIN process_track t ON t.id = s.track_id JOIN process USING (upid)`,
      ),
    ).toEqual([['client', 'request']])
    expect(rows('SELECT process.name, t.name FROM process_counter_track t JOIN process USING (upid)')).toEqual([
      ['client', 'queue'],
    ])
  } finally {
    trace.close()
  }
})
