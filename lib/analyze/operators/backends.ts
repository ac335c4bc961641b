import type { GraphEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Statistic } from '../common/statistic.ts'

/** Calls whose graphs are remembered. */
const CALLS_MAX = 4096

/** The backends that compute graphs, by call and time. */
export class Backends implements Statistic<object, 'graph'> {
  readonly kinds = ['graph'] as const
  private readonly graphs = new Map<number, GraphEvent[]>()
  private readonly seen = new Set<number>()

  constructor(private readonly names: Names) {}

  event(event: GraphEvent): void {
    this.seen.add(event.backend)
    const graph = this.graphs.get(event.call)
    if (graph) graph.push(event)
    else this.graphs.set(event.call, [event])
    if (this.graphs.size > CALLS_MAX) this.graphs.delete(this.graphs.keys().next().value!)
  }

  /** Name of the backend that computes a graph of the call at this time; empty where it is not known. */
  at(call: number, atNs: number): string {
    if (this.seen.size === 1) return this.names.text([...this.seen][0]!)
    const graph = this.graphs.get(call)?.find(({ startNs, endNs }) => startNs <= atNs && atNs <= endNs)
    return this.names.text(graph?.backend ?? 0)
  }
}
