import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { Phase, RpcEvent, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { otherEnd } from '../../model/rpc-events.ts'
import type { Statistic } from '../common/statistic.ts'
import type { RpcCommandFigures, RpcFigures, RpcPeer } from './figures.ts'

/** Connections of an input whose numbers of messages are followed. */
const CONNECTIONS_MAX = 4096
/** Other processes with figures of their own. */
const PEERS_MAX = 64
/** Calls whose messages are summed up before their end is read. */
const OPEN_MAX = 4096

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
export class RpcStatistic implements Statistic<{ readonly rpc: RpcFigures | null }, 'rpc' | 'token'> {
  readonly kinds = ['rpc', 'token'] as const
  private readonly connections = new Map<string, Connection>()
  private readonly peers = new Map<string, Peer>()
  private leftOut = 0
  private readonly open = new DefaultMap<number, { ns: number }>(() => ({ ns: 0 }))
  private readonly phases = new DefaultMap<Phase, { ns: number }>(() => ({ ns: 0 }))

  constructor(private readonly names: Names) {}

  event(event: RpcEvent | TokenEvent): void {
    if (event.kind === 'token') return this.endCall(event)
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
    if (side !== 'client' || event.call === undefined) return
    this.open.of(event.call).ns += endNs - startNs
    if (this.open.size > OPEN_MAX) this.open.delete(this.open.keys().next().value!)
  }

  private endCall({ call, phase }: TokenEvent): void {
    const messages = this.open.get(call)
    if (!messages) return
    this.phases.of(phase).ns += messages.ns
    this.open.delete(call)
  }

  finish(): { readonly rpc: RpcFigures | null } {
    if (this.connections.size === 0) return { rpc: null }
    const peers = [...this.peers.values()].map((peer) => this.figuresOf(peer))
    const in_calls = [...this.phases].map(([phase, { ns }]) => ({ phase, time_ns: ns }))
    return { rpc: { peers, left_out: this.leftOut, in_calls } }
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
