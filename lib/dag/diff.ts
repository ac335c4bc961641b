import type { Dag, DagNode } from './dag.ts'
import { type FoldedNode, fold, type Pattern } from './fold.ts'

/** Name and version of {@link DagDiff} documents. */
export const DAG_DIFF_SCHEMA = 'ggml2perfetto.dag-diff/1'

/** How the graphs of two calls differ. Times are those of one call each. */
export interface DagDiff {
  readonly schema: typeof DAG_DIFF_SCHEMA
  readonly a: DiffGraph
  readonly b: DiffGraph
  /** Layers of the same structure are one part. */
  readonly parts: readonly DiffPart[]
}

/** One of the two graphs. */
export interface DiffGraph extends Pick<Dag, 'call' | 'phase' | 'tokens'> {
  readonly name: string
  readonly nodes: number
  readonly operators: number
  readonly layers: number
}

/** Layers of both graphs that correspond to each other, or what is in no layer. */
export interface DiffPart {
  /** Layers of each side; empty: in no layer. */
  readonly layers_a: readonly number[]
  readonly layers_b: readonly number[]
  readonly is_layer: boolean
  /** In the order of b; what only a has is after the node before it. */
  readonly nodes: readonly DiffNode[]
}

/** What differs between two nodes. `sources`: they read the results of other nodes. */
export type NodeDifference = 'role' | 'op' | 'kind' | 'type' | 'shape' | 'sources'

/** A node of a, of b, or of both. */
export interface DiffNode {
  /** `added`: only b has it. */
  readonly change: 'added' | 'removed' | 'changed' | 'same'
  readonly differs: readonly NodeDifference[]
  readonly a: DiffSide | null
  readonly b: DiffSide | null
}

/** A node of one side. Figures are means over the layers of the part. */
export interface DiffSide extends Pick<DagNode, 'name' | 'role' | 'op' | 'kind' | 'type' | 'shape'> {
  /** Of all layers. */
  readonly ids: readonly number[]
  /** What it reads: `Qcur MUL_MAT`, `weight attn_q.weight`, `other layers: l_out ADD`. */
  readonly sources: readonly string[]
  readonly wall_ns: number | null
  readonly bytes_read: number | null
}

/** A graph, and the name of its run. */
export interface NamedDag {
  readonly name: string
  readonly dag: Dag
}

/** How b differs from a. Layers correspond by their number; where the numbers of layers differ, by their place: the last to the last. */
export function diffDags(a: NamedDag, b: NamedDag): DagDiff {
  const [inA, inB] = [fold(a.dag), fold(b.dag)]
  const parts = pairsOf(inA, inB).map(([ofA, ofB]) => partOf(ofA, ofB, a.dag, b.dag))
  return { schema: DAG_DIFF_SCHEMA, a: graphOf(a, inA), b: graphOf(b, inB), parts }
}

function graphOf({ name, dag }: NamedDag, patterns: readonly Pattern[]): DiffGraph {
  const { call, phase, tokens, nodes } = dag
  const operators = nodes.filter(({ kind }) => kind === 'operator').length
  return { name, call, phase, tokens, nodes: nodes.length, operators, layers: layersOf(patterns).length }
}

const layersOf = (patterns: readonly Pattern[]) =>
  [...new Set(patterns.flatMap(({ layers }) => layers))].sort((a, b) => a - b)

type Pair = readonly [a: Pattern | undefined, b: Pattern | undefined]

/** Patterns that correspond: those of corresponding layers, and those of no layer. */
function pairsOf(a: readonly Pattern[], b: readonly Pattern[]): Pair[] {
  const pairs = new Map<string, Pair>()
  const add = (ofA: Pattern | undefined, ofB: Pattern | undefined) => {
    if (ofA || ofB) pairs.set(`${ofA ? a.indexOf(ofA) : ''} ${ofB ? b.indexOf(ofB) : ''}`, [ofA, ofB])
  }
  const [outA, outB] = [a, b].map((patterns) => patterns.filter(({ layers }) => layers.length === 0))
  for (let i = 0; i < Math.max(outA!.length, outB!.length); i++) add(outA![i], outB![i])
  const [layersA, layersB] = [layersOf(a), layersOf(b)]
  const patternOf = (patterns: readonly Pattern[], layer: number | undefined) =>
    layer === undefined ? undefined : patterns.find(({ layers }) => layers.includes(layer))
  const count = Math.max(layersA.length, layersB.length)
  for (let i = 0; i < count; i++)
    add(
      patternOf(a, layersA[placeOf(i, count, layersA.length)]),
      patternOf(b, layersB[placeOf(i, count, layersB.length)]),
    )
  return [...pairs.values()]
}

/** The place among `to` layers of the i-th of `count` layers: the last one to the last one, the others in proportion. */
function placeOf(i: number, count: number, to: number): number {
  if (i === count - 1 || to <= 1) return to - 1
  return Math.min(Math.floor((i * to) / count), to - 2)
}

function partOf(a: Pattern | undefined, b: Pattern | undefined, dagA: Dag, dagB: Dag): DiffPart {
  const [inA, inB] = [a?.nodes ?? [], b?.nodes ?? []]
  const [ofA, ofB] = [new Side(inA, dagA), new Side(inB, dagB)]
  const matched = match(ofA, ofB)
  const rows = inB.map((_, j): { a?: number; b?: number } => ({ a: matched.indexOf(j), b: j }))
  for (const row of rows) if (row.a === -1) delete row.a
  for (const [i, j] of matched.entries()) {
    if (j !== undefined) continue
    const before = i === 0 ? -1 : rows.findIndex((row) => row.a === i - 1)
    rows.splice(before + 1, 0, { a: i })
  }
  return {
    layers_a: a?.layers ?? [],
    layers_b: b?.layers ?? [],
    is_layer: (a?.layers.length ?? 0) + (b?.layers.length ?? 0) > 0,
    nodes: rows.map((row) => nodeOf(row, ofA, ofB, matched)),
  }
}

/** What a source is: a node of this part, by its index, or a text. */
type Source = number | string

/** A node of another layer, whichever: the first layer reads the embedding, the others the layer before. */
const ELSEWHERE = 'other layers'

/** The nodes of one side of a part, and what they read. */
class Side {
  readonly sources: readonly (readonly Source[])[]
  readonly texts: readonly (readonly string[])[]

  constructor(
    readonly nodes: readonly FoldedNode[],
    dag: Dag,
  ) {
    const positions = new Map(nodes.map(({ ids }, i) => [ids[0]!, i]))
    const others = new Map([...dag.nodes, ...dag.outside].map(({ id, role, op }) => [id, `${role} ${op}`.trim()]))
    const leaves = new Map(dag.leaves.map(({ id, kind, role, name }) => [id, `${kind} ${role || name}`]))
    const sourceOf = (id: number): Source => positions.get(id) ?? leaves.get(id) ?? ELSEWHERE
    const textOf = (id: number): string => {
      const at = positions.get(id)
      if (at !== undefined) return nameOf(nodes[at]!)
      return leaves.get(id) ?? [ELSEWHERE, others.get(id)].filter(Boolean).join(': ')
    }
    this.sources = nodes.map(({ mean }) => mean.sources.map(sourceOf))
    this.texts = nodes.map(({ mean }) => mean.sources.map(textOf))
  }
}

const nameOf = ({ mean: { role, op } }: FoldedNode) => [role, op].filter(Boolean).join(' ')

/**
 * By node of a, the node of b that corresponds. First the n-th of a role and op to the n-th of the same role and op; then, of those
 * that are left, the n-th of a role to the n-th of that role; then those of the same op that read corresponding nodes.
 */
function match(a: Side, b: Side): (number | undefined)[] {
  const matched: (number | undefined)[] = a.nodes.map(() => undefined)
  const taken = new Set<number>()
  const pair = (i: number, j: number) => {
    matched[i] = j
    taken.add(j)
  }
  const keys = [({ mean }: FoldedNode) => `${mean.role} ${mean.op}`, ({ mean }: FoldedNode) => mean.role] as const
  for (const keyOf of keys) {
    const free = new Map<string, number[]>()
    for (const [j, node] of b.nodes.entries())
      if (!taken.has(j)) free.set(keyOf(node), [...(free.get(keyOf(node)) ?? []), j])
    for (const [i, node] of a.nodes.entries()) {
      if (matched[i] !== undefined || keyOf(node) === '') continue
      const j = free.get(keyOf(node))?.shift()
      if (j !== undefined) pair(i, j)
    }
  }
  for (const [i, { mean }] of a.nodes.entries()) {
    if (matched[i] !== undefined) continue
    const j = b.nodes.findIndex(
      (other, at) => !taken.has(at) && other.mean.op === mean.op && readsSame(i, at, a, b, matched),
    )
    if (j >= 0) pair(i, j)
  }
  return matched
}

/** Do two nodes read corresponding nodes, in the same order? */
function readsSame(i: number, j: number, a: Side, b: Side, matched: readonly (number | undefined)[]): boolean {
  const [from, to] = [a.sources[i]!, b.sources[j]!]
  if (from.length !== to.length) return false
  return from.every((source, at) => (typeof source === 'string' ? source : matched[source]) === to[at])
}

function nodeOf(
  row: { readonly a?: number; readonly b?: number },
  a: Side,
  b: Side,
  matched: readonly (number | undefined)[],
): DiffNode {
  const [inA, inB] = [sideOf(a, row.a), sideOf(b, row.b)]
  if (!inA || !inB) return { change: inA ? 'removed' : 'added', differs: [], a: inA, b: inB }
  const differs: NodeDifference[] = (['role', 'op', 'kind', 'type', 'shape'] as const).filter(
    (key) => inA[key] !== inB[key],
  )
  if (!readsSame(row.a!, row.b!, a, b, matched)) differs.push('sources')
  return { change: differs.length > 0 ? 'changed' : 'same', differs, a: inA, b: inB }
}

function sideOf(side: Side, i: number | undefined): DiffSide | null {
  if (i === undefined) return null
  const { mean, ids } = side.nodes[i]!
  const { name, role, op, kind, type, shape, wall_ns, bytes_read } = mean
  return { name, role, op, kind, type, shape, ids, sources: side.texts[i]!, wall_ns, bytes_read }
}
