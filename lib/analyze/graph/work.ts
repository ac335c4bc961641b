import { putAt } from '../../model/by-id.ts'
import type { TensorEvent } from '../../model/events.ts'
import { type Work, workOf } from '../../model/work.ts'
import { nodesOf, type Plan } from './plan.ts'

/** The part of a graph's work that depends on which experts were chosen. */
export interface ExpertStep {
  /** Id of the tensor that contains the choice. */
  readonly chosen: number
  /** Bytes of one expert. */
  readonly bytes: number
  /** Number of experts to count while the choice is not known. */
  readonly experts: number
}

/** The work of a graph. */
export interface GraphWork {
  readonly flop: number
  /** -1 = not known. */
  readonly bytes: number
  readonly expertSteps: readonly ExpertStep[]
}

/** The work of a step: a node, or fused ones. */
export interface StepWork {
  /** Of matrix products; -1 where shapes are not known. */
  readonly flop: number
  /** -1 = not known. */
  readonly bytesRead: number
  readonly bytesWritten: number
  /** The part of `bytesRead` from weights. */
  readonly weightBytes: number
  /** The tensor that contains the choice of experts, or -1; and the work that depends on it. */
  readonly chosen: number
  readonly expertsRead: number
  readonly expertBytes: number
  readonly isUpperBound: boolean
}

/** A weight that a step reads. */
export interface WeightRead {
  readonly tensor: TensorEvent
  /** -1 = not known. */
  readonly bytes: number
  /** `bytes` are those of as many experts as {@link StepWork.expertsRead}. */
  readonly isOfExperts: boolean
}

/** The work of nodes and of graphs, each computed once. */
export class Works {
  /** By the last node, and for fused ones by all of them. */
  private readonly ofSteps = new Map<number, StepWork>()
  private readonly ofNodes: (Work | undefined)[] = []
  private readonly ofGraphs = new WeakMap<Plan, GraphWork>()

  /** `tensors` by id, `opOf` the op's name without `GGML_OP_`. */
  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly opOf: (tensor: TensorEvent) => string,
  ) {}

  /** The work of a step from its first node to its last one. `isWeight`: is the tensor a weight of the model? */
  step(first: number, last: number, isWeight: (tensor: TensorEvent) => boolean): StepWork {
    const key = first * 2 ** 26 + last
    let work = this.ofSteps.get(key)
    if (!work) {
      work = this.stepWork(first, last, isWeight)
      this.ofSteps.set(key, work)
    }
    return work
  }

  private stepWork(first: number, last: number, isWeight: (tensor: TensorEvent) => boolean): StepWork {
    const fused = first === last ? [first] : nodesOf(this.tensors, first, last)
    const sum = { flop: 0, bytesRead: 0, bytesWritten: 0, weightBytes: 0 }
    const experts = { chosen: -1, expertsRead: 0, expertBytes: 0, isUpperBound: false }
    for (const node of fused) {
      const work = fused.length === 1 ? this.node(node) : this.workOf(node, fused)
      sum.flop = plus(sum.flop, work.flop)
      sum.bytesRead = plus(sum.bytesRead, work.bytesRead)
      if (node === last) sum.bytesWritten = work.bytesWritten
      sum.weightBytes = plus(sum.weightBytes, this.weightBytes(node, work, isWeight))
      if (work.expertsRead === 0) continue
      const { expertsRead, expertBytes, isUpperBound } = work
      Object.assign(experts, { chosen: this.tensors[node]!.sources[2] ?? -1, expertsRead, expertBytes, isUpperBound })
    }
    return { ...sum, ...experts }
  }

  private weightBytes(node: number, work: Work, isWeight: (tensor: TensorEvent) => boolean): number {
    return this.weightsOf(node, work, isWeight).reduce((sum, { bytes }) => plus(sum, bytes), 0)
  }

  /** The weights that a step reads. */
  weights(first: number, last: number, isWeight: (tensor: TensorEvent) => boolean): WeightRead[] {
    const fused = first === last ? [first] : nodesOf(this.tensors, first, last)
    return fused.flatMap((node) => {
      return this.weightsOf(node, fused.length === 1 ? this.node(node) : this.workOf(node, fused), isWeight)
    })
  }

  private weightsOf(
    node: number,
    { expertBytes, expertsRead }: Work,
    isWeight: (tensor: TensorEvent) => boolean,
  ): WeightRead[] {
    return this.tensors[node]!.sources.flatMap((id, i) => {
      const tensor = this.tensors[id]!
      if (!isWeight(tensor)) return []
      const isOfExperts = i === 0 && expertsRead > 0
      return [{ tensor, bytes: isOfExperts ? expertBytes : this.bytesReadOf(node, i), isOfExperts }]
    })
  }

  /** Bytes of one source that a node reads; -1 = not known. */
  private bytesReadOf(node: number, index: number): number {
    const tensor = this.tensors[node]!
    const only = tensor.sources.map((source, i) => (i === index ? this.tensors[source] : undefined))
    return workOf(this.opOf(tensor), tensor, only).bytesRead
  }

  /** The work of a node by itself. */
  node(id: number): Work {
    const known = this.ofNodes[id]
    if (known) return known
    const work = this.workOf(id, [])
    putAt(this.ofNodes, id, work, undefined)
    return work
  }

  /** The work of all nodes of a graph. */
  graph(plan: Plan): GraphWork {
    let work = this.ofGraphs.get(plan)
    if (!work) {
      work = this.sum(plan)
      this.ofGraphs.set(plan, work)
    }
    return work
  }

  private sum({ nodes, lasts }: Plan): GraphWork {
    let [flop, bytes] = [0, 0]
    const expertSteps: ExpertStep[] = []
    for (const [step, first] of nodes.entries()) {
      const fused = nodesOf(this.tensors, first, lasts[step]!)
      for (const node of fused) {
        const work = fused.length === 1 ? this.node(node) : this.workOf(node, fused)
        flop += Math.max(work.flop, 0)
        const own = work.bytesRead + (node === lasts[step] ? work.bytesWritten : 0)
        const isKnown = work.bytesRead >= 0 && work.bytesWritten >= 0
        bytes = bytes < 0 || !isKnown ? -1 : bytes + own
        const { expertsRead: experts, expertBytes } = work
        const chosen = this.tensors[node]!.sources[2] ?? -1
        if (experts > 0) expertSteps.push({ chosen, bytes: expertBytes / experts, experts })
      }
    }
    return { flop, bytes, expertSteps }
  }

  /** Results between fused nodes are neither read nor written. */
  private workOf(id: number, fused: readonly number[]): Work {
    const tensor = this.tensors[id]!
    const op = this.opOf(tensor)
    const sources = tensor.sources.map((source) => this.tensors[source])
    const read = sources.map((source) => (source && fused.includes(source.id) ? undefined : source))
    const work = workOf(op, tensor, read)
    // SET_ROWS writes as much as its source has, also where it is fused with that.
    return work.bytesWritten < 0 ? { ...work, bytesWritten: workOf(op, tensor, sources).bytesWritten } : work
  }
}

/** Bytes of the experts that a step counts, but that were not chosen. */
export const notRead = ({ expertBytes, expertsRead }: StepWork, chosen: number) =>
  (expertBytes / expertsRead) * (expertsRead - chosen)

/** A sum of which a part is not known is not known. */
export const plus = (a: number, b: number) => (a < 0 || b < 0 ? -1 : a + b)
