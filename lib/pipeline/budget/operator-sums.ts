import { unknownTensor } from '../../analyze/summary/summary.ts'
import { growColumns } from '../../bytes/resized.ts'
import { putAt } from '../../model/by-id.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { OperatorEvent, TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { SliceSum, SumsEvent } from '../../model/sums.ts'
import { NodeNames } from '../../timeline/ggml/node-names.ts'
import type { OpNaming } from '../../timeline/options.ts'

/** What the sums of all workers share: the name of each node's slices. Tensors of the same role have the same name. */
export class SummedNames {
  readonly tensors: TensorEvent[] = []
  readonly barrier: number
  /** Names, in the order in which they came. */
  readonly list: number[] = []
  private readonly indexes = new Map<number, number>()
  /** By tensor; of fused nodes also by the last one. */
  private readonly ofTensor: number[] = []
  private readonly ofFused = new Map<string, number>()
  private readonly nodeNames: NodeNames

  constructor(
    readonly names: Names,
    naming: OpNaming,
  ) {
    this.barrier = names.id('barrier')
    this.nodeNames = new NodeNames({ names, tensors: this.tensors }, naming === 'tensor' ? 'role' : naming)
  }

  /** Index of the name of an operator's slice in {@link list}. */
  index({ tensor, fusedTo }: Pick<OperatorEvent, 'tensor' | 'fusedTo'>): number {
    if (fusedTo === undefined) {
      const known = this.ofTensor[tensor]
      if (known !== undefined && known >= 0) return known
      if (!this.tensors[tensor]) unknownTensor(tensor)
      const index = this.indexOf(this.nodeNames.of(tensor, undefined))
      putAt(this.ofTensor, tensor, index, -1)
      return index
    }
    const key = `${tensor} ${fusedTo}`
    return getOrMake(this.ofFused, key, () => this.indexOf(this.nodeNames.of(tensor, fusedTo)))
  }

  private indexOf(name: number): number {
    return getOrMake(this.indexes, name, () => this.list.push(name) - 1)
  }
}

/** The operators of one worker in a stretch of calls, summed up by name. */
export class OperatorSums {
  /** -1: nothing is summed. */
  stretch = -1
  private call = -1
  private toCall = -1
  private tid = -1
  private startNs = 0
  private endNs = 0
  private waits = 0
  private waitNs = 0
  /** By index of the name. */
  counts = new Float64Array(64)
  ns = new Float64Array(64)
  innerNs = new Float64Array(64)
  private counters: (number[] | undefined)[] = []
  /** Indexes of names with operators, in order of the first one. */
  private readonly used: number[] = []

  constructor(
    private readonly worker: number,
    private readonly shared: SummedNames,
  ) {}

  add(event: OperatorEvent, stretch: number): void {
    const { call, startNs, endNs, waitEndNs, innerWaitNs, counts } = event
    const at = this.shared.index(event)
    if (this.stretch < 0) {
      this.stretch = stretch
      this.call = call
      this.toCall = call
      this.startNs = startNs
      this.endNs = waitEndNs
    }
    this.tid = event.tid
    if (call > this.toCall) this.toCall = call
    else if (call < this.call) this.call = call
    if (startNs < this.startNs) this.startNs = startNs
    if (waitEndNs > this.endNs) this.endNs = waitEndNs
    if (at >= this.counts.length) growColumns(this, ['counts', 'ns', 'innerNs'], 2 * (at + 1))
    if (this.counts[at]!++ === 0) this.used.push(at)
    this.ns[at]! += endNs - startNs
    if (innerWaitNs) this.innerNs[at]! += innerWaitNs
    if (waitEndNs > endNs) {
      this.waits++
      this.waitNs += waitEndNs - endNs
    }
    if (counts) this.count(at, counts)
  }

  /** Returns the sums and begins again; undefined if there are none. */
  take(): SumsEvent | undefined {
    if (this.stretch < 0) return undefined
    const { worker, tid, call, toCall, startNs, endNs, shared } = this
    const sums = this.used.map((at): SliceSum => this.sumOf(at))
    if (this.waits > 0) {
      const { waits: count, waitNs: sumNs } = this
      sums.push({ what: 'barrier', name: shared.barrier, count, sumNs, innerWaitNs: 0, counts: undefined })
    }
    this.clear()
    return { kind: 'sums', of: 'operators', worker, tid, call, toCall, startNs, endNs, sums }
  }

  private sumOf(at: number): SliceSum {
    return {
      what: 'operator',
      name: this.shared.list[at]!,
      count: this.counts[at]!,
      sumNs: this.ns[at]!,
      innerWaitNs: this.innerNs[at]!,
      counts: this.counters[at],
    }
  }

  private clear(): void {
    for (const at of this.used) {
      this.counts[at] = 0
      this.ns[at] = 0
      this.innerNs[at] = 0
    }
    this.used.length = 0
    this.counters = []
    this.waits = 0
    this.waitNs = 0
    this.stretch = -1
  }

  private count(at: number, counts: readonly number[]): void {
    const sums = this.counters[at]
    if (!sums) this.counters[at] = [...counts]
    else for (let i = 0; i < counts.length; i++) sums[i] = (sums[i] ?? 0) + counts[i]!
  }
}

/** Graphs and parts of calls in a stretch, summed up by name. */
export class GraphSums {
  stretch = -1
  private about = { call: -1, toCall: -1, startNs: 0, endNs: 0 }
  private readonly sums = new Map<number, { what: SliceSum['what']; count: number; sumNs: number }>()

  /** `name`: that of its slice. */
  add(
    event: { readonly call: number; readonly startNs: number; readonly endNs: number },
    what: SliceSum['what'],
    name: number,
    stretch: number,
  ): void {
    const { call, startNs, endNs } = event
    if (this.stretch < 0) this.about = { call, toCall: call, startNs, endNs }
    this.stretch = stretch
    const { about } = this
    about.call = Math.min(about.call, call)
    about.toCall = Math.max(about.toCall, call)
    about.startNs = Math.min(about.startNs, startNs)
    about.endNs = Math.max(about.endNs, endNs)
    const sum = this.sums.get(name)
    if (!sum) this.sums.set(name, { what, count: 1, sumNs: endNs - startNs })
    else {
      sum.count++
      sum.sumNs += endNs - startNs
    }
  }

  /** Returns the sums and begins again; undefined if there are none. */
  take(): SumsEvent | undefined {
    if (this.stretch < 0) return undefined
    const sums = [...this.sums].map(([name, sum]): SliceSum => ({ ...sum, name, innerWaitNs: 0, counts: undefined }))
    this.sums.clear()
    this.stretch = -1
    return { kind: 'sums', of: 'graphs', worker: -1, tid: -1, ...this.about, sums }
  }
}
