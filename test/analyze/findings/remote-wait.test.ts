import { describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, type EventInput, type TraceEvent } from '../../../lib/index.ts'
import { decodes, type MadeCall, madeRun } from './made-run.ts'

/** Calls that wait for a server of ggml-rpc, alone and next to a device of the same machine. */

const SERVER = '10.0.0.2:50052'
const REMOTE = `RPC0[${SERVER}]`
const step = { name: 'ffn_up-0', op: 'MUL_MAT', ns: [100_000] }
const callsOn = (backend: string, ns: number) => decodes(20, [step], { backend: [backend, ns] })
const attributes = { 'cpus.allowed': '4' }

/** With a message for each graph of the server, of `side`; `more`: messages of other clients. */
const withMessages = (calls: readonly MadeCall[], side: 'client' | 'server' = 'client', more = 0): EventInput => {
  const run = madeRun({ calls, attributes })
  return {
    ...run,
    async *events(names) {
      const [command, client, server] = ['GRAPH_COMPUTE', '10.0.0.1:40000', SERVER].map((name) => names.id(name))
      let number = 0
      const message = (startNs: number, endNs: number): TraceEvent => ({
        ...{ kind: 'rpc', side, command: command!, client: client!, server: server!, number: number++, tid: 900 },
        ...{ startNs, sentNs: startNs, answeredNs: endNs, endNs, requestBytes: 100, answerBytes: 10, call: undefined },
      })
      const messages: TraceEvent[] = []
      for await (const batch of run.events(names)) {
        for (const event of batch) {
          if (event.kind !== 'graph' || names.text(event.backend) !== REMOTE) continue
          messages.push(message(event.startNs, event.endNs))
          for (let i = 0; i < more; i++) messages.push(message(event.endNs, event.endNs))
        }
        yield side === 'client' ? batch : batch.filter(({ kind }) => kind === 'input')
      }
      // A thread of ggml-rpc sends them: its block of the log comes later.
      yield messages
    },
  }
}

const found = (analysis: Analysis) => analysis.findings.filter(({ rule }) => rule === 'remote-wait')
const MIXED = [...callsOn(REMOTE, 300_000), ...callsOn('CUDA0', 50_000)]

describe('with another device', () => {
  test('named by the time of messages within calls', async () => {
    const analysis = await analyze(withMessages(MIXED))
    expect(analysis.rpc!.in_calls).toEqual([{ phase: 'decode', time_ns: 20 * 300_000 }])
    const [first, ...others] = found(analysis)
    expect(others).toEqual([])
    expect(analysis.findings[0]).toBe(first)
    expect(first).toMatchObject({
      time_ns: 20 * 300_000,
      evidence: { phase: 'decode', backends: REMOTE, messages: 20 },
    })
    expect(first!.sentence).toMatch(/^55 % of decode waits for RPC0\[10\.0\.0\.2:50052\]: 150 µs of /)
  })

  test('not named without messages: the time of calls does not contain for which device they wait', async () => {
    expect(found(await analyze(madeRun({ calls: MIXED, attributes })))).toEqual([])
  })

  test('not named where messages take little', async () => {
    const calls = [...callsOn(REMOTE, 10_000), ...callsOn('CUDA0', 300_000)]
    expect(found(await analyze(withMessages(calls)))).toEqual([])
  })
})

describe('with the log of the server', () => {
  const calls = callsOn(REMOTE, 300_000)
  const both = (more: number) => analyze([withMessages(calls), withMessages(calls, 'server', more)])

  test('how much of it the server computes', async () => {
    expect(found(await both(0))[0]!.sentence).toMatch(
      /; its server computes 100 % of such time, messages and their transfer take 0 %$/,
    )
  })

  test('not how much, where it also computed graphs of others', async () => {
    expect(found(await both(1))[0]!.sentence).toMatch(/is not known, as its log does not contain the same graphs$/)
  })
})
