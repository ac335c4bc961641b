import { getOrMake } from '../../model/default-map.ts'
import type { RpcEvent } from '../../model/rpc-events.ts'
import { plural } from '../../model/units.ts'
import { type Bound, estimateLine, type LineEstimate } from './line.ts'
import type { Relation } from './relation.ts'

/** Messages of a connection that are kept; with more, those whose numbers are multiples of a power of two. */
const MESSAGES_MAX = 1 << 14
/** Connections of an input whose messages are kept. */
const CONNECTIONS_MAX = 256
/** What clocks of two CPUs of a machine may differ by. */
const CLOCKS_NS = 100
/** Clocks that were set meanwhile, or that NTP slewed, are on no line: it may be so far from a bound. 1 ms. */
const SLACK_NS_MAX = 1e6
/** With a larger error, messages do not relate clocks: network connections answer sooner. 1 s. */
const BOUND_NS_MAX = 1e9

type Message = Pick<RpcEvent, 'command' | 'requestBytes' | 'startNs' | 'answeredNs'>

/** The messages of a connection, as one of its processes saw them; by number. */
class SideOfConnection {
  readonly messages = new Map<number, Message>()
  private step = 1

  see({ number, command, requestBytes, startNs, answeredNs }: RpcEvent): void {
    if (number % this.step !== 0) return
    this.messages.set(number, { command, requestBytes, startNs, answeredNs })
    if (this.messages.size <= MESSAGES_MAX) return
    this.step *= 2
    for (const kept of this.messages.keys()) if (kept % this.step !== 0) this.messages.delete(kept)
  }
}

/** What messages exclude of the offset from one input's times to another's. */
class Bounds {
  readonly lower: Bound[] = []
  readonly upper: Bound[] = []
  messages = 0

  /** A byte was sent at one time, and received at the other one, later. */
  add(sent: 'here' | 'there', hereNs: number, thereNs: number): void {
    const bound = { atNs: hereNs, ns: thereNs - hereNs }
    if (sent === 'here') this.upper.push(bound)
    else this.lower.push(bound)
  }

  estimate(): LineEstimate | undefined {
    for (let slack = CLOCKS_NS; slack <= SLACK_NS_MAX; slack *= 2) {
      const moved = (bounds: readonly Bound[], by: number) => bounds.map(({ atNs, ns }) => ({ atNs, ns: ns + by }))
      const found = estimateLine(moved(this.lower, -slack), moved(this.upper, slack))
      if (found) return found
    }
    return undefined
  }
}

/**
 * Messages of ggml-rpc that an input records, which relate its clock to that of the process on the other side: the first byte of a request is
 * received after it was sent, and so is the first byte of an answer.
 */
export class MessageSights {
  /** By the name of the client's end. */
  private readonly sides = {
    client: new Map<number, SideOfConnection>(),
    server: new Map<number, SideOfConnection>(),
  }

  get isEmpty(): boolean {
    return this.sides.client.size + this.sides.server.size === 0
  }

  see(event: RpcEvent): void {
    const sides = this.sides[event.side]
    if (event.client === 0 || (sides.size >= CONNECTIONS_MAX && !sides.has(event.client))) return
    getOrMake(sides, event.client, () => new SideOfConnection()).see(event)
  }

  /** The relation from times of `here` to times of this input; undefined: they have no messages in common, or these do not determine it. */
  relationOf(here: MessageSights): Relation | undefined {
    const bounds = new Bounds()
    for (const [client, its] of here.sides.server) addBounds(this.sides.client.get(client), its, 'there', bounds)
    for (const [client, its] of here.sides.client) addBounds(this.sides.server.get(client), its, 'here', bounds)
    const line = bounds.estimate()
    if (!line || line.boundNs > BOUND_NS_MAX) return undefined
    const { offsetNs, drift, fromNs, toNs, boundNs, beyond } = line
    const drifts = `drift ${(drift * 1e6).toFixed(1)} ± ${(beyond * 1e6).toFixed(1)} ppm`
    return {
      how: `inferred from ${plural(bounds.messages, 'message')} of ggml-rpc that both inputs record; ${drifts}`,
      ...{ shiftNs: Math.round(offsetNs), drift, driftFromNs: fromNs, boundNs: boundNs + 1 },
      beyond: { fromNs, toNs, perNs: beyond },
    }
  }
}

/** Adds the messages of one connection; `client`: which input is the client. */
function addBounds(
  mine: SideOfConnection | undefined,
  its: SideOfConnection,
  client: 'here' | 'there',
  bounds: Bounds,
): void {
  const pairs: [Message, Message][] = []
  for (const [number, message] of its.messages) {
    const other = mine?.messages.get(number)
    if (!other) continue
    // Connections of other processes may have the same address, as 127.0.0.1 of each machine.
    if (other.command !== message.command || other.requestBytes !== message.requestBytes) return
    pairs.push([message, other])
  }
  const server = client === 'here' ? 'there' : 'here'
  for (const [here, there] of pairs) {
    bounds.messages++
    bounds.add(client, here.startNs, there.startNs)
    if (here.answeredNs !== undefined && there.answeredNs !== undefined)
      bounds.add(server, here.answeredNs, there.answeredNs)
  }
}
