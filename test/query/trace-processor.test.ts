import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { TraceProcessor } from '../../lib/query/trace-processor.ts'
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

  test('may not be followed by a second one', async () => {
    expect((await failure(() => tp.load(smallTrace))).message).toBe('a trace was loaded already; open another instance')
    expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[2]])
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

test('a file in no known format is refused', async () => {
  const tp = await TraceProcessor.create(wasm())
  const error = await failure(() =>
    tp.load([new TextEncoder().encode('once upon a time there was a log\n'.repeat(99))]),
  )
  expect([error.name, error.message]).toEqual([
    'TraceProcessorError',
    expect.stringMatching(/^trace_processor cannot read this trace: .*Unknown trace type/),
  ])
  expect((await failure(() => tp.query('SELECT 1'))).message).toMatch(/not usable any more .* open the trace again/)
})

test('an error of the source comes out of load as it is', async () => {
  async function* source() {
    yield packets.clocks
    throw new RangeError('the disk is on fire')
  }
  const tp = await TraceProcessor.create(wasm())
  expect((await failure(() => tp.load(source()))).name).toBe('RangeError')
  expect((await failure(() => tp.query('SELECT 1'))).message).toBe(
    'this trace_processor is not usable any more (the disk is on fire); open the trace again',
  )
})

test('no query while the trace is being loaded', async () => {
  let error: Error | undefined
  const tp = await TraceProcessor.create(wasm())
  async function* source() {
    yield* smallTrace
    error = await failure(() => tp.query('SELECT 1'))
  }
  await tp.load(source())
  expect(error?.message).toBe('the trace is still being loaded')
  expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[2]])
  tp.close()
})

test('an empty trace can be queried', async () => {
  const tp = await open([])
  expect(tp.query('SELECT count(*) FROM slice').rows).toEqual([[0]])
  tp.close()
})
