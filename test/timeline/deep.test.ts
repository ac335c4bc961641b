import { expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { converted } from '../line/support.ts'
import { begun } from '../read/ggtrace-logs.ts'

/** Slices that are nested deeper than Perfetto ends them on one track: each is in the trace, and ends. */

const DEPTH = 1300

const json = (events: readonly object[]) => Buffer.from(JSON.stringify({ traceEvents: events }))
const all = <T>(make: (i: number) => T) => Array.from({ length: DEPTH }, (_, i) => make(i))

const of = { pid: 1, tid: 2 }
const begins = all((i) => ({ ...of, ph: 'B', name: `f${i}`, ts: i }))
const ends = all((i) => ({ ...of, ph: 'E', ts: DEPTH + i }))
const operation = { pid: 1, id: 5, cat: 'c' }

/** A log with DEPTH begins, then as many ends. */
function ofThread(begin: 'begin' | 'nvtxPush', end: 'end' | 'nvtxPop'): Uint8Array {
  const writer = begun()
  const thread = writer.thread(7)
  const name = writer.name('r')
  for (let i = 0; i < DEPTH; i++) {
    if (begin === 'begin') thread.begin(i * 10, name)
    else thread.nvtxPush({ atNs: i * 10, domain: 0, message: name, category: 0, color: 0 })
  }
  for (let i = DEPTH; i < 2 * DEPTH; i++) thread[end](i * 10)
  writer.end(30 * DEPTH)
  return writer.take()
}

test.each<[string, Uint8Array]>([
  ['begins and ends of Chrome JSON', json([...begins, ...ends])],
  ['complete events', json(all((i) => ({ ...of, ph: 'X', name: `f${i}`, ts: i, dur: 3 * DEPTH - 2 * i })))],
  [
    'asynchronous events',
    json([
      ...all((i) => ({ ...operation, ph: 'b', name: `f${i}`, ts: i })),
      ...all((i) => ({ ...operation, ph: 'e', name: `f${DEPTH - 1 - i}`, ts: DEPTH + i })),
    ]),
  ],
  ['named ranges', ofThread('begin', 'end')],
  ['NVTX', ofThread('nvtxPush', 'nvtxPop')],
])('%s', async (_, source) => {
  const trace = await openTrace(await converted(source))
  expect(trace.problems()).toEqual([])
  const { rows } = trace.query('select count(*), sum(dur <= 0), max(depth) from slice')
  expect(rows).toEqual([[DEPTH, 0, 511]])
  trace.close()
})
