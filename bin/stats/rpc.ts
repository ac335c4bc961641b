import type { Analysis } from '../../lib/cli.ts'
import { count, duration, plural, size } from '../units.ts'
import { number, type Section, type StatsTable, tableOf, text } from './section.ts'

type Peer = NonNullable<Analysis['rpc']>['peers'][number]

/** Other processes, and commands of one, that are shown. */
const PEERS_MAX = 4
const COMMANDS_MAX = 8

/** Messages of ggml-rpc with other processes; undefined without any. */
export function rpcSection({ rpc }: Analysis): Section | undefined {
  if (!rpc) return undefined
  const shown = rpc.peers.slice(0, PEERS_MAX)
  const more = rpc.peers.length - shown.length
  const missing = shown.filter((peer) => peer.missing > 0)
  return {
    title: 'messages of ggml-rpc',
    tables: shown.map(commandsTable),
    lines: [
      ...missing.map((peer) => `${titleOf(peer)}: ${plural(peer.missing, 'message')} missing in the log`),
      ...(more > 0 ? [`with ${plural(more, 'more process')}`] : []),
    ],
  }
}

const titleOf = ({ side, other }: Peer) =>
  `${side === 'client' ? 'to the server' : 'from clients on'} ${other || '(unknown address)'}`

const commandsTable = (peer: Peer): StatsTable => ({
  title: titleOf(peer),
  ...tableOf(peer.commands, { max: COMMANDS_MAX }, [
    text('command', ({ command }) => command),
    number('messages', ({ messages }) => count(messages)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number(peer.side === 'client' ? 'waited' : 'worked', ({ between_ns }) => duration(between_ns)),
    number('longest', ({ longest_ns }) => duration(longest_ns)),
    number('requests', ({ request_bytes }) => size(request_bytes)),
    number('answers', ({ answer_bytes }) => size(answer_bytes)),
  ]),
})
