import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { randomOf } from '../../lib/model/random.ts'
import { type Bound, estimateLine } from '../../lib/pipeline/clocks/line.ts'
import { type Exchange, exchange, inputs, summariesOf } from '../rpc/exchange.ts'

/** Clocks of two machines, related by the messages of ggml-rpc between them. */

describe('a line between bounds', () => {
  test('is right within its error at both ends, whatever the offset, the drift and the latencies are', () => {
    const runs = fc.record({
      offset: fc.integer({ min: -1e15, max: 1e15 }),
      drift: fc.double({ min: -2e-4, max: 2e-4, noNaN: true }),
      bounds: fc.array(
        fc.record({
          at: fc.integer({ min: 0, max: 1e12 }),
          late: fc.integer({ min: 0, max: 1e6 }),
          isUpper: fc.boolean(),
        }),
        { minLength: 2, maxLength: 60 },
      ),
    })
    fc.assert(
      fc.property(runs, ({ offset, drift, bounds }) => {
        const truth = (ns: number) => offset + drift * ns
        const of = (wanted: boolean): Bound[] =>
          bounds
            .filter(({ isUpper }) => isUpper === wanted)
            .map(({ at, late }) => ({ atNs: at, ns: truth(at) + (wanted ? late + 1 : -late - 1) }))
        const line = estimateLine(of(false), of(true))
        if (of(false).length === 0 || of(true).length === 0) return expect(line).toBeUndefined()
        for (const [ns, further] of [
          [line!.fromNs, 0],
          [line!.toNs, 0],
          [line!.toNs + 1e9, line!.beyond * 1e9],
        ] as const) {
          const found = line!.offsetNs + line!.drift * (ns - line!.fromNs)
          expect(Math.abs(found - truth(ns))).toBeLessThanOrEqual(line!.boundNs + further + 1)
        }
      }),
    )
  })

  test('is none where bounds exclude all', () => {
    const at = (atNs: number, ns: number) => ({ atNs, ns })
    expect(estimateLine([at(0, 10)], [at(0, 9)])).toBeUndefined()
    expect(estimateLine([at(0, 0), at(1e9, 5e6)], [at(0, 1), at(1e9, 5e6 + 1)])).toBeUndefined() // 5000 ppm
  })
})

/** What the summary of a server's log contains, and how far it is from the truth. */
async function related(options: Exchange) {
  const summaries = await summariesOf(inputs(exchange(options)))
  const { how, offset_ns, bound_ns } = summaries[1]!.relation!
  return { how, error: Math.abs(Number(BigInt(offset_ns) + (options.offsetNs ?? 0n))), bound: bound_ns! }
}

describe('logs of a client and of a server on another machine', () => {
  test('are on one clock: the offset is right within the stated error, in 50 of 50', async () => {
    const random = randomOf(52)
    let most = 0
    for (let run = 0; run < 50; run++) {
      const offsetNs = BigInt(Math.round(random() * 1e17))
      const share = random()
      const lost = randomOf(run)
      const options = {
        offsetNs,
        seed: run,
        messages: 20 + Math.round(random() * 100),
        isLost: () => lost() > 0.3 + share,
      }
      const { how, error, bound } = await related(options)
      expect(how).toMatch(
        /^inferred from \d+ messages? of ggml-rpc that both inputs record; drift -?[\d.]+ ± [\d.]+ ppm$/,
      )
      expect(error).toBeLessThanOrEqual(bound)
      most = Math.max(most, bound)
    }
    expect(most).toBeLessThan(200_000) // latencies are 20 to 40 µs each way
  })

  test('have the drift of their clocks, in a run of minutes', async () => {
    const { how, error, bound } = await related({ drift: 40e-6, messages: 300, gapNs: 1e9, offsetNs: 77n })
    expect(how).toMatch(/; drift -(39\.9|40\.0) ± 0\.\d ppm$/)
    expect(error).toBeLessThanOrEqual(bound)
    expect(bound).toBeLessThan(60_000)
  })

  test('are refused without messages of both, and where those are of other connections', async () => {
    const refused = /^UsageError: server\.ggtrace: is of another boot or machine/
    const { client } = exchange()
    const { server } = exchange({ address: '10.0.0.3:40000' })
    await expect(summariesOf(inputs({ client, server })).catch(String)).resolves.toMatch(refused)
    const oneSided = exchange({ isLost: (side) => side === 'client' })
    await expect(summariesOf(inputs(oneSided)).catch(String)).resolves.toMatch(refused)
    // The same address and port, as 127.0.0.1 of two machines, but other messages.
    const mixed = { client, server: exchange({ bytes: 7000 }).server }
    await expect(summariesOf(inputs(mixed)).catch(String)).resolves.toMatch(refused)
  })

  test('may be of several servers: the client comes first, whatever the names are', async () => {
    const one = exchange({ offsetNs: 5_000_000_000_000n })
    const all = [
      { name: 'a-server.ggtrace', source: one.server },
      { name: 'z-client.ggtrace', source: one.client },
    ]
    const [server, client] = await summariesOf(all)
    expect(client!.relation).toBeUndefined()
    expect(Math.abs(Number(BigInt(server!.relation!.offset_ns) + 5_000_000_000_000n))).toBeLessThanOrEqual(
      server!.relation!.bound_ns!,
    )
  })

  test('of one boot are on the same clock; of two time namespaces of it they are not', async () => {
    const boot = { boot_id: 'a' }
    const same = await summariesOf(inputs(exchange({ facts: [boot, boot] })))
    expect(same[1]!.relation).toMatchObject({ how: 'the same clock, of the same boot', offset_ns: '0', bound_ns: 0 })
    const namespace = { ...boot, time_namespace: 'time:[4026532571]' }
    const { how, error, bound } = await related({ facts: [boot, namespace], offsetNs: 3_000_000_000n })
    expect(how).toMatch(/^inferred from 30 messages/)
    expect(error).toBeLessThanOrEqual(bound)
  })
})

test('messages that one side lost are drawn, and break nothing', async () => {
  const summaries = await summariesOf(inputs(exchange({ isLost: (side, number) => side === 'server' && number > 3 })))
  expect(summaries.map(({ drawn }) => drawn)).toEqual([30, 4])
})
