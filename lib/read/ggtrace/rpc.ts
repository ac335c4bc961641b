import { RPC_COMMANDS } from '../../log/ggtrace-layout.ts'
import type { RpcEvent } from '../../model/rpc-events.ts'
import type { LogDefinitions } from './definitions.ts'
import { type LogClock, readNumber, readU64 } from './fields.ts'

interface Place {
  readonly atNs: number
  readonly tid: number
  readonly byte: number
}

/** The event of an RPC record that begins at `atNs`; undefined where another of its times is missing or impossible. */
export function readRpc(
  view: DataView,
  at: number,
  { atNs, tid, byte }: Place,
  definitions: LogDefinitions,
  clock: LogClock,
): RpcEvent | undefined {
  const [sentNs, answeredNs, endNs] = [12, 20, 28].map((place) => clock.read(view, at + place))
  const hasAnswer = view.getUint32(at + 20, true) !== 0 || view.getUint32(at + 24, true) !== 0
  if (sentNs === undefined || endNs === undefined || (hasAnswer && answeredNs === undefined)) return undefined
  const word = (i: number) => view.getUint32(at + 52 + 4 * i, true)
  const command = RPC_COMMANDS[word(1)] ?? `command ${word(1)}`
  const call = readNumber(view, at + 72)
  return {
    ...{ kind: 'rpc', side: word(2) === 1 ? 'server' : 'client', command: definitions.names.id(command) },
    ...{ client: definitions.name(word(3), byte), server: definitions.name(word(4), byte), number: word(0) },
    ...{ startNs: atNs, sentNs, answeredNs, endNs, requestBytes: readU64(view, at + 36) },
    ...{ answerBytes: readU64(view, at + 44), tid, call: call < 0 ? undefined : call },
  }
}
