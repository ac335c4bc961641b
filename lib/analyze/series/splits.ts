import type { GraphEvent, GraphNodesEvent } from '../../model/events.ts'

/** Calls whose graphs wait for their operators; graphs of which no run was read yet. */
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
  private readonly nodes = new Map<number, GraphNodesEvent>()
  private readonly open = new Map<number, Split[]>()

  define(event: GraphNodesEvent): void {
    const before = this.nodes.get(event.id)
    const nodes = before ? Int32Array.of(...before.nodes, ...event.nodes) : event.nodes
    this.nodes.set(event.id, { ...event, nodes })
  }

  add({ call, graph = -1, startNs, backend }: GraphEvent): void {
    const nodes = this.nodes.get(graph)?.nodes
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
