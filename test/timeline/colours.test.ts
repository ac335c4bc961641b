import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { UNKNOWN } from '../../lib/core.ts'
import { convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'

/** The text from which the Perfetto UI derives a slice's colour, read as it reads it (trace_processor_slice_track.ts). */

const COLOUR = "extract_arg(arg_set_id, 'correlation_id')"

let trace: OpenTrace
beforeAll(async () => {
  trace = await openTrace(convert(inputOf('examples/moe.ggtrace.gz')))
})
afterAll(() => trace.close())

test('a phase and its calls are alike', () => {
  expect(trace.problems()).toEqual([])
  const { rows } =
    trace.query(`select ${COLOUR}, category, count(*), group_concat(distinct substr(name, 1, 7)) from slice
    where category in ('phase', 'token') group by 1, 2 order by 1, 2`)
  expect(rows).toEqual([
    ['decode', 'phase', 1, 'decode'],
    ['decode', 'token', 8, 'decode '],
    ['load', 'phase', 1, 'load'],
    ['prefill', 'phase', 1, 'prefill'],
    ['prefill', 'token', 1, 'prefill'],
  ])
})

test('a set of experts is alike in all layers, whatever the order of the choice', () => {
  const { rows } = trace.query(`select ${COLOUR}, extract_arg(arg_set_id, 'debug.expert_set'), name, category from slice
    where category = 'expert' or (${COLOUR} glob '[0-9]*')`)
  expect(rows).toHaveLength(54)
  for (const [colour, set, name, category] of rows as [string, string, string, string][]) {
    expect([colour, category]).toEqual([set, 'expert'])
    expect(colour === null).toBe(name.includes('tokens'))
  }
})

test('waits for other workers are pale; operators and open barriers have the colours of their names', () => {
  const { rows } = trace.query(`select category, ${COLOUR}, name glob 'wait for worker [01]', count(*) > 10 from slice
    where category in ('barrier', 'operator') group by 1, 2, 3 order by 1, 2, 3`)
  expect(rows).toEqual([
    ['barrier', null, 0, 1],
    ['barrier', 'nothing', 1, 1],
    ['operator', null, 0, 1],
  ])
})

test('pauses are pale, and calls that failed are alike', async () => {
  const batch = { areAllOutput: false, isLeftOut: false, spans: [], context: 1 }
  const call = (index: number, startNs: number, result: number): TraceEvent => ({
    ...UNKNOWN.token,
    call: index,
    phase: 'decode',
    ...{ tokens: 1, startNs, endNs: startNs + 5e6, tid: 1 },
    batch: { function: 'llama_decode', ...batch, result },
  })
  const calls: EventInput = {
    name: 'calls',
    events: () => [
      [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 5n, attributes: {} },
        ...[call(0, 0, 0), call(1, 5e6, 1), call(2, 500e6, 0)],
      ],
    ],
  }
  const short = await openTrace(convert(calls))
  expect(
    short.query(`select name, ${COLOUR} from slice where category in ('phase', 'token') order by ts, id`).rows,
  ).toEqual(
    expect.arrayContaining([
      ['decode 1 · 5 ms', 'decode'],
      ['decode failed (1: no slot in the KV cache)', 'failed'],
      ['idle', 'nothing'],
      ['decode 2 · 5 ms', 'decode'],
    ]),
  )
  short.close()
})
