import { describe, expect, test } from '@jest/globals'
import { TraceWriter } from '../../lib/perfetto.ts'
import { openTrace, toChromeJson } from '../../lib/sql.ts'
import { converted, storedBytes } from '../line/support.ts'

/** A Perfetto trace as Chrome JSON, from trace_processor's tables: what an import of the JSON finds is what the trace contains. */

const SLICES = `SELECT s.name, s.category, s.ts, s.dur, s.depth, p.name, p.ts FROM slice s LEFT JOIN slice p ON p.id = s.parent_id
  ORDER BY s.ts, s.dur DESC, s.depth, s.name, s.category`
const NAME = `CASE WHEN key GLOB 'debug.*' THEN substr(key, 7) WHEN key GLOB 'args.*' THEN substr(key, 6) ELSE key END`
/** In JSON, pointers are texts, and trace_processor leaves out empty lists and objects. */
const VALUE = `CASE value_type WHEN 'pointer' THEN printf('0x%x', int_value) ELSE coalesce(string_value, real_value, int_value) END`
const ARGS = `SELECT s.name, s.ts, s.depth, ${NAME} AS arg, ${VALUE} AS value FROM slice s JOIN args USING (arg_set_id)
  WHERE coalesce(string_value, real_value, int_value, '[]') NOT IN ('[]', '{}') ORDER BY 2, 1, 3, 4, 5`
const FLOWS = `SELECT o.name, o.ts, i.name, i.ts FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in ORDER BY 2, 4, 1, 3`
/** Without those that only keep rows at the top of the UI. */
const COUNTERS = `SELECT ts, value FROM counter JOIN track ON track.id = track_id WHERE track.name <> 'at the top' ORDER BY ts, value`
/** Without further tracks of a thread, which have a number of their own in JSON. */
const THREADS = `SELECT pid, tid, process.name, thread.name, s.name FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid)
  JOIN process USING (upid) WHERE tid < 1 << 22 AND pid < 1 << 22
  AND t.id = (SELECT own.id FROM thread_track own WHERE own.utid = t.utid ORDER BY own.type <> 'thread_execution', own.id LIMIT 1) ORDER BY s.ts, 1, 2, 5`

async function asJson(trace: Uint8Array): Promise<Uint8Array> {
  const opened = await openTrace(trace)
  try {
    return new Uint8Array(Buffer.concat([...toChromeJson(opened)]))
  } finally {
    opened.close()
  }
}

async function contentsOf(trace: Uint8Array): Promise<Record<string, unknown>> {
  const opened = await openTrace(trace)
  const rows = (sql: string) => opened.query(sql).rows.map((row) => [...row])
  try {
    return {
      slices: rows(SLICES),
      args: rows(ARGS),
      flows: rows(FLOWS),
      counters: rows(COUNTERS),
      threads: rows(THREADS),
    }
  } finally {
    opened.close()
  }
}

/** A trace with everything. */
function written(): Uint8Array {
  const trace = new TraceWriter()
  const app = trace.process('app', { pid: 17 })
  const [main, other] = [app.thread('main', { tid: 17 }), app.thread('other', { tid: 18 })]
  const args = {
    n: 5,
    real: 2,
    big: 2n ** 60n,
    'a b': 'x"y\n',
    isOn: true,
    deep: { list: [1, [], { x: [2.5, 'z'] }], more: {} },
  }
  main.begin(1000, 'outer', { category: 'c', args, flows: [1] })
  main.slice(1000, 5000, 'same start')
  main.slice(1000, 1000, 'empty')
  main.instant(2000, 'mark', { category: 'm' })
  main.end(5000, { result: 'ok' })
  main.slice(5000, 6001, 'next', { flowEnds: [1] })
  main.begin(7000, 'never ends')
  other.instant(1500, 'with an arrow', { flows: [2] })
  other.slice(1700, 1800, 'its end', { flowEnds: [2] })
  const spans = app.spans('requests')
  const [first, second] = [spans.begin(100, 'first'), spans.begin(200, 'second')]
  first.end(300)
  second.end(400)
  trace.track('top').track('below').slice(10, 20, 'without a process')
  const counter = app.counter('queue', { unit: 'jobs' })
  for (const [at, value] of [
    [10, 1],
    [20, 2.5],
    [30, -3],
  ] as const)
    counter.sample(at, value)
  trace.counter('of all').sample(40, 7)
  trace.finish()
  return trace.take()
}

describe('an import of the JSON has the same slices, arguments, arrows, counters and threads', () => {
  test('of a trace with everything', async () => {
    const trace = written()
    const contents = await contentsOf(trace)
    expect(await contentsOf(await asJson(trace))).toEqual(contents)
    expect(contents['slices']).toHaveLength(11)
    expect(contents['flows']).toHaveLength(2)
    expect(contents['args']).toContainEqual(['outer', 1000, 0, 'deep.list[2].x[1]', 'z'])
  })

  test.each(['tensor-trace/moe-2threads.bin.gz', 'chrome-json/h100.json.gz'])('of the trace of %s', async (fixture) => {
    const trace = await converted(storedBytes(fixture), { detail: 'full' })
    const [ours, imported] = [await contentsOf(trace), await contentsOf(await asJson(trace))]
    for (const what of ['slices', 'args', 'flows', 'counters', 'threads'])
      expect([what, imported[what]]).toEqual([what, ours[what]])
  })
})

test('JSON, converted to a trace and back, is the same slices, processes and threads', async () => {
  const events = [
    { ph: 'X', pid: 10, tid: 10, name: 'work', cat: 'app', ts: 100, dur: 50, args: { size: { w: 1, h: [2, 3.5] } } },
    { ph: 'X', pid: 10, tid: 11, name: 'other', ts: 110, dur: 20.5 },
    { ph: 'i', s: 't', pid: 10, tid: 11, name: 'mark', cat: 'app', ts: 115 },
    { ph: 'C', pid: 10, name: 'queue', ts: 120, args: { length: 3 } },
    { ph: 'M', pid: 10, name: 'process_name', args: { name: 'server' } },
    { ph: 'M', pid: 10, tid: 11, name: 'thread_name', args: { name: 'Worker' } },
  ]
  const json = new TextEncoder().encode(JSON.stringify({ traceEvents: events }))
  const back = await asJson(await converted(json))
  const [before, after] = [await contentsOf(json), await contentsOf(back)]
  const shifted = (rows: unknown, column: number) => {
    const list = rows as unknown[][]
    const least = Math.min(...list.map((row) => Number(row[column])))
    return list.map((row) => row.with(column, Number(row[column]) - least))
  }
  expect(shifted(after['slices'], 2).map((row) => row.slice(0, 6))).toEqual(
    shifted(before['slices'], 2).map((row) => row.slice(0, 6)),
  )
  expect(after['threads']).toEqual(before['threads'])
  const { traceEvents } = JSON.parse(new TextDecoder().decode(back)) as { traceEvents: unknown[] }
  expect(traceEvents).toContainEqual(
    expect.objectContaining({
      ph: 'B',
      pid: 10,
      tid: 10,
      name: 'work',
      cat: 'app',
      args: { size: { w: 1, h: [2, 3.5] } },
    }),
  )
})

test('times since 1970 are exact: they count from the start of the trace', async () => {
  const trace = new TraceWriter({ clock: 'REALTIME' })
  const track = trace.process('p').thread('t')
  track.slice(1_700_000_000_000_000_001n, 1_700_000_000_000_000_003n, 'a')
  track.slice(1_700_000_000_000_000_003n, 1_700_000_000_000_000_010n, 'b')
  trace.finish()
  const json = await asJson(trace.take())
  const opened = await openTrace(json)
  expect(opened.query('SELECT name, ts, dur FROM slice ORDER BY ts').rows).toEqual([
    ['a', 0, 2],
    ['b', 2, 7],
  ])
  opened.close()
  expect(new TextDecoder().decode(json)).toContain('"time-origin-ns":"1700000000000000001"')
})

test('a key that looks like a place far in a list is a key', async () => {
  const event = { ph: 'X', name: 'work', pid: 1, tid: 1, ts: 1, dur: 2, args: { 'list[2000000000]': 5 } }
  const json = await asJson(Buffer.from(JSON.stringify({ traceEvents: [event] })))
  const { traceEvents } = JSON.parse(Buffer.from(json).toString()) as { traceEvents: (typeof event)[] }
  expect(traceEvents.find(({ name }) => name === 'work')!.args).toEqual(event.args)
})
