import type { CopyEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { Lanes } from '../tracks.ts'

/** The Copies row: transfers into backend buffers, out of them, or between them. */
export class Copies {
  private readonly lanes: Lanes

  constructor(private readonly context: TrackContext) {
    this.lanes = context.tracks.lanes('copies', {}, true)
  }

  place({ what, startNs, endNs, bytes, from, to, tensor, tid }: CopyEvent): void {
    const { make, tensors, detail } = this.context
    const moved = tensors[tensor]
    const extra = [make.int('bytes', bytes)]
    if (moved) extra.push(make.arg('tensor', { name: moved.name }))
    if (from !== 0) extra.push(make.arg('from', { name: from }))
    if (to !== 0) extra.push(make.arg('to', { name: to }))
    if (endNs > startNs) extra.push(make.arg('gb_per_s', { double: bytes / (endNs - startNs) }))
    if (detail === 'full') extra.push(make.int('tid', tid))
    const name = moved ? `${what} ${make.names.text(moved.name)}` : what
    this.lanes.place(startNs, endNs, { name: make.names.id(name), category: 'copy', extra: make.shown(extra) })
  }
}
