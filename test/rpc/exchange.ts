import { GgtraceWriter } from '../../lib/core.ts'
import { convert, type Input, type Summary } from '../../lib/index.ts'
import { randomOf } from '../../lib/model/random.ts'
import { ORIGIN_NS } from '../read/ggtrace-logs.ts'

/** Logs of a client and of servers of ggml-rpc, with known clocks. */

/** Numbers of commands. */
export const [GET_TENSOR, GRAPH_COMPUTE] = [8, 10]

export interface Exchange {
  readonly messages?: number
  /** Between the begins of messages. */
  readonly gapNs?: number
  /** A message arrives so long after it was sent, and up to twice as long. */
  readonly latencyNs?: number
  /** The server's clock is so far ahead of the client's. */
  readonly offsetNs?: bigint
  /** By so much it is faster. */
  readonly drift?: number
  readonly isLost?: (side: 'client' | 'server', number: number) => boolean
  /** The end of the connection. */
  readonly address?: string
  /** Of the first request's data. */
  readonly bytes?: number
  readonly seed?: number
  /** Facts of the two processes. */
  readonly facts?: readonly [client: Record<string, string>, server: Record<string, string>]
}

const OTHER_MACHINES = [{ boot_id: 'a' }, { boot_id: 'b' }] as const
const CLOCKS = { monotonic: ORIGIN_NS, boottime: ORIGIN_NS, realtime: 1_763_000_000_000_000_000n }

/** Every third message is a graph that is computed, without an answer; the others ask for its results. */
export function exchange(options: Exchange = {}): { readonly client: Uint8Array; readonly server: Uint8Array } {
  const { messages = 30, gapNs = 1e6, latencyNs = 20_000, offsetNs = 0n, drift = 0, isLost = () => false } = options
  const { address = '10.0.0.1:40000', bytes = 100, seed = 1, facts = OTHER_MACHINES } = options
  const random = randomOf(seed)
  const late = () => Math.round(latencyNs * (1 + random()))
  const sides = (['client', 'server'] as const).map((side, i) => {
    const originNs = side === 'client' ? ORIGIN_NS : ORIGIN_NS + offsetNs
    const writer = new GgtraceWriter({ originNs })
    writer.run(facts[i]!, { ...CLOCKS, monotonic: originNs })
    const ends = { client: writer.name(address), server: writer.name('10.0.0.2:50052') }
    const thread = writer.thread(side === 'client' ? 100 : 200)
    const clock = (ns: number) => Math.round(side === 'client' ? ns : ns * (1 + drift))
    const write = (number: number, times: readonly number[]) => {
      if (isLost(side, number)) return
      const [startNs, sentNs, answeredNs, endNs] = times.map(clock) as [number, number, number, number]
      const answer = number % 3 === 0 ? {} : { answeredNs, answerBytes: 4096 }
      const last = number % 3 === 0 && side === 'client' ? sentNs : endNs
      const command = number % 3 === 0 ? GRAPH_COMPUTE : GET_TENSOR
      thread.rpc({
        side,
        ...ends,
        number,
        command,
        startNs,
        sentNs,
        endNs: last,
        requestBytes: bytes + number,
        ...answer,
      })
    }
    const take = () => {
      writer.end(clock(1e6 + messages * gapNs))
      return writer.take()
    }
    return { write, take }
  })
  for (let i = 0; i < messages; i++) {
    const startNs = 1e6 + i * gapNs
    const arrivedNs = startNs + late()
    const answeredNs = arrivedNs + 50_000
    sides[1]!.write(i, [arrivedNs, arrivedNs + 3000, answeredNs, answeredNs + 2000])
    const backNs = answeredNs + late()
    sides[0]!.write(i, [startNs, startNs + 4000, backNs, backNs + 2000])
  }
  return { client: sides[0]!.take(), server: sides[1]!.take() }
}

export const inputs = ({ client, server }: { readonly client: Uint8Array; readonly server: Uint8Array }): Input[] => [
  { name: 'client.ggtrace', source: client },
  { name: 'server.ggtrace', source: server },
]

/** The summaries of a conversion. */
export async function summariesOf(all: readonly Input[]): Promise<Summary[]> {
  const conversion = convert(all)
  for (;;) {
    const next = await conversion.next()
    if (next.done) return next.value
  }
}
