import { isRemote } from '../../model/backends.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { GraphEvent, Phase, RpcEvent, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { otherEnd } from '../../model/rpc-events.ts'
import { Intervals } from '../common/intervals.ts'
import type { Statistic } from '../common/statistic.ts'
import type { RpcCommandFigures, RpcFigures, RpcPeer } from './figures.ts'

/** Connections of an input whose numbers of messages are followed. */
const CONNECTIONS_MAX = 4096
/** Other processes with figures of their own. */
const PEERS_MAX = 64
/** Times of calls and messages that are held: 16 bytes each. */
const HELD_MAX = 1 << 20

type Command = { -readonly [K in keyof Omit<RpcCommandFigures, 'command'>]: number }

interface Peer {
  readonly side: RpcEvent['side']
  readonly other: string
  readonly commands: Map<number, Command>
}

interface Connection {
  readonly peer: Peer
  messages: number
  /** Number of its last message. */
  last: number
}

const newCommand = (): Command => ({
  ...{ messages: 0, request_bytes: 0, answer_bytes: 0, time_ns: 0, longest_ns: 0, between_ns: 0 },
})

/** Sums up messages of ggml-rpc by the other process and by command, and a client's within calls by phase. */
export class RpcStatistic implements Statistic<{ readonly rpc: RpcFigures | null }, 'rpc' | 'token' | 'graph'> {
  readonly kinds = ['rpc', 'token', 'graph'] as const
  private readonly connections = new Map<string, Connection>()
  private readonly peers = new Map<string, Peer>()
  private leftOut = 0
  /** Times of a client's messages, and of calls from the first graph run of another process on. */
  private readonly asking = new Intervals()
  private readonly calls = new DefaultMap<Phase, Intervals>(() => new Intervals())
  private held = 0
  private hasRemote = false

  constructor(private readonly names: Names) {}

  event(event: RpcEvent | TokenEvent | GraphEvent): void {
    if (event.kind === 'graph') {
      this.hasRemote ||= isRemote(this.names.text(event.backend))
      return
    }
    if (event.kind === 'token') {
      if (this.hasRemote) this.hold(this.calls.of(event.phase), event)
      return
    }
    const { side, startNs, sentNs, answeredNs, endNs } = event
    const connection = this.connectionOf(event)
    if (!connection) {
      this.leftOut++
      return
    }
    connection.messages++
    connection.last = Math.max(connection.last, event.number)
    const command = getOrMake(connection.peer.commands, event.command, newCommand)
    command.messages++
    command.request_bytes += event.requestBytes
    command.answer_bytes += event.answerBytes
    command.time_ns += endNs - startNs
    command.longest_ns = Math.max(command.longest_ns, endNs - startNs)
    const betweenNs = (answeredNs ?? (side === 'server' ? endNs : sentNs)) - sentNs
    command.between_ns += betweenNs
    if (side === 'client') this.hold(this.asking, event)
  }

  private hold(times: Intervals, { startNs, endNs }: { readonly startNs: number; readonly endNs: number }): void {
    if (this.held <= HELD_MAX && times.add(startNs, endNs)) this.held++
  }

  /** ggml-rpc may send on a thread of its own: its messages are within calls by their times. */
  private inCalls(): RpcFigures['in_calls'] {
    if (this.held > HELD_MAX) return null
    const asking = this.asking.merged()
    return [...this.calls].map(([phase, calls]) => ({ phase, time_ns: calls.merged().within(asking) }))
  }

  finish(): { readonly rpc: RpcFigures | null } {
    if (this.connections.size === 0) return { rpc: null }
    const peers = [...this.peers.values()].map((peer) => this.figuresOf(peer))
    return { rpc: { peers, left_out: this.leftOut, in_calls: this.inCalls() } }
  }

  private connectionOf(event: RpcEvent): Connection | undefined {
    const { connections } = this
    const key = `${event.side} ${event.client} ${event.server}`
    const known = connections.get(key)
    if (known) return known
    const peer = this.peerOf(event)
    if (!peer || connections.size >= CONNECTIONS_MAX) return undefined
    const connection = { peer, messages: 0, last: -1 }
    connections.set(key, connection)
    return connection
  }

  private peerOf(event: RpcEvent): Peer | undefined {
    const { peers } = this
    const [{ side }, other] = [event, otherEnd(event, this.names)]
    const key = `${side} ${other}`
    if (peers.size >= PEERS_MAX && !peers.has(key)) return undefined
    return getOrMake(peers, key, () => ({ side, other, commands: new Map() }))
  }

  private figuresOf(peer: Peer): RpcPeer {
    const list = [...peer.commands]
      .map(([command, figures]) => ({ command: this.names.text(command), ...figures }))
      .sort((a, b) => b.time_ns - a.time_ns)
    const sum = (key: 'messages' | 'request_bytes' | 'answer_bytes' | 'time_ns') =>
      list.reduce((total, command) => total + command[key], 0)
    const connections = [...this.connections.values()].filter((connection) => connection.peer === peer)
    const missing = connections.reduce((total, { last, messages }) => total + Math.max(0, last + 1 - messages), 0)
    return {
      ...{ side: peer.side, other: peer.other, connections: connections.length, messages: sum('messages'), missing },
      ...{ request_bytes: sum('request_bytes'), answer_bytes: sum('answer_bytes'), time_ns: sum('time_ns') },
      commands: list,
    }
  }
}
