import type { CopyEvent, TensorEvent } from '../../model/events.ts'
import type { ArgMaker, Detail } from '../labels.ts'
import { Lanes, rowName, type TrackTree } from '../tracks.ts'

const RANK = 3 * 16 + 8

/** The Copies row: data that go into a backend buffer, out of it, or from one to another. */
export class Copies {
  private readonly lanes: Lanes

  constructor(
    tree: TrackTree,
    root: number,
    private readonly tensors: readonly TensorEvent[],
    private readonly make: ArgMaker,
    private readonly detail: Detail,
  ) {
    const description = 'Transfers of tensor data: set = into a backend buffer, get = out of it, copy = between two.'
    const add = (row: number) =>
      tree.add(root, { name: rowName('Copies', row), description, rank: RANK + Math.min(row, 7) })
    this.lanes = new Lanes(tree.writer, add, true)
  }

  place({ what, startNs, endNs, bytes, from, to, tensor, tid }: CopyEvent): void {
    const { make } = this
    const moved = this.tensors[tensor]
    const extra = [make.int('bytes', bytes)]
    if (moved) extra.push(make.arg('tensor', { name: moved.name }))
    if (from !== 0) extra.push(make.arg('from', { name: from }))
    if (to !== 0) extra.push(make.arg('to', { name: to }))
    if (endNs > startNs) extra.push(make.arg('gb_per_s', { double: bytes / (endNs - startNs) }))
    if (this.detail === 'full') extra.push(make.int('tid', tid))
    const name = moved ? `${what} ${make.names.text(moved.name)}` : what
    const shown = this.detail === 'names' ? undefined : extra
    this.lanes.place(startNs, endNs, { name: make.names.id(name), category: 'copy', extra: shown })
  }
}
