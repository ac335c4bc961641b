import type { GraphLeaf } from '../analyze/series/figures.ts'
import { timesOf } from '../analyze/threads/core-kinds.ts'
import { DefaultMap } from '../model/default-map.ts'
import { type Dag, type DagEdge, type DagNode, rateOf } from './dag.ts'

/** Parts of a graph with the same structure: layers, in the same or in several graph runs; or what is in no layer. */
export interface Pattern {
  /** In ascending order; empty: in no layer. */
  readonly layers: readonly number[]
  /** Numbers of its graph runs, in ascending order. */
  readonly runs: readonly number[]
  /** Parts that it represents: layers × graph runs. */
  readonly parts: number
  readonly nodes: readonly FoldedNode[]
}

/** A node of a pattern, for the corresponding nodes of all its parts. */
export interface FoldedNode {
  /** The node of the first part, with the mean of each figure over those parts that have it. */
  readonly mean: DagNode
  /** Ids of all, in the order of the parts. */
  readonly ids: readonly number[]
  /** The longest time, and the layer of the node. */
  readonly slowest_ns: number | null
  readonly slowest_layer: number
}

/** Figures of which nodes have a mean. `gb_per_s` is not one of them: it is computed from the means. */
const FIGURES = [
  ...(['wall_ns', 'operator_time_ns', 'wait_ns', 'imbalance_share', 'flop', 'bytes_read', 'bytes_written'] as const),
  ...(['weight_bytes', 'size_bytes', 'experts'] as const),
]

/** Finds the parts of a graph that have the same structure: the same nodes with the same sources, in the same order. */
export function fold({ nodes, leaves }: Pick<Dag, 'nodes' | 'leaves'>): Pattern[] {
  const parts = new Map<string, DagNode[]>()
  for (const node of nodes) {
    const key = `${node.run}/${node.in_layer}`
    const part = parts.get(key)
    if (part) part.push(node)
    else parts.set(key, [node])
  }
  const leafOf = new Map(leaves.map((leaf) => [leaf.id, leaf]))
  const same = new Map<string, DagNode[][]>()
  for (const part of parts.values()) {
    const key = structureOf(part, leafOf)
    const others = same.get(key)
    if (others) others.push(part)
    else same.set(key, [part])
  }
  return [...same.values()].map(patternOf)
}

/** A text that is equal for parts of the same structure. Sources in other parts count as equal: the first layer reads the embedding. */
function structureOf(part: readonly DagNode[], leaves: ReadonlyMap<number, GraphLeaf>): string {
  const positions = new Map(part.map(({ id }, i) => [id, i]))
  const sourceText = (id: number) => {
    const leaf = leaves.get(id)
    return leaf ? [leaf.kind, leaf.role, leaf.type, leaf.shape] : [positions.get(id) ?? 'other']
  }
  return JSON.stringify([
    part[0]!.in_layer >= 0,
    part.map(({ kind, op, role, type, shape, backend, sources }) => {
      return [kind, op, role, type, shape, backend, sources.map(sourceText)]
    }),
  ])
}

function patternOf(parts: readonly (readonly DagNode[])[]): Pattern {
  const sorted = (values: readonly number[]) => [...new Set(values)].sort((a, b) => a - b)
  return {
    layers: sorted(parts.map(([first]) => first!.in_layer).filter((layer) => layer >= 0)),
    runs: sorted(parts.map(([first]) => first!.run)),
    parts: parts.length,
    nodes: parts[0]!.map((_, i) => foldedOf(parts.map((part) => part[i]!))),
  }
}

function foldedOf(nodes: readonly DagNode[]): FoldedNode {
  const mean: { -readonly [K in keyof DagNode]: DagNode[K] } = { ...nodes[0]! }
  for (const key of FIGURES) {
    const values = nodes.map((node) => node[key]).filter((value) => value !== null)
    mean[key] = values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
  }
  mean.by_core_kind = meanOnKinds(nodes)
  mean.gb_per_s = rateOf(mean, mean.wall_ns)
  const slowest = nodes.reduce((most, node) => ((node.wall_ns ?? -1) > (most.wall_ns ?? -1) ? node : most))
  return {
    mean,
    ids: nodes.map(({ id }) => id),
    slowest_ns: slowest.wall_ns,
    slowest_layer: slowest.in_layer,
  }
}

/** The mean over the nodes that have times by kind of core; null where none has. */
function meanOnKinds(nodes: readonly DagNode[]): DagNode['by_core_kind'] {
  const known = nodes.flatMap(({ by_core_kind }) => (by_core_kind === null ? [] : [by_core_kind]))
  if (known.length === 0) return null
  const sums = new DefaultMap<string, { executions: number; timeNs: number }>(() => ({ executions: 0, timeNs: 0 }))
  for (const { kind, executions, time_ns } of known.flat()) {
    const sum = sums.of(kind)
    sum.executions += executions / known.length
    sum.timeNs += time_ns / known.length
  }
  return timesOf(sums)
}

/** An edge between nodes of patterns: ids are those of the first nodes. */
export interface FoldedEdge extends Pick<DagEdge, 'from' | 'to' | 'kind'> {
  /** The edge leads from a layer to a later one, or from a graph run to a later one. */
  readonly isForward: boolean
}

/** Ids of leaves of layers: by the first one of those of the same kind, role, type and shape. Leaves of no layer are of themselves alone. */
export function foldLeaves(leaves: readonly GraphLeaf[]): Map<number, readonly number[]> {
  const same = new Map<string, number[]>()
  for (const { id, kind, role, layer, type, shape } of leaves) {
    const key = layer < 0 ? `${id}` : JSON.stringify([kind, role, type, shape])
    const others = same.get(key)
    if (others) others.push(id)
    else same.set(key, [id])
  }
  return new Map([...same.values()].map((ids) => [ids[0]!, ids]))
}

/** The edges of a graph between the nodes of its patterns, and from the first of equal leaves, each once. Nodes outside keep their ids. */
export function foldEdges(
  { edges, nodes, leaves }: Pick<Dag, 'edges' | 'nodes' | 'leaves'>,
  patterns: readonly Pattern[],
): FoldedEdge[] {
  const groups = [...patterns.flatMap((pattern) => pattern.nodes.map(({ ids }) => ids)), ...foldLeaves(leaves).values()]
  const firstOf = new Map(groups.flatMap((ids) => ids.map((id) => [id, ids[0]!])))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const found = new Map<string, FoldedEdge>()
  for (const { from, to, kind } of edges) {
    const [a, b] = [firstOf.get(from) ?? from, firstOf.get(to)!]
    const [source, node] = [byId.get(from), byId.get(to)!]
    const isForward = source !== undefined && (source.in_layer !== node.in_layer || source.run !== node.run)
    const key = `${a} ${b} ${kind}`
    if (!found.has(key)) found.set(key, { from: a, to: b, kind, isForward: isForward && a >= b })
  }
  return [...found.values()]
}

/** `0–4, 6`: numbers, with ranges of three or more; or the first of many. */
export function rangesText(numbers: readonly number[]): string {
  const parts: string[] = []
  for (let i = 0; i < numbers.length; ) {
    let last = i
    while (numbers[last + 1] === numbers[last]! + 1) last++
    const isRange = last - i >= 2
    parts.push(isRange ? `${numbers[i]}–${numbers[last]}` : `${numbers[i]}`)
    i = isRange ? last + 1 : i + 1
  }
  return parts.length > 12 ? `${parts.slice(0, 11).join(', ')} …` : parts.join(', ')
}

/** `layers 0–4`, `layer 5`, `in no layer`; with its graph runs, other than the first one alone. */
export function partsText({ layers, runs }: Pick<Pattern, 'layers' | 'runs'>): string {
  const isFirst = runs.every((run) => run === 0)
  const ofRuns = isFirst ? '' : `, graph run${runs.length === 1 ? '' : 's'} ${rangesText(runs)}`
  if (layers.length === 0) return `in no layer${ofRuns}`
  return `layer${layers.length === 1 ? '' : 's'} ${rangesText(layers)}${ofRuns}`
}
