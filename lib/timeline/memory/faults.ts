import type { Arg } from '../../model/args.ts'
import type { CounterSet } from '../../model/counters.ts'
import type { BufferEvent, OperatorEvent, TensorEvent } from '../../model/events.ts'
import { type ArgMaker, countArgs, type Detail } from '../labels.ts'
import { Lanes, LazyGroup, rowName, type TrackTree } from '../tracks.ts'

/** The Faults and I/O group: operators that had to wait for a disk, by the weights that they read. */
export class Faults {
  /** For counters of faults, too. */
  readonly group: LazyGroup
  private readonly workers: (Lanes | undefined)[] = []
  private readonly weights = new Set<number>()

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly tensors: readonly TensorEvent[],
    private readonly make: ArgMaker,
    private readonly detail: Detail,
    private readonly set: CounterSet,
  ) {
    const description =
      'Page faults and reads from disks while operators were computed, and the weights that lie where they read.'
    this.group = new LazyGroup(tree, root, { name: 'Faults and I/O', description, rank: 5 * 16 + 12 })
  }

  define({ id, usage }: BufferEvent): void {
    if (usage === 'weights') this.weights.add(id)
  }

  /** Draws an operator, if it had major faults or read from a disk. */
  place(event: OperatorEvent): void {
    const { counts, worker, startNs, endNs } = event
    if (!counts) return
    const count = (name: string) => this.set.value(name, counts) ?? 0
    if (count('major-faults') === 0 && count('bytes-read') === 0) return
    const { make } = this
    const weights = this.tensors[event.tensor]!.sources.map((id) => this.tensors[id]!).filter(({ buffer }) =>
      this.weights.has(buffer),
    )
    const name = weights.map((tensor) => make.names.text(tensor.name)).join(' ') || 'no weights'
    const extra = this.detail === 'names' ? undefined : this.args(event, weights)
    const lanes = this.workers[worker] ?? this.addWorker(worker)
    lanes.place(startNs, endNs, { name: make.names.id(name), category: 'fault', extra })
  }

  private args({ tensor, call, counts = [] }: OperatorEvent, weights: readonly TensorEvent[]): Arg[] {
    const { make, tensors, set } = this
    const { name, op } = tensors[tensor]!
    const args = [make.arg('operator', { name }), make.arg('op', { name: op })]
    if (call >= 0) args.push(make.int('token', call))
    const [first] = weights
    if (first && first.sizeBytes >= 0) args.push(make.int('weight_bytes', first.sizeBytes))
    if (first?.offset !== undefined) args.push(make.int('weight_offset', first.offset))
    return [...args, ...countArgs(make, set, counts)]
  }

  private addWorker(worker: number): Lanes {
    const description =
      `Operators in which worker ${worker} had major page faults, or read from a disk, called by the weights that they ` +
      'read: pages of the mapped model file that were not in memory.'
    const lanes = new Lanes(this.tree.writer, (row) =>
      this.group.add({ name: rowName(`worker ${worker}`, row), description, rank: worker * 2 + Math.min(row, 1) }),
    )
    this.workers[worker] = lanes
    return lanes
  }
}
