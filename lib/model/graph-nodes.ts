import { getOrMake } from './default-map.ts'
import type { GraphNodesEvent } from './graph-events.ts'

/** The nodes of graphs: a graph of many nodes has several records, all before its first run. */
export class GraphDefinitions {
  private readonly byId = new Map<number, GraphNodesEvent[]>()

  /** `max`: of so many graphs; the oldest one is forgotten for a further one. */
  constructor(private readonly max = Infinity) {}

  add(event: GraphNodesEvent): void {
    getOrMake(this.byId, event.id, () => []).push(event)
    if (this.byId.size > this.max) this.byId.delete(this.byId.keys().next().value!)
  }

  /** A graph with all of its nodes; undefined: it is not defined. */
  get(id: number): GraphNodesEvent | undefined {
    const parts = this.byId.get(id)
    if (!parts || parts.length === 1) return parts?.[0]
    const nodes = new Int32Array(parts.reduce((sum, part) => sum + part.nodes.length, 0))
    let at = 0
    for (const part of parts) {
      nodes.set(part.nodes, at)
      at += part.nodes.length
    }
    const whole = { ...parts[0]!, nodes }
    this.byId.set(id, [whole])
    return whole
  }

  /** The same; it is forgotten. */
  take(id: number): GraphNodesEvent | undefined {
    const whole = this.get(id)
    this.byId.delete(id)
    return whole
  }
}
