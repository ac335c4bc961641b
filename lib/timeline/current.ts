import type { TensorEvent } from '../model/events.ts'
import type { Views } from '../model/views.ts'

/**
 * Which tensors a run of a graph reads. Mostly those that a node's definition names. But a recorder that knows a node by
 * its struct may name a source's older self: the struct of `cache_k_l0 (view)` is the same in the next graph, though its
 * source `Kcur-0` has another shape now. A source that this run did not compute, while it did compute one of the same
 * name by the same op, is that one.
 */
export class Current {
  private readonly computed = new Set<number>()
  private readonly newest = new Map<string, number>()

  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly views: Views,
  ) {}

  /** Takes note of a node that was computed. */
  compute(node: number): void {
    if (this.views.root(node) !== node) return
    this.computed.add(node)
    this.newest.set(keyOf(this.tensors[node]!), node)
  }

  /** Id of the tensor that owns the memory of a source. */
  root(source: number): number {
    const root = this.views.root(source)
    const tensor = this.tensors[root]!
    if (tensor.op === 0 || this.computed.has(root)) return root
    return this.newest.get(keyOf(tensor)) ?? root
  }
}

const keyOf = ({ name, op }: TensorEvent): string => `${name} ${op}`
