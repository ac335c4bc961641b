import { type Bounds, impossible, orUnknown, wrongAmount, wrongNumber, wrongSpan, wrongTime } from './bounds.ts'
import type { Names } from './names.ts'

/** Messages of a connection. */
const MESSAGES_MAX = 2 ** 32 - 1

/**
 * A message of ggml-rpc, as one of the two processes saw it: a command with its data and, of most commands, the answer. `startNs`: a client
 * begins to send the request; a server has its first byte. `endNs`: the answer is received, or sent; without an answer, a client has sent the
 * request, and a server waits for the next message.
 */
export interface RpcEvent {
  readonly kind: 'rpc'
  readonly side: 'client' | 'server'
  /** Name of the command, as in ggml-rpc's protocol: `GRAPH_COMPUTE`; `command 40` of a later version. */
  readonly command: number
  /** Names of the ends of the connection: address and port, `192.168.0.2:50052`; 0 = not known. Both processes record the same ones. */
  readonly client: number
  readonly server: number
  /** Number of the message in the connection, from 0. */
  readonly number: number
  readonly startNs: number
  /** The whole request is sent, or received. */
  readonly sentNs: number
  /** A client has the first byte of the answer; a server begins to send it. undefined: the command has no answer. */
  readonly answeredNs: number | undefined
  readonly endNs: number
  /** Data of the request and of the answer, in bytes, without their sizes. */
  readonly requestBytes: number
  readonly answerBytes: number
  readonly tid: number
  /** The call that a client was in. */
  readonly call: number | undefined
}

/** The other process of a message: a server by its address; a client, whose connections have a port each, by its host alone. Empty: not known. */
export function otherEnd({ side, client, server }: Pick<RpcEvent, 'side' | 'client' | 'server'>, names: Names): string {
  return side === 'client' ? names.text(server) : names.text(client).replace(/:\d+$/, '')
}

/** Its ranges. */
export const RPC_BOUNDS: Bounds<RpcEvent> = {
  rpc: (event) =>
    wrongSpan(event.startNs, event.endNs) ??
    wrongTime(event.sentNs) ??
    (event.answeredNs === undefined ? undefined : wrongTime(event.answeredNs)) ??
    wrongOrder(event) ??
    wrongNumber('number', event.number, MESSAGES_MAX) ??
    orUnknown('tid', event.tid) ??
    wrongAmount(event),
}

function wrongOrder({ startNs, sentNs, answeredNs = sentNs, endNs }: RpcEvent) {
  if (startNs <= sentNs && sentNs <= answeredNs && answeredNs <= endNs) return undefined
  const expected = 'a request that is sent before its answer'
  return impossible('sentNs', expected, `${startNs}, ${sentNs}, ${answeredNs}, ${endNs} ns`)
}
