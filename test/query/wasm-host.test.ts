import { expect, test } from '@jest/globals'
import { WasmHost } from '../../lib/query/wasm-host.ts'
import { inLong } from '../long.ts'
import { failure, open, smallTrace } from './helpers.ts'

const after = 'open the trace again'

test('a trap ends the instance, and only this one', async () => {
  const [tp, other] = [await open(smallTrace), await open(smallTrace)]
  // A fault of trace_processor v55.3, so a real trap.
  const error = await failure(() => tp.query('SELECT 1 WHERE'))
  expect([error.name, error.message]).toEqual([
    'TraceProcessorError',
    'the SQL ends too early, which trace_processor does not survive; open the trace again',
  ])
  expect((error.cause as Error).message).toMatch(/^trace_processor failed: unreachable \(its last words: .*CHECK/)
  const later = await failure(() => tp.query('SELECT 1'))
  expect(later.name).toBe('TraceProcessorError')
  expect(later.message).toMatch(/^this trace_processor is not usable any more .*; open the trace again$/)
  expect(tp.memorySize).toBe(0)
  tp.close()
  expect((await failure(() => tp.query('SELECT 1'))).message).toBe(later.message)
  expect(other.query('SELECT count(*) FROM slice').rows).toEqual([[2]])
  other.close()
})

inLong(test)('lack of memory is told apart', async () => {
  const tp = await open(smallTrace, { maxMemory: 64 << 20 })
  const grow =
    'CREATE PERFETTO TABLE big AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5e7)'
  const error = await failure(() => tp.query(`${grow} SELECT i, -i * 1000003 AS j FROM n`))
  expect([error.name, error.outOfMemory]).toEqual(['TraceProcessorError', true])
  expect(error.message.split('\n')).toEqual([
    'trace_processor is out of memory (it holds 64 MiB and was refused more)',
    expect.stringMatching(/^hint: convert less of the log/),
  ])
  const later = await failure(() => tp.query('SELECT 1'))
  expect([later.outOfMemory, later.message.endsWith(after)]).toEqual([true, true])
})

test('a module that is something else', async () => {
  const nothing = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]))
  expect((await failure(() => WasmHost.start(nothing))).message).toBe(
    'this WASM module is not a trace_processor: it exports no trace_processor_rpc_init',
  )
})
