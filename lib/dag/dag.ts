import type { GraphLeaf, GraphNode, GraphSeries } from '../analyze/series/figures.ts'
import { checkNames } from '../errors.ts'
import { DAG_OF_OPTIONS } from '../generated/option-names.ts'

/** Name and version of {@link Dag} documents. */
export const DAG_SCHEMA = 'ggml2perfetto.dag/1'

/** The graph of one call, or a range of it, as nodes and edges. Times are nanoseconds. */
export interface Dag {
  readonly schema: typeof DAG_SCHEMA
  readonly call: number
  readonly phase: GraphSeries['phase']
  readonly tokens: number | null
  /** Nodes that the log contains, and the Analysis does not: it is bounded. */
  readonly left_out: number
  /** In the order in which they were computed. */
  readonly nodes: readonly DagNode[]
  /** Weights, caches and inputs that these nodes read. */
  readonly leaves: readonly GraphLeaf[]
  /** Nodes that are not in the range; nodes of it read them. */
  readonly outside: readonly GraphNode[]
  /** In the order of the nodes, and of their source lists. */
  readonly edges: readonly DagEdge[]
}

/** A node. */
export interface DagNode extends GraphNode {
  /** `layer`; where the name has none: that of its weights, or of the nodes before and after it. -1: in no layer. */
  readonly in_layer: number
  /** Bytes that were read and written per nanosecond of `wall_ns`. */
  readonly gb_per_s: number | null
}

/** An edge: `to` reads `from`. */
export interface DagEdge {
  /** Id of a node, or of a leaf (below -1). */
  readonly from: number
  readonly to: number
  /**
   * `source`: `from` is in the source list of `to`. `memory`: `to` reads data that `from` wrote to a tensor which is a source of `to`, such
   * as a cache; the source list does not contain `from`.
   */
  readonly kind: 'source' | 'memory'
  /** Index in the source list, from 0; null for `memory`. */
  readonly source: number | null
}

/** First and last, both included. */
export type Range = readonly [first: number, last: number]

/** A part of a graph. */
export interface DagRange {
  /** Layers, as {@link DagNode.in_layer}. */
  readonly layers?: Range | undefined
  /** Ids of nodes. */
  readonly nodes?: Range | undefined
}

const isIn = (value: number, range: Range | undefined) => !range || (value >= range[0] && value <= range[1])

/** The graph of a call as nodes and edges. Edges of kind `source` are exactly the source lists of the nodes. */
export function dagOf(graph: GraphSeries, range: DagRange = {}): Dag {
  checkNames('dagOf', range, DAG_OF_OPTIONS)
  const { layers, nodes: ids } = range
  const { call, phase, tokens, left_out, leaves } = graph
  const runs = graphRuns(graph.nodes)
  const all = graph.nodes.map((node, i) => ({ ...node, run: runs[i]! }))
  const inLayer = inLayers({ nodes: all, leaves })
  const nodes = all.flatMap((node, i) =>
    isIn(inLayer[i]!, layers) && isIn(node.id, ids)
      ? [{ ...node, in_layer: inLayer[i]!, gb_per_s: rateOf(node, node.wall_ns) }]
      : [],
  )
  const own = new Set(nodes.map(({ id }) => id))
  const edges = nodes.flatMap((node) => edgesOf(node, all))
  const read = new Set(edges.map(({ from }) => from))
  return {
    schema: DAG_SCHEMA,
    ...{ call, phase, tokens, left_out, nodes },
    leaves: leaves.filter(({ id }) => read.has(id)),
    outside: all.filter(({ id }) => read.has(id) && !own.has(id)),
    edges,
  }
}

/** Names of the backends that compute nodes, in the order of the nodes. */
export const backendsOf = (nodes: readonly Pick<GraphNode, 'backend'>[]): string[] => [
  ...new Set(nodes.flatMap(({ backend }) => backend ?? [])),
]

/** Bytes per nanosecond, which are GB/s. */
export function rateOf(
  { bytes_read, bytes_written }: Pick<GraphNode, 'bytes_read' | 'bytes_written'>,
  wallNs: number | null,
): number | null {
  if (bytes_read === null || wallNs === null || wallNs <= 0) return null
  return (bytes_read + (bytes_written ?? 0)) / wallNs
}

function edgesOf(node: GraphNode, nodes: readonly GraphNode[]): DagEdge[] {
  const { id: to, sources, reads_from } = node
  const found = sources.map((from, source): DagEdge => ({ from, to, kind: 'source', source }))
  const listed = operatorsOf(node, nodes)
  const written = reads_from.filter((from) => !listed.has(from))
  return [
    ...found.filter(({ from }) => from !== -1),
    ...written.map((from): DagEdge => ({ from, to, kind: 'memory', source: null })),
  ]
}

/** Operators in the source list of a node; views, and nodes that are fused with it, are followed. */
function operatorsOf({ id, sources }: GraphNode, nodes: readonly GraphNode[]): Set<number> {
  const [found, seen] = [new Set<number>(), new Set<number>()]
  const stack = [...sources]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const node = nodes[next]
    if (!node || seen.has(next)) continue
    seen.add(next)
    if (node.kind === 'view' || node.fused_into === id) stack.push(...node.sources)
    else found.add(node.fused_into ?? next)
  }
  return found
}

/** By node, its layer: that of its name, else that of its weights, else that of the nodes before and after it, if they agree; or -1. */
export function inLayers({ nodes, leaves }: Pick<GraphSeries, 'nodes' | 'leaves'>): number[] {
  const found = nodes.map(({ layer, sources }) => {
    const weights = layer >= 0 ? [] : sources.map((id) => leaves[-2 - id]?.layer ?? -1)
    return weights.find((layer) => layer >= 0) ?? layer
  })
  const before: number[] = []
  let latest = -1
  for (const [i, layer] of found.entries()) {
    if (i > 0 && isOtherRun(nodes, i)) latest = -1
    if (layer >= 0) latest = layer
    before.push(latest)
  }
  let next = -1
  for (let i = nodes.length - 1; i >= 0; i--) {
    if (i < nodes.length - 1 && isOtherRun(nodes, i + 1)) next = -1
    if (found[i]! >= 0) next = found[i]!
    else if (next === before[i]) found[i] = next
  }
  return found
}

const isOtherRun = (nodes: readonly GraphNode[], i: number) => nodes[i]!.run !== nodes[i - 1]!.run

/**
 * By node, the number of its graph run. A call whose micro-batches differ in size computes other tensors in the last one, which the
 * recorded runs do not separate: where the first node of a run occurs again, by its name and op, another run begins.
 */
export function graphRuns(nodes: readonly GraphNode[]): number[] {
  let [first, further, isOtherLayer] = [undefined as GraphNode | undefined, 0, false]
  return nodes.map((node, i) => {
    if (i === 0 || isOtherRun(nodes, i)) first = undefined
    if (node.kind === 'view') return node.run + further
    if (first && node.layer !== first.layer) isOtherLayer = true
    // Two norms of one layer may have one name.
    const isAgain = first?.name === node.name && first.op === node.op && isOtherLayer
    if (isAgain) further++
    if (!first || isAgain) [first, isOtherLayer] = [node, false]
    return node.run + further
  })
}
