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

/** The work of nodes and of graphs, each computed once. */
export class Works {
  private readonly ofNodes: (Work | undefined)[] = []
  private readonly ofGraphs = new WeakMap<Plan, GraphWork>()

  /** `tensors` by id, `opOf` the op's name without `GGML_OP_`. */
  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly opOf: (tensor: TensorEvent) => string,
  ) {}

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
    const sources = tensor.sources.map((source) => (fused.includes(source) ? undefined : this.tensors[source]))
    return workOf(this.opOf(tensor), tensor, sources)
  }
}
