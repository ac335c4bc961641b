import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { analyze, convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { begun, joined, read } from './ggtrace-logs.ts'

/** Calls by turns from several threads: a log has them block by block, each thread's for itself. */
test('calls of several threads come in order and into one row, whichever block has them', async () => {
  const calls = fc.array(fc.record({ thread: fc.nat({ max: 3 }), tokens: fc.constantFrom(1, 1, 1, 7) }), {
    minLength: 1,
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(calls, fc.integer({ min: 30, max: 80 }), async (made, blockWords) => {
      const writer = begun({}, 8 * blockWords)
      const threads = [0, 1, 2, 3].map((n) => writer.thread(100 + n))
      const graph = writer.graph('CPU', [])
      writer.type(0, 'f32')
      const tensor = writer.tensor({ name: 'x' })
      for (const [call, { thread, tokens }] of made.entries()) {
        const startNs = 1000 * call
        const host = threads[thread]!
        host.copy({ what: 'set', startNs: startNs + 5, endNs: startNs + 6, bytes: 4, tensor })
        host.graph({ startNs: startNs + 10, endNs: startNs + 900, graph, call })
        host.token({ startNs, endNs: startNs + 1000, call, tokens })
      }
      writer.end(1e6)
      const pieces: Uint8Array[] = []
      for await (const piece of convert({ name: 'log', source: writer.take() })) pieces.push(piece)
      const trace = await openTrace(joined(pieces))
      const { rows } = trace.query(
        'SELECT t.name, group_concat(s.name) FROM slice s JOIN track t ON t.id = s.track_id ' +
          "WHERE t.name GLOB 'Tokens*' OR t.name GLOB 'Graphs*' OR t.name GLOB 'Copies*' GROUP BY 1 ORDER BY 1, s.ts",
      )
      trace.close()
      let decodes = 0
      const names = made.map(({ tokens }) => (tokens === 1 ? `decode ${++decodes}` : 'prefill (7 tokens)'))
      expect(rows.map(([track]) => track)).toEqual(['Copies', 'Graphs', 'Tokens'])
      expect(String(rows[2]![1]).replace(/ · [^,]*/g, '')).toBe(names.join(','))
    }),
    { numRuns: 15 },
  )
})

test('sequences that are decoded in parallel are no prefill', async () => {
  const writer = begun()
  const host = writer.thread(1)
  const spans = [3, 1, 20].map((sequence) => ({ sequence, position: sequence === 1 ? -1 : 9, tokens: 1 }))
  host.token({ startNs: 1, endNs: 2, call: 0, tokens: 3, spans })
  host.token({ startNs: 3, endNs: 4, call: 1, tokens: 2 })
  writer.end(100)
  const log = writer.take()
  const { of, issues } = await read(log)
  expect(issues).toEqual([])
  expect(of('token').map(({ phase, batch }) => [phase, batch?.spans])).toEqual([
    ['decode', spans],
    ['prefill', []],
  ])
  const trace = await openTrace(convert({ name: 'log', source: log }))
  expect(
    trace.query("SELECT name, EXTRACT_ARG(arg_set_id, 'debug.sequences') FROM slice WHERE category = 'token'").rows,
  ).toEqual([
    ['decode 1 (3 tokens) · 1 ns', '3@9 1 (1 token) 20@9'],
    ['prefill (2 tokens) · 1 ns', null],
  ])
  trace.close()
})

describe('states of threads in a log without end', () => {
  /** A thread is blocked at 2 000 ns, another changes its state at 3 000; then a second computes. The recorder's thread had no CPU to write more. */
  const log = (hasEnd: boolean) => {
    const writer = begun()
    writer.type(0, 'f32')
    const thread = writer.thread(701, 0)
    thread.state(1000, 701, 0, 'running')
    thread.state(2000, 701, 0, 'blocked')
    thread.state(3000, 702, 1, 'running')
    thread.state(3000, 703, 1, 'ended')
    thread.operator({ tensor: writer.tensor({ name: 'late' }), startNs: 1_000_000, endNs: 2_000_000 })
    if (hasEnd) writer.end(2_500_000)
    return hasEnd ? writer.take() : writer.takeKilled()
  }
  const ends = async (bytes: Uint8Array) => (await read(bytes)).of('state').filter(({ state }) => state === 'off')

  test('are unknown from the last change on', async () => {
    expect(await ends(log(false))).toMatchObject([
      { tid: 701, atNs: 3000 },
      { tid: 702, atNs: 3000 },
    ])
    const { workers } = await analyze({ name: 'log', source: log(false) })
    expect(workers).toMatchObject([{ worker: 0, operator_time_ns: 1_000_000, off_cpu_ns: 0 }])
  })

  test('are unknown from a loss of states on, until the next change', async () => {
    const writer = begun()
    const thread = writer.thread(701, 0)
    thread.state(1000, 701, 0, 'running')
    thread.state(2000, 701, 0, 'blocked')
    thread.loss(3000, 5, writer.name('thread states'))
    thread.state(9000, 701, 0, 'runnable')
    writer.end(10_000)
    expect((await read(writer.take())).of('state').map(({ state, atNs }) => [state, atNs])).toEqual([
      ['running', 1000],
      ['blocked', 2000],
      ['off', 3000],
      ['runnable', 9000],
    ])
  })

  test('last until the end, where there is one', async () => {
    expect(await ends(log(true))).toEqual([])
    const { workers } = await analyze({ name: 'log', source: log(true) })
    expect(workers).toMatchObject([{ worker: 0, operator_time_ns: 1_000_000, off_cpu_ns: 1_000_000 }])
  })
})
