import type { GraphEvent, GraphNodesEvent } from '../../model/events.ts'
import { GraphDefinitions } from '../../model/graph-nodes.ts'

/** Calls whose graphs wait for their operators. */
const OPEN_MAX = 1 << 10

/** A split of a call: nodes that one backend computes in one piece. */
export interface Split {
  readonly startNs: number
  /** Name of its backend. */
  readonly backend: number
  /** Ids of its tensors, in order. */
  readonly nodes: Int32Array
}

/** The splits of calls, until their operators are complete. */
export class Splits {
  private readonly graphs = new GraphDefinitions()
  private readonly open = new Map<number, Split[]>()

  define(event: GraphNodesEvent): void {
    this.graphs.add(event)
  }

  add({ call, graph = -1, startNs, backend }: GraphEvent): void {
    const nodes = this.graphs.get(graph)?.nodes
    if (call < 0 || !nodes) return
    const splits = this.open.get(call) ?? []
    splits.push({ startNs, backend, nodes })
    this.open.set(call, splits)
    if (this.open.size > OPEN_MAX) this.open.delete(this.open.keys().next().value!)
  }

  /** The splits of a call, in the order of time; they are forgotten. */
  take(call: number): readonly Split[] {
    const splits = this.open.get(call) ?? []
    this.open.delete(call)
    return splits.sort((a, b) => a.startNs - b.startNs)
  }
}
