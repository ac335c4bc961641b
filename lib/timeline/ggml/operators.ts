import type { Arg } from '../../model/args.ts'
import type { CounterSet } from '../../model/counters.ts'
import { Inferred, type OperatorEvent, type TensorEvent } from '../../model/events.ts'
import { formatShape, parseTensorName } from '../../model/tensors.ts'
import { type Work, workOf } from '../../model/work.ts'
import type { ArgSet, Label } from '../../sink/label.ts'
import { type ArgMaker, countArgs, type Detail } from '../labels.ts'
import { Lanes, LazyGroup, rowName, type TrackTree } from '../tracks.ts'

/** What operator slices are called: `<role> <OP>`, the op alone, or the tensor's full name. */
export type OpNaming = (typeof OP_NAMINGS)[number]

/** All of them. */
export const OP_NAMINGS = ['role', 'op', 'tensor'] as const

/** What a node's slice says, and when that holds. */
interface NodeLabel {
  readonly label: Label
  readonly fusedTo: number | undefined
  readonly inferred: number
}

/** The group of the rows of all workers. */
export function workersGroup(tree: TrackTree, root: number): LazyGroup {
  const description =
    'What each worker thread computed: one slice per operator (node of the graph), then its barrier wait.'
  return new LazyGroup(tree, root, { name: 'Workers', description, rank: 3 * 16 })
}

/** Rows of the Workers group: one per worker, operators and the barrier waits after them. */
export class Operators {
  private readonly workers: (Lanes | undefined)[] = []
  /** By tensor: its latest. */
  private readonly labels: (NodeLabel | undefined)[] = []
  /** By tensor, what it was fused to, and what is inferred. */
  private readonly allLabels = new Map<string, Label>()
  private readonly works: (Work | undefined)[] = []
  /** By what is inferred of the wait. */
  private readonly barriers: (Label | undefined)[] = [undefined]
  private readonly innerWait: number

  constructor(
    private readonly tree: TrackTree,
    private readonly group: LazyGroup,
    private readonly tensors: readonly TensorEvent[],
    private readonly make: ArgMaker,
    private readonly detail: Detail,
    private readonly naming: OpNaming,
    private readonly counters: CounterSet,
  ) {
    this.innerWait = make.names.id('inner_wait_ns')
  }

  /** `flows`: arrows that begin or end at the slice. */
  place(event: OperatorEvent, flows?: readonly number[]): void {
    const { worker, startNs, endNs, waitEndNs } = event
    const extra = this.detail === 'names' ? undefined : this.extra(event)
    const known = this.label(event)
    const { id, name, category, args } = known
    const label = extra || flows ? { id, name, category, args, extra, flows } : known
    const lanes = this.workers[worker] ?? this.addWorker(worker)
    if (waitEndNs > endNs) lanes.place(startNs, endNs, label, waitEndNs, this.barrier(event.inferred))
    else lanes.place(startNs, endNs, label)
  }

  private addWorker(worker: number): Lanes {
    const description =
      `Operators that worker ${worker} (ggml's ith) computed. Slices are compute time; the barrier slice after one is ` +
      'the wait for the other workers. The thread that served the worker at the time is the argument tid (--detail full).'
    const lanes = new Lanes(this.tree.writer, (row) =>
      this.group.add({ name: rowName(`worker ${worker}`, row), description, rank: worker * 16 + Math.min(row, 15) }),
    )
    this.workers[worker] = lanes
    return lanes
  }

  /** What the slice says each time that this node runs. */
  private label(event: OperatorEvent): Label {
    const { tensor, fusedTo, inferred } = event
    const last = this.labels[tensor]
    if (last !== undefined && last.fusedTo === fusedTo && last.inferred === inferred) return last.label
    const key = `${tensor} ${fusedTo} ${inferred}`
    let label = this.allLabels.get(key)
    if (!label) {
      const name = fusedTo === undefined ? this.sliceName(tensor) : this.fusedName(tensor, fusedTo)
      const args = this.detail === 'names' ? undefined : this.args(event)
      label = this.make.label({ name, category: 'operator', args })
      this.allLabels.set(key, label)
    }
    while (this.labels.length < tensor) this.labels.push(undefined)
    this.labels[tensor] = { label, fusedTo, inferred }
    return label
  }

  private sliceName(tensor: number): number {
    const { name, op, sources } = this.tensors[tensor]!
    const { names } = this.make
    // Some logs do not name results: what is read then says more than nothing.
    const named = name || (sources.length > 0 ? this.tensors[sources[0]!]!.name : 0)
    const [tensorText, opText] = [names.text(named), names.text(op)]
    const text = {
      op: opText,
      tensor: tensorText,
      role: `${parseTensorName(tensorText).role} ${opText}`.trim(),
    }[this.naming]
    return names.id(text || opText || tensorText || 'operator')
  }

  /** `<role of the result> <OP>+<OP>`: first and last of the ops that were computed in one go. */
  private fusedName(first: number, last: number): number {
    const { names } = this.make
    const [from, to] = [this.tensors[first]!, this.tensors[last]!]
    const ops = [from.op, to.op].map((op) => names.text(op)).filter(Boolean)
    const name = names.text(to.name)
    const text = { op: ops.join('+'), tensor: name, role: `${parseTensorName(name).role} ${ops.join('+')}`.trim() }
    return names.id(text[this.naming] || 'operator')
  }

  private args(event: OperatorEvent): ArgSet | undefined {
    const { make, tensors } = this
    const tensor = tensors[event.tensor]!
    const args: Arg[] = []
    if (tensor.name !== 0) args.push(make.arg('tensor', { name: tensor.name }))
    if (tensor.op !== 0) args.push(make.arg('op', { name: tensor.op }))
    if (tensor.layer >= 0) args.push(make.int('layer', tensor.layer))
    if (tensor.ne) args.push(make.word('shape', formatShape(tensor.ne)))
    if (tensor.type !== 0) args.push(make.arg('type', { name: tensor.type }))
    if (this.detail === 'full') args.push(...this.placeArgs('', tensor))
    for (const [i, id] of tensor.sources.entries()) args.push(...this.sourceArgs(`src${i}`, tensors[id]!))
    if (this.detail === 'full' && event.fusedTo === undefined) args.push(...this.workArgs(event.tensor))
    args.push(...make.inferred((event.inferred & ~Inferred.Wait) | tensor.inferred)) // a wait is the barrier slice's
    return make.set(args)
  }

  /** What the whole operator, of all workers, has to do. */
  private workArgs(id: number): Arg[] {
    const { make } = this
    const { flop, bytesRead, bytesWritten, isUpperBound } = this.work(id)
    const args: Arg[] = []
    if (flop > 0) args.push(make.int('flop', flop))
    if (bytesRead >= 0 && bytesWritten >= 0) {
      args.push(make.int(isUpperBound ? 'bytes_moved_max' : 'bytes_moved', Math.round(bytesRead + bytesWritten)))
    }
    return args
  }

  private work(id: number): Work {
    let work = this.works[id]
    if (!work) {
      const tensor = this.tensors[id]!
      const sources = tensor.sources.map((source) => this.tensors[source])
      work = workOf(this.make.names.text(tensor.op), tensor, sources)
      this.works[id] = work
    }
    return work
  }

  private sourceArgs(key: string, source: TensorEvent): Arg[] {
    const { make } = this
    const shape = source.ne ? formatShape(source.ne) : ''
    const name = make.names.text(source.name)
    const args = [make.word(key, name && shape ? `${name} ${shape}` : name || shape || 'unnamed')]
    if (this.detail === 'full') args.push(...this.placeArgs(`${key}_`, source))
    return args
  }

  private placeArgs(prefix: string, tensor: TensorEvent): Arg[] {
    const { make } = this
    const args: Arg[] = []
    if (tensor.sizeBytes >= 0) args.push(make.int(`${prefix}bytes`, tensor.sizeBytes))
    if (tensor.offset !== undefined) args.push(make.int(`${prefix}offset`, tensor.offset))
    if (tensor.address > 0) args.push(make.arg(`${prefix}address`, { pointer: tensor.address }))
    if (tensor.structAddress > 0) args.push(make.arg(`${prefix}struct_address`, { pointer: tensor.structAddress }))
    return args
  }

  /** What differs from run to run. */
  private extra(event: OperatorEvent): readonly Arg[] | undefined {
    const { innerWaitNs } = event
    const waited = innerWaitNs ? [{ key: this.innerWait, int: innerWaitNs }] : undefined
    const hasMore = event.experts || event.counts || event.fusedTo !== undefined || this.detail === 'full'
    return hasMore ? this.allExtra(event, waited) : waited
  }

  private allExtra(event: OperatorEvent, waited: readonly Arg[] = []): readonly Arg[] | undefined {
    const { make } = this
    const extra: Arg[] = []
    if (event.experts) extra.push(make.text('experts', event.experts.join(',')))
    extra.push(...waited)
    if (event.counts) extra.push(...this.counts(event.counts, event.endNs - event.startNs))
    if (event.fusedTo !== undefined) extra.push(make.arg('fused_to', { name: this.tensors[event.fusedTo]!.name }))
    if (this.detail === 'full') {
      if (event.endNs > event.startNs && event.fusedTo === undefined) extra.push(...this.rateArgs(event))
      if (event.call >= 0) extra.push(make.int('token', event.call))
      if (event.tid >= 0) extra.push(make.int('tid', event.tid))
      if (event.cpu >= 0) extra.push(make.int('cpu', event.cpu))
    }
    return extra.length > 0 ? extra : undefined
  }

  private counts(counts: readonly number[], durationNs: number): Arg[] {
    const { make, counters } = this
    const rates = counters.rates(counts, durationNs).map(({ key, value }) => make.arg(key, { double: value }))
    return [...countArgs(make, counters, counts), ...rates]
  }

  /** How fast all workers together were, by this one's time. */
  private rateArgs({ tensor, startNs, endNs }: OperatorEvent): Arg[] {
    const { flop, bytesRead, bytesWritten, isUpperBound } = this.work(tensor)
    const args: Arg[] = []
    if (flop > 0) args.push(this.make.arg('gflop_per_s', { double: flop / (endNs - startNs) }))
    if (bytesRead >= 0 && bytesWritten >= 0 && !isUpperBound) {
      args.push(this.make.arg('gb_per_s', { double: (bytesRead + bytesWritten) / (endNs - startNs) }))
    }
    return args
  }

  private barrier(inferred: number): Label {
    const bits = inferred & Inferred.Wait
    let label = this.barriers[bits]
    if (!label) {
      const args = this.detail === 'names' ? undefined : this.make.set(this.make.inferred(bits))
      label = this.make.label({ name: this.make.names.id('barrier'), category: 'barrier', args })
      this.barriers[bits] = label
    }
    return label
  }
}
