import { describe, expect, test } from '@jest/globals'
import { type GgtraceToken, GgtraceWriter, type TokenEvent } from '../../lib/core.ts'
import { eventsOf, Names } from '../../lib/index.ts'
import { Inferred } from '../../lib/model/events.ts'

const MS = 1e6

/** The calls of a log with these records, with a function of sampling after the call of this number. */
async function callsOf(tokens: readonly Partial<GgtraceToken>[], sampledAfter = -1): Promise<TokenEvent[]> {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(7)
  for (const [i, token] of tokens.entries()) {
    const call = { startNs: i * MS, endNs: i * MS + 1000, call: i, tokens: 16, context: 1, ...token }
    host.token({ spans: [{ sequence: 0, position: 0, tokens: call.tokens }], ...call })
    const sample = { what: 'sample', name: 0, context: 1, sequence: -1, output: -1, value: -1 } as const
    if (i === sampledAfter) host.function({ ...sample, startNs: i * MS + 2000, endNs: i * MS + 3000 })
  }
  writer.end(tokens.length * MS)
  const calls: TokenEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: writer.take() }, new Names()))
    for (const event of batch) if (event.kind === 'token') calls.push(event)
  return calls
}

const phasesOf = async (...given: Parameters<typeof callsOf>) =>
  (await callsOf(...given)).map(({ call, phase }) => `${call} ${phase}`)

const warmUp = (call: number) => ({ call, kind: 'warm-up', isInferred: true }) as const

describe('a call that may be a warm-up', () => {
  const unsettled = { mayWarmUp: true }

  test('is one where a second record says so', async () => {
    const calls = await callsOf([unsettled, { ...warmUp(0), startNs: 0, endNs: 1000 }, { call: 1 }])
    expect(calls.map(({ call, phase }) => [call, phase])).toEqual([
      [0, 'warm-up'],
      [1, 'prefill'],
    ])
    expect(calls.map(({ inferred }) => inferred & Inferred.Phase)).toEqual([Inferred.Phase, Inferred.Phase])
  })

  test('of several calls', async () => {
    const records = [unsettled, unsettled, warmUp(0), warmUp(1), { call: 2 }]
    expect(await phasesOf(records)).toEqual(['0 warm-up', '1 warm-up', '2 prefill'])
  })

  test('is none where another call of its context follows, or the log ends', async () => {
    expect(await phasesOf([unsettled, {}, {}])).toEqual(['0 prefill', '1 prefill', '2 prefill'])
    expect(await phasesOf([unsettled, unsettled])).toEqual(['0 prefill', '1 prefill'])
  })

  test('is none where its output is sampled: a late record does not repeat it', async () => {
    expect(await phasesOf([unsettled, warmUp(0)], 0)).toEqual(['0 prefill'])
  })

  test('does not wait for calls of other contexts', async () => {
    expect(await phasesOf([unsettled, { context: 2 }, warmUp(0)])).toEqual(['1 prefill', '0 warm-up'])
  })
})
