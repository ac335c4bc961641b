import { expect, test } from '@jest/globals'
import { type ConvertOptions, convert, GgtraceWriter, inputOf, openTrace } from '../../lib/index.ts'
import { drawn } from '../printing-sink.ts'

/** The time before the first call is a phase: `load`. */

const MS = 1e6
const LOG = 'examples/moe.ggtrace.gz'

test('the bundled log: the row Phase begins with the first allocation, and has no hole before the first call', async () => {
  const trace = await openTrace(convert(inputOf(LOG)))
  try {
    const [load, prefill] = trace.query(`select slice.name, ts, ts + dur, extract_arg(arg_set_id, 'debug.bytes'),
      extract_arg(arg_set_id, 'debug.inferred') from slice where category = 'phase' order by ts`).rows
    const [[first]] = trace.query('select min(ts) from counter').rows as [[number]]
    expect(load).toEqual(['load', first, prefill![1], 72_566_080, 'begin: first allocation of a backend buffer'])
  } finally {
    trace.close()
  }
})

interface Run {
  readonly allocations?: readonly number[]
  readonly first?: number
  readonly callNs?: number
}

const phasesOf = ({ allocations = [0, 2], first = 0, callNs = 20 * MS }: Run, options: ConvertOptions = {}) => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  for (const [i, ms] of allocations.entries()) {
    writer.buffer({ name: `CPU ${i}`, base: 4096, sizeBytes: 100, atNs: ms * MS })
  }
  const host = writer.thread(700)
  host.token({ startNs: callNs, endNs: callNs + 5 * MS, call: first, tokens: 4 })
  host.token({ startNs: callNs + 5 * MS, endNs: callNs + 6 * MS, call: first + 1, tokens: 1 })
  writer.end(callNs + 10 * MS)
  return drawn({ name: 'log', source: writer.take() }, options, { rows: /^Phase/, args: ['bytes', 'inferred'] })
}

test('from the first allocation to the first call', async () => {
  const [load] = await phasesOf({})
  expect(load).toBe('Phase | 0–20000000 load {bytes: 200, inferred: begin: first allocation of a backend buffer}')
})

test('a program that waits for its first request is idle, once it has allocated all', async () => {
  const [load, idle, prefill] = await phasesOf({ callNs: 500 * MS })
  expect(load).toMatch(/^Phase \| 0–2000000 load .*; end: last allocation before the first call\}$/)
  expect(idle).toBe('Phase | 2000000–500000000 idle')
  expect(prefill).toMatch(/^Phase \| 500000000–505000000 prefill/)
})

test.each<[string, Run, ConvertOptions]>([
  ['without allocations', { allocations: [] }, {}],
  ['of which the first call is not the first of the run', { first: 7 }, {}],
  ['of which the first call is not drawn', {}, { tokens: [1, 1] }],
])('no load for a log %s', async (_, run, options) => {
  expect((await phasesOf(run, options)).filter((line) => /load|idle/.test(line))).toEqual([])
})
