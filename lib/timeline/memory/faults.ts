import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { BufferEvent, OperatorEvent, TensorEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import { countArgs } from '../labels.ts'

/** The Faults and I/O group: operators that waited for a disk, named by the weights that they read. */
export class Faults {
  private readonly workers = new DefaultMap((worker: number) => this.context.tracks.lanes('workerFaults', { worker }))
  private readonly weights = new Set<number>()

  constructor(private readonly context: TrackContext) {}

  define({ id, usage }: BufferEvent): void {
    if (usage === 'weights') this.weights.add(id)
  }

  /** Draws an operator, if it had major faults or read from a disk. */
  place(event: OperatorEvent): void {
    const { counts, worker, startNs, endNs } = event
    if (!counts) return
    const { make, tensors, counters } = this.context
    const count = (name: string) => counters.value(name, counts) ?? 0
    if (count('major-faults') === 0 && count('bytes-read') === 0) return
    const sources = tensors[event.tensor]!.sources.map((id) => tensors[id]!)
    const weights = sources.filter(({ buffer }) => this.weights.has(buffer))
    const name = weights.map((tensor) => make.names.text(tensor.name)).join(' ') || 'no weights'
    const extra = make.shown(this.args(event, weights))
    this.workers.of(worker).place(startNs, endNs, { name: make.names.id(name), category: 'fault', extra })
  }

  private args({ tensor, call, counts = [] }: OperatorEvent, weights: readonly TensorEvent[]): Arg[] {
    const { make, tensors, counters: set } = this.context
    const { name, op } = tensors[tensor]!
    const args = [make.arg('operator', { name }), make.arg('op', { name: op })]
    if (call >= 0) args.push(make.int('call', call))
    const [first] = weights
    if (first && first.sizeBytes >= 0) args.push(make.int('weight_bytes', first.sizeBytes))
    if (first?.offset !== undefined) args.push(make.int('weight_offset', first.offset))
    return [...args, ...countArgs(make, set, counts)]
  }
}
