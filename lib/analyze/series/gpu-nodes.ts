import { getOrMake } from '../../model/default-map.ts'
import type { GpuEvent } from '../../model/gpu-events.ts'
import { orNull } from '../../model/units.ts'
import type { Defined } from '../graph/defined.ts'
import { nodesOf } from '../graph/plan.ts'
import type { GraphNode } from './figures.ts'

/** Calls whose work is held: a log contains the work of a GPU before its call, or after it. */
const CALLS_MAX = 64

interface Work {
  readonly first: number
  readonly last: number
  readonly startNs: number
  ns: number
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** What GPUs computed of the nodes of the latest calls, and of the one that is shown. */
export class GpuNodes {
  private readonly calls = new Map<number, Map<number, Work>>()
  /** The call that is shown. */
  shown = -1

  add({ node, call = -1, startNs, endNs }: GpuEvent): void {
    if (!node || call < 0) return
    const works = getOrMake(this.calls, call, () => new Map<number, Work>())
    const last = node.fusedTo ?? node.tensor
    const work = getOrMake(works, last, () => ({ first: node.tensor, last, startNs, ns: 0 }))
    work.ns += endNs - startNs
    if (this.calls.size <= CALLS_MAX + 1) return // with the shown one
    for (const oldest of this.calls.keys())
      if (oldest !== this.shown) {
        this.calls.delete(oldest)
        return
      }
  }

  /** Adds times and work to nodes of the shown call; `tensors`: by node, its tensor. */
  complete(
    nodes: readonly Writable<GraphNode>[],
    tensors: readonly number[],
    originNs: number,
    { works, isWeight, tensors: defined }: Defined,
  ): void {
    const byTensor = new Map(tensors.map((tensor, id) => [tensor, nodes[id]!]))
    for (const { first, last, startNs, ns } of this.calls.get(this.shown)?.values() ?? []) {
      const result = byTensor.get(last)
      if (result?.kind !== 'not recorded') continue
      const work = works.step(first, last, isWeight)
      Object.assign(result, {
        ...{ kind: 'operator', start_ns: startNs - originNs, wall_ns: ns },
        ...{ flop: orNull(work.flop), bytes_read: orNull(work.bytesRead), bytes_written: orNull(work.bytesWritten) },
        weight_bytes: orNull(work.weightBytes),
      })
      for (const tensor of nodesOf(defined, first, last)) {
        const node = byTensor.get(tensor)
        if (node?.kind === 'not recorded') Object.assign(node, { kind: 'fused', fused_into: result.id })
      }
    }
  }
}
