import { expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { type ConvertOptions, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { drawn } from '../printing-sink.ts'

/** The time before the first call is a phase: `load`. */

const MS = 1e6
const LOG = 'test/recorded/outside-graphs.ggtrace.gz'

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

test('the stages of loading are in a row of their own, and nest', async () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  writer.buffer({ name: 'CPU', base: 4096, sizeBytes: 100, atNs: 3 * MS })
  const host = writer.thread(700)
  const name = writer.name('tiny.gguf')
  host.function({ what: 'read-header', startNs: 2 * MS, endNs: 3 * MS })
  host.function({ what: 'copy-weights', startNs: 4 * MS, endNs: 5 * MS, value: 100 })
  host.function({ what: 'load-model', name, startNs: 1 * MS, endNs: 6 * MS })
  host.function({ what: 'reserve', startNs: 7 * MS, endNs: 8 * MS })
  host.function({ what: 'create-context', startNs: 7 * MS, endNs: 9 * MS })
  host.function({ what: 'tokenize', startNs: 10 * MS, endNs: 11 * MS, value: 4 })
  host.token({ startNs: 20 * MS, endNs: 25 * MS, call: 0, tokens: 4 })
  host.function({ what: 'create-context', startNs: 30 * MS, endNs: 31 * MS })
  writer.end(40 * MS)
  const lines = await drawn(
    { name: 'log', source: writer.take() },
    {},
    { rows: /^(Phase|Loading)/, args: ['bytes', 'inferred'] },
  )
  expect(lines).toEqual([
    'Phase | 1000000–20000000 load {bytes: 100}',
    'Phase | 20000000–25000000 prefill {inferred: phase}',
    'Loading | 1000000–6000000 load-model: tiny.gguf',
    'Loading | 2000000–3000000 load-model: tiny.gguf > read-header',
    'Loading | 4000000–5000000 load-model: tiny.gguf > copy-weights {bytes: 100}',
    'Loading | 7000000–9000000 create-context',
    'Loading | 7000000–8000000 create-context > reserve',
  ])
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
