import { getOrMake } from '../../model/default-map.ts'
import { otherEnd, type RpcEvent } from '../../model/rpc-events.ts'
import { messageArrows } from '../arrow-ids.ts'
import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'
import type { Lanes } from '../tracks.ts'

const UNKNOWN_END = 'unknown address'

/**
 * Draws messages of ggml-rpc, a row for each other process; in each slice, when the request and the answer were sent and received. Arrows connect
 * the slices of the two processes, where both logs are in the trace.
 */
export class RpcArea {
  private readonly rows = new Map<string, Lanes>()

  constructor(private readonly context: TrackContext) {}

  take(event: RpcEvent): void {
    const { make, tree } = this.context
    const { side, startNs, sentNs, answeredNs, endNs, number, requestBytes, answerBytes, call } = event
    const arrows = messageArrows(tree.connection(event.client), number)
    const args = [make.name('connection', event.client), make.int('message', number)]
    args.push(make.int('request_bytes', requestBytes))
    if (answeredNs !== undefined) args.push(make.int('answer_bytes', answerBytes))
    if (call !== undefined) args.push(make.int('call', call))
    const label = labelOf(event.command, 'rpc', make.shown(args))
    const request = this.part(side === 'client' ? 'send' : 'receive', arrows.request)
    const inner = [{ startNs, endNs: sentNs, label: request }]
    if (answeredNs !== undefined) {
      const answer = this.part(side === 'client' ? 'receive' : 'send', arrows.answer)
      inner.push({ startNs: answeredNs, endNs, label: answer })
    }
    this.rowsOf(event).placeAround(startNs, endNs, label, inner)
  }

  /** A part of a message, with the end of its arrow. */
  private part(what: 'send' | 'receive', arrow: number) {
    const name = this.context.names.id(what)
    const isSent = what === 'send'
    return labelOf(name, 'rpc_part', undefined, undefined, isSent ? [arrow] : undefined, isSent ? undefined : [arrow])
  }

  private rowsOf(event: RpcEvent): Lanes {
    const { names, tracks } = this.context
    const other = otherEnd(event, names) || UNKNOWN_END
    const direction = event.side === 'client' ? 'to' : 'from'
    return getOrMake(this.rows, `${direction} ${other}`, () => {
      return tracks.lanes('rpcConnection', { nth: this.rows.size, direction, other }, true)
    })
  }
}
