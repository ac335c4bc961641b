import { expect, test } from '@jest/globals'
import { analyze, convert, eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { begun } from '../read/ggtrace-logs.ts'
import { exchange, GET_TENSOR, inputs } from './exchange.ts'

/** Messages of ggml-rpc in logs, and in the trace of a client and its server. */

test('RPC: a message, as its process saw it', async () => {
  const writer = begun()
  const thread = writer.thread(701)
  const ends = { client: writer.name('127.0.0.1:40000'), server: writer.name('127.0.0.1:50052') }
  const asked = { startNs: 1000, sentNs: 1100, answeredNs: 1500, endNs: 1600, requestBytes: 300, answerBytes: 4096 }
  thread.rpc({ side: 'client', ...ends, number: 0, command: GET_TENSOR, ...asked, call: 7 })
  thread.rpc({
    side: 'server',
    ...ends,
    number: 1,
    command: 40,
    startNs: 2000,
    sentNs: 2100,
    endNs: 2600,
    requestBytes: 8,
  })
  writer.end(3000)
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: writer.take() }, names)) events.push(...batch)
  const known = { client: names.id('127.0.0.1:40000'), server: names.id('127.0.0.1:50052'), tid: 701 }
  expect(events.filter(({ kind }) => kind === 'rpc' || kind === 'issue')).toEqual([
    { kind: 'rpc', side: 'client', command: names.id('GET_TENSOR'), number: 0, ...known, ...asked, call: 7 },
    {
      ...{ kind: 'rpc', side: 'server', command: names.id('command 40'), number: 1, ...known },
      ...{ startNs: 2000, sentNs: 2100, answeredNs: undefined, endNs: 2600, requestBytes: 8, answerBytes: 0 },
      call: undefined,
    },
  ])
})

test('a client and its server: rows, sizes, and arrows from what is sent to what is received', async () => {
  const boot = { boot_id: 'a' }
  const trace = await openTrace(convert(inputs(exchange({ messages: 30, facts: [boot, boot] }))))
  try {
    expect(trace.problems()).toEqual([])
    const rows = trace.query(`select track.name, count(*), sum(extract_arg(arg_set_id, 'debug.request_bytes')),
      sum(extract_arg(arg_set_id, 'debug.answer_bytes')) from slice join track on track.id = track_id
      where category = 'rpc' group by 1 order by 1`).rows
    const requested = 30 * 100 + (30 * 29) / 2
    expect(rows).toEqual([
      ['RPC from 10.0.0.1', 30, requested, 20 * 4096],
      ['RPC to 10.0.0.2:50052', 30, requested, 20 * 4096],
    ])
    const arrows =
      trace.query(`select a.name, b.name, whole.name, count(*), min(b.ts - a.ts) >= 20000, max(b.ts - a.ts) <= 50000
      from flow join slice a on a.id = slice_out join slice b on b.id = slice_in join slice whole on whole.id = a.parent_id
      join track x on x.id = a.track_id join track y on y.id = b.track_id
      where x.name != y.name group by 1, 2, 3 order by 1, 2, 3`).rows
    expect(arrows).toEqual([
      ['send', 'receive', 'GET_TENSOR', 40, 1, 1],
      ['send', 'receive', 'GRAPH_COMPUTE', 10, 1, 1],
    ])
  } finally {
    trace.close()
  }
})

test('figures: by connection and command, what a client waited and a server worked', async () => {
  const [client, server] = inputs(exchange({ messages: 30 }))
  const ofClient = (await analyze(client!)).rpc!
  expect(ofClient.left_out).toBe(0)
  const [to] = ofClient.peers
  expect(to).toMatchObject({
    side: 'client',
    other: '10.0.0.2:50052',
    connections: 1,
    messages: 30,
    answer_bytes: 20 * 4096,
  })
  expect(to!.commands.map(({ command, messages }) => [command, messages])).toEqual([
    ['GET_TENSOR', 20],
    ['GRAPH_COMPUTE', 10],
  ])
  // Two latencies of 20 to 40 µs, and 50 µs of the server; less the 4 µs of sending.
  const [asked, computed] = to!.commands
  expect(asked!.between_ns / 20 / 1e3).toBeGreaterThan(86)
  expect(asked!.between_ns / 20 / 1e3).toBeLessThan(126)
  expect([computed!.time_ns, computed!.between_ns, computed!.answer_bytes]).toEqual([40_000, 0, 0])
  const [from] = (await analyze(server!)).rpc!.peers
  expect(from).toMatchObject({ side: 'server', other: '10.0.0.1', messages: 30 })
  expect(from!.commands.map(({ command, between_ns }) => [command, between_ns])).toEqual([
    ['GET_TENSOR', 20 * 47_000],
    ['GRAPH_COMPUTE', 10 * 49_000],
  ])
  const [partial] = inputs(exchange({ messages: 30, isLost: (_, number) => number === 7 || number === 8 }))
  expect((await analyze(partial!)).rpc!.peers[0]).toMatchObject({ messages: 28, missing: 2 })
})
