import { expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { drawn } from '../printing-sink.ts'

/** The Graphs row covers each call: its graphs, and what the program does between them. */

const US = 1000

/** Time of calls, and the part of it that no slice of the Graphs row covers. */
const COVERED = `with rows as (
    select ts, ts + dur as endTs from slice join track on track_id = track.id where track.name glob 'Graphs*'),
  calls as (select ts, ts + dur as endTs, dur from slice where category = 'token')
  select sum(dur), sum(dur - (select sum(min(r.endTs, c.endTs) - max(r.ts, c.ts)) from rows r
    where r.ts < c.endTs and r.endTs > c.ts)) from calls c`

test.each([
  ['examples/moe.ggtrace.gz', 64_799_845],
  ['test/fixtures/profinfer-csv/moe-2threads.csv.gz', 38_617_166],
])('%s: less than 2 %% of the time of calls is unexplained', async (path, callsNs) => {
  const trace = await openTrace(convert(inputOf(path)))
  try {
    const [[calls, unexplained]] = trace.query(COVERED).rows as [[number, number]]
    expect(calls).toBe(callsNs)
    expect(unexplained / calls).toBeLessThan(0.02)
    const inferred = trace.query(`select distinct name, extract_arg(arg_set_id, 'debug.inferred') from slice
      where category = 'outside' and name = 'outside graphs'`).rows
    expect(inferred).toEqual([['outside graphs', expect.stringMatching(/^time of the call in which no graph ran/)]])
  } finally {
    trace.close()
  }
})

type Draw = (thread: ReturnType<GgtraceWriter['thread']>, graph: number, writer: GgtraceWriter) => void

const rowOf = async (draw: Draw) => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  draw(writer.thread(700), writer.graph('CPU', []), writer)
  writer.end(1000 * US)
  const args = ['call', 'what', 'recorder_ns']
  return (await drawn({ name: 'log', source: writer.take() }, {}, { rows: /^(Graphs|Tokens)/, args })).filter(
    (line) => line.startsWith('Graphs') || line.includes('recorder_ns'),
  )
}

test('stretches before, between and after the graphs of a call, from a microsecond on', async () => {
  const lines = await rowOf((thread, graph) => {
    thread.graph({ startNs: 20 * US, endNs: 40 * US, graph, call: 0, split: 0 })
    thread.graph({ startNs: 40 * US + 999, endNs: 60 * US, graph, call: 0, split: 1 })
    thread.graph({ startNs: 65 * US, endNs: 70 * US, graph, call: 0, split: 2 })
    thread.token({ startNs: 10 * US, endNs: 80 * US, call: 0, tokens: 4 })
  })
  expect(lines).toEqual([
    'Graphs | 10000–20000 outside graphs {call: 0}',
    'Graphs | 20000–40000 CPU graph {call: 0}',
    'Graphs | 40999–60000 CPU graph {call: 0}',
    'Graphs | 60000–65000 outside graphs {call: 0}',
    'Graphs | 65000–70000 CPU graph {call: 0}',
    'Graphs | 70000–80000 outside graphs {call: 0}',
  ])
})

test('copies of the thread of the call are cut out, from a microsecond on; not those inside graphs, or of other calls', async () => {
  const copy = { bytes: 64, what: 'get' } as const
  const lines = await rowOf((thread, graph) => {
    thread.copy({ ...copy, startNs: 1 * US, endNs: 4 * US })
    thread.graph({ startNs: 20 * US, endNs: 40 * US, graph, call: 0 })
    thread.copy({ ...copy, startNs: 30 * US, endNs: 35 * US })
    thread.copy({ ...copy, startNs: 42 * US, endNs: 45 * US })
    thread.copy({ ...copy, startNs: 46 * US, endNs: 46 * US + 999 })
    thread.token({ startNs: 10 * US, endNs: 50 * US, call: 0, tokens: 4 })
  })
  expect(lines).toEqual([
    'Graphs | 10000–20000 outside graphs {call: 0}',
    'Graphs | 20000–40000 CPU graph {call: 0}',
    'Graphs | 40000–42000 outside graphs {call: 0}',
    'Graphs | 42000–45000 copy {what: get}',
    'Graphs | 45000–50000 outside graphs {call: 0}',
  ])
})

test('a warm-up has no number: its graphs are found by time; graphs without a call are drawn as they are', async () => {
  const lines = await rowOf((thread, graph) => {
    thread.graph({ startNs: 0, endNs: 5 * US, graph, call: -1 })
    thread.graph({ startNs: 20 * US, endNs: 40 * US, graph, call: -1 })
    thread.token({ startNs: 10 * US, endNs: 50 * US, kind: 'warm-up', call: -1, tokens: 2 })
    thread.graph({ startNs: 60 * US, endNs: 70 * US, graph, call: -1 })
  })
  expect(lines).toEqual([
    'Graphs | 0–5000 CPU graph',
    'Graphs | 10000–20000 outside graphs',
    'Graphs | 20000–40000 CPU graph',
    'Graphs | 40000–50000 outside graphs',
    'Graphs | 60000–70000 CPU graph',
  ])
})

test('a call without graphs has a slice only if it failed: otherwise they were not recorded', async () => {
  const lines = await rowOf((thread, graph) => {
    thread.token({ startNs: 0, endNs: 10 * US, call: 0, tokens: 1 })
    thread.graph({ startNs: 20 * US, endNs: 30 * US, graph, call: 1 })
    thread.token({ startNs: 20 * US, endNs: 30 * US, call: 1, tokens: 1 })
    thread.token({ startNs: 40 * US, endNs: 50 * US, call: 2, tokens: 1, result: 1 })
    thread.token({ startNs: 60 * US, endNs: 70 * US, call: 3, tokens: 1 })
  })
  expect(lines).toEqual(['Graphs | 20000–30000 CPU graph {call: 1}', 'Graphs | 40000–50000 outside graphs {call: 2}'])
})

test('parts of a call that were recorded; what comes before an allocation builds the graph; the cost of recording is the call’s', async () => {
  const lines = await rowOf((thread, graph) => {
    thread.part({ startNs: 15 * US, endNs: 20 * US, call: 0, what: 'allocate' })
    thread.copy({ startNs: 22 * US, endNs: 24 * US, bytes: 64, what: 'set' })
    thread.part({ startNs: 24 * US, endNs: 36 * US, call: 0, what: 'recorder' })
    thread.part({ startNs: 37 * US, endNs: 48 * US, call: 0, what: 'recorder' })
    thread.graph({ startNs: 48 * US, endNs: 60 * US, graph, call: 0 })
    thread.token({ startNs: 10 * US, endNs: 62 * US, call: 0, tokens: 4 })
    thread.part({ startNs: 72 * US, endNs: 80 * US, call: -1, what: 'reserve' })
    thread.part({ startNs: 82 * US, endNs: 82 * US + 999, call: -1, what: 'allocate' })
    thread.graph({ startNs: 84 * US, endNs: 90 * US, graph, call: -1 })
    thread.token({ startNs: 70 * US, endNs: 90 * US, kind: 'warm-up', call: -1, tokens: 2 })
    thread.part({ startNs: 102 * US, endNs: 105 * US, call: 1, what: 'allocate' })
    thread.graph({ startNs: 105 * US, endNs: 110 * US, graph, call: 1 })
    thread.token({ startNs: 100 * US, endNs: 110 * US, call: 1, tokens: 2, isByGraph: true })
  })
  expect(lines).toEqual([
    'Tokens | 10000–62000 prefill (4 tokens) · 52 µs {call: 0, recorder_ns: 23000}',
    'Graphs | 10000–15000 build graph {call: 0}',
    'Graphs | 15000–20000 allocate {call: 0}',
    'Graphs | 20000–22000 outside graphs {call: 0}',
    'Graphs | 22000–24000 copy {what: set}',
    'Graphs | 24000–36000 recorder: describe graph {call: 0}',
    'Graphs | 36000–37000 outside graphs {call: 0}',
    'Graphs | 37000–48000 recorder: describe graph {call: 0}',
    'Graphs | 48000–60000 CPU graph {call: 0}',
    'Graphs | 60000–62000 outside graphs {call: 0}',
    'Graphs | 70000–72000 build graph',
    'Graphs | 72000–80000 reserve memory',
    'Graphs | 80000–84000 outside graphs',
    'Graphs | 84000–90000 CPU graph',
    'Graphs | 100000–102000 outside graphs {call: 1}',
    'Graphs | 102000–105000 allocate {call: 1}',
    'Graphs | 105000–110000 CPU graph {call: 1}',
  ])
})

test('a wait for a backend is called by it: work of a GPU lasts beyond the graph that submitted it', async () => {
  const lines = await rowOf((thread, graph, writer) => {
    const wait = (startNs: number, endNs: number, backend: string) =>
      thread.function({ what: 'synchronize', name: writer.name(backend), startNs, endNs })
    thread.graph({ startNs: 20 * US, endNs: 22 * US, graph, call: 0, split: 0 })
    wait(30 * US, 60 * US, 'Vulkan0')
    wait(62 * US, 62 * US + 500, 'CPU')
    thread.token({ startNs: 10 * US, endNs: 70 * US, call: 0, tokens: 1 })
  })
  expect(lines.map((line) => line.replace(' {call: 0}', ''))).toEqual([
    'Graphs | 10000–20000 outside graphs',
    'Graphs | 20000–22000 CPU graph',
    'Graphs | 22000–30000 outside graphs',
    'Graphs | 30000–60000 waiting for Vulkan0',
    'Graphs | 60000–70000 outside graphs',
  ])
})

test('a graph of several records has the layers and ops of all of its nodes', async () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 1 << 17 })
  writer.type(0, 'f32')
  writer.op(1, 'ADD')
  writer.op(2, 'MUL')
  const tensorOf = (name: string, op: number) => writer.tensor({ name, op, type: 0, ne: [4], sources: [] })
  const [first, second] = [tensorOf('l_out-0', 1), tensorOf('l_out-9', 2)]
  // More than a function takes as arguments.
  const nodes = [...new Array<number>(150_000).fill(first), ...new Array<number>(20_000).fill(second)]
  const graph = writer.graph('CPU', nodes)
  const thread = writer.thread(700)
  thread.graph({ startNs: 100, endNs: 5000, graph, call: 0, backend: writer.name('CPU'), split: 0 })
  thread.token({ startNs: 0, endNs: 6000, call: 0, tokens: 1 })
  writer.end(1000 * US)
  const log = { name: 'made', source: writer.take() }
  const trace = await openTrace(convert(log, { detail: 'full' }))
  try {
    const [found] = trace.query(`select extract_arg(arg_set_id, 'debug.layers'), extract_arg(arg_set_id, 'debug.ops')
      from slice where category = 'graph'`).rows
    expect(found).toEqual(['0–9', 'ADD 150000, MUL 20000'])
  } finally {
    trace.close()
  }
  const { placement } = await analyze(log, { series: ['graph'] })
  expect(placement!.phases[0]!.by_backend[0]!.nodes).toBe(170_000)
})
