import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { convert } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { TraceProcessor } from '../../lib/query/trace-processor.ts'
import { inLong } from '../long.ts'
import { cutAt, failure, joined, open, packets, smallTrace, wasm } from './helpers.ts'

describe('a loaded trace', () => {
  let tp: TraceProcessor
  beforeAll(async () => {
    tp = await open(smallTrace)
  })
  afterAll(() => tp.close())

  test.each([
    [
      'SELECT name, ts, dur FROM slice ORDER BY ts',
      [
        ['MUL_MAT', 1000500, 30000],
        ['MUL_MAT', 1031400, -1],
      ],
    ],
    [
      'SELECT ts, value FROM counter ORDER BY ts',
      [
        [1000500, 0],
        [1030500, 1234],
        [1031400, 1244],
      ],
    ],
    ['SELECT name FROM counter_track', [['LLC misses']]],
    ['SELECT pid, name FROM process WHERE pid > 0', [[100, 'llama-cli']]],
    ['SELECT tid, name FROM thread WHERE tid > 100', [[101, 'worker 0']]],
    ['SELECT ts, cpu FROM sched', [[1029400, 0]]],
    ['SELECT ts, state FROM thread_state JOIN thread USING (utid) WHERE tid = 101', [[1029400, 'S']]],
  ])('%s', (sql, rows) => {
    expect(tp.query(sql).rows).toEqual(rows)
  })
})

test('the result of a load does not depend on where the trace is cut', async () => {
  const whole = joined(smallTrace)
  const places = fc.array(fc.nat(whole.length), { maxLength: 30 })
  const sql = 'SELECT ts, dur, name FROM slice UNION ALL SELECT ts, value, null FROM counter ORDER BY 1, 2'
  const rowsOf = async (chunks: Uint8Array[]) => {
    const tp = await open(chunks)
    const { rows } = tp.query(sql)
    tp.close()
    return rows
  }
  const expected = await rowsOf([whole])
  expect(expected).toHaveLength(5)
  await fc.assert(
    fc.asyncProperty(places, async (at) => expect(await rowsOf(cutAt(whole, at))).toEqual(expected)),
    { numRuns: 25 },
  )
})

test('two traces are open at once', async () => {
  const [first, second] = await Promise.all([open(smallTrace), open([packets.clocks])])
  const count = 'SELECT count(*) FROM slice'
  expect([first.query(count).rows, second.query(count).rows, first.query(count).rows]).toEqual([[[2]], [[0]], [[2]]])
  first.close()
  expect(second.query(count).rows).toEqual([[0]])
  second.close()
})

test('a chunk of more than 32 MiB is split', async () => {
  // Packets with nothing but an unknown field of 1 MiB, which the import passes over.
  const filler = new Uint8Array(2 ** 20 + 9)
  filler.set([0x0a, 0x85, 0x80, 0x40, 0xfa, 0x3f, 0x80, 0x80, 0x40])
  const trace = new Uint8Array(70 * filler.length)
  for (let at = 0; at < trace.length; at += filler.length) trace.set(filler, at)
  const tp = await open([trace, ...smallTrace])
  expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[2]])
  tp.close()
})

test('a compressed trace', async () => {
  const tp = await open([gzipSync(joined(smallTrace))])
  expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[2]])
  tp.close()
})

test('a closed trace says so and holds no memory', async () => {
  const tp = await open(smallTrace)
  expect(tp.memorySize).toBeGreaterThan(2 ** 24)
  tp.close()
  tp.close()
  expect(tp.memorySize).toBe(0)
  const error = await failure(() => tp.query('SELECT 1'))
  expect([error.name, error.message]).toEqual([
    'TraceProcessorError',
    'this trace_processor is closed; open the trace again',
  ])
})

inLong(test)('each trace starts anew, also where the one before was large, failed, or was another kind', async () => {
  const count = 'SELECT (SELECT count(*) FROM slice), (SELECT count(*) FROM counter), (SELECT count(*) FROM args)'
  const stats = "SELECT name, value FROM stats WHERE value <> 0 AND name NOT GLOB '*_ns' ORDER BY 1"
  const alone = async (trace: Uint8Array[]) => {
    const compiled = new WebAssembly.Module(readFileSync(new URL('../../vendor/trace_processor.wasm', import.meta.url)))
    const tp = await TraceProcessor.open(compiled, trace) // an instance that starts from nothing
    const rows = [tp.query(count).rows, tp.query(stats).rows]
    tp.close()
    return rows
  }
  const moe = gunzipSync(readFileSync(new URL('../../examples/moe.ggtrace.gz', import.meta.url)))
  const large: Uint8Array[] = []
  for await (const chunk of convert(inputOf(moe))) large.push(chunk)
  const json = new TextEncoder().encode('\n{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]}')
  const torn = joined(smallTrace).subarray(0, -3)
  for (const trace of [large, smallTrace, [json], [torn], large, smallTrace]) {
    const tp = await open(trace)
    expect([tp.query(count).rows, tp.query(stats).rows]).toEqual(await alone(trace))
    tp.query('CREATE PERFETTO TABLE left_behind AS SELECT 1 AS one')
    tp.close()
    await failure(() => open([smallTrace[0]!, new Uint8Array(64).fill(0x0f)]))
  }
})

test('a file in no known format is refused', async () => {
  const error = await failure(() => open([new TextEncoder().encode('once upon a time there was a log\n'.repeat(99))]))
  expect([error.name, error.message]).toEqual([
    'TraceProcessorError',
    expect.stringMatching(/^trace_processor cannot read this trace: .*Unknown trace type/),
  ])
})

test('an error of the source is thrown as it is', async () => {
  async function* source() {
    yield packets.clocks
    throw new RangeError('the disk is on fire')
  }
  expect((await failure(() => TraceProcessor.open(wasm(), source()))).name).toBe('RangeError')
})

test('an empty trace can be queried', async () => {
  const tp = await open([])
  expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[0]])
  tp.close()
})
