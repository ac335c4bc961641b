import type { TensorEvent } from '../../model/events.ts'
import { nodesOf, readsOf } from './plan.ts'
import type { Views } from './views.ts'

/**
 * Who wrote the data that steps read. A tensor is identified by itself, not by its address: the memory of an arena is used again. Views are
 * followed to the tensor that owns the memory; what writes to a part of a tensor, as SET_ROWS does to a cache, is a writer in addition
 * to those before it.
 */
export class DataWriters<T> {
  /** By tensor: the step that wrote it, and those that wrote to parts of it since. */
  private readonly writers = new Map<number, readonly T[]>()

  constructor(
    private readonly tensors: readonly TensorEvent[],
    private readonly views: Views,
  ) {}

  /** Adds the next step, in order of time: `step`, which computes the nodes from `first` to `last`. Returns the steps that wrote what it reads. */
  step(first: number, last: number, step: T): Set<T> {
    const { tensors, views, writers } = this
    const nodes = nodesOf(tensors, first, last)
    const from = new Set(readsOf(tensors, nodes).flatMap((id) => writers.get(views.root(id)) ?? []))
    for (const node of nodes) {
      const root = views.root(node)
      writers.set(root, root === node ? [step] : [...(writers.get(root) ?? []), step])
    }
    return from
  }
}
