import { getOrMake } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { Defined } from '../graph/defined.ts'
import type { MovedOperators, MovedReason } from './figures.ts'
import type { GraphParts, GraphPartsFinder, NodeGroup } from './graph-parts.ts'
import { backendOfBuffer, placeOf } from './homes.ts'
import type { Refusals } from './refusals.ts'

/** What rows of moved operators are made from. */
export interface MovedOf {
  readonly defined: Defined
  readonly refusals: Refusals
  readonly finder: GraphPartsFinder
  /** By layer, the backend that it belongs to. */
  readonly homes: ReadonlyMap<number, { readonly backend: string | null }>
  readonly devices: readonly string[]
}

/** Runs of graphs with the same parts. */
interface Runs {
  /** Ids of one node of each group. */
  readonly examples: Int32Array
  readonly runs: number
  readonly ns: number
  readonly inputBytes: number
}

interface Why {
  readonly reason: MovedReason
  readonly detail: string
  readonly refused: string | null
}

/** A row, while it is summed. */
interface Row extends Why {
  readonly layerBackend: string
  readonly backend: string
  readonly ops: Map<string, number>
  readonly further: Map<string, number>
  readonly layers: Set<number>
  nodes: number
  splits: number
  ns: number
  inputBytes: number
  example: number
}

const UNKNOWN: Why = { reason: 'unknown', detail: '', refused: null }

/** Operators of a phase that another backend than that of their layer computes, by reason. */
export function movedRows(
  of: MovedOf,
  phase: Phase,
  calls: number,
  all: ReadonlyMap<GraphParts, Runs>,
): Omit<MovedOperators, 'decided'>[] {
  const rows = new Map<string, Row>()
  for (const [parts, runs] of all) addGraph(of, parts, runs, rows)
  // At the border of two layers that belong to two backends, nodes of the one are computed with the other.
  const own = [...rows.values()].filter(({ reason, splits }) => reason !== 'unknown' || splits > 0)
  return own.map((row) => ({
    ...{ phase, backend: row.backend, layer_backend: row.layerBackend, reason: row.reason, detail: row.detail },
    refused: row.refused,
    ops: inOrder(row.ops),
    further_ops: inOrder(row.further).filter((op) => !row.ops.has(op)),
    layers: [...row.layers].sort((a, b) => a - b),
    ...{ calls, nodes: row.nodes, splits: row.splits, time_ns: row.ns, input_bytes: row.inputBytes },
    example: of.finder.describe(row.example),
  }))
}

/** Most nodes first. */
export const inOrder = (ops: ReadonlyMap<string, number>) => [...ops].sort((a, b) => b[1] - a[1]).map(([op]) => op)

/** A graph is of the reason that most of its moved nodes have: those without one of their own follow these. */
function addGraph(
  of: MovedOf,
  parts: GraphParts,
  { examples, runs, ns, inputBytes }: Runs,
  rows: Map<string, Row>,
): void {
  const backend = of.defined.names.text(parts.backend)
  const place = placeOf(backend)
  const moved = parts.groups.flatMap((group, i) => {
    const example = examples[i]!
    const home = of.homes.get(group.layer)?.backend ?? null
    return home === null || home === place
      ? []
      : [{ group, example, home, why: whyOf(of, group, example, place, home) }]
  })
  if (moved.length === 0) return
  const main = moved.find(({ why }) => why !== undefined) ?? moved[0]!
  const why = main.why ?? UNKNOWN
  const key = [backend, main.home, why.reason, why.detail].join('\0')
  const row = getOrMake(
    rows,
    key,
    (): Row => ({
      ...{ ...why, backend, layerBackend: main.home, ops: new Map(), further: new Map(), layers: new Set() },
      ...{ nodes: 0, splits: 0, ns: 0, inputBytes: 0, example: main.example },
    }),
  )
  let nodes = 0
  for (const { group, why: own } of moved) {
    nodes += group.count
    row.layers.add(group.layer)
    const ops = own || !main.why ? row.ops : row.further
    ops.set(group.op, (ops.get(group.op) ?? 0) + group.count * runs)
  }
  row.nodes += nodes * runs
  // A split that consists of other nodes mostly would be there without these, too.
  if (2 * nodes <= parts.nodes) return
  row.splits += runs
  row.ns += ns
  row.inputBytes += inputBytes
}

/** Why this backend computes a node of a layer of `home`; undefined: not for a reason of its own. */
function whyOf(
  of: MovedOf,
  { weights, cache }: NodeGroup,
  example: number,
  place: string,
  home: string,
): Why | undefined {
  const { devices, refusals, defined } = of
  const isHere = (buffer: string | undefined) => buffer !== undefined && backendOfBuffer(buffer, devices) === place
  if (isHere(weights)) {
    const asked = of.finder.weightsRead(example).flatMap((weight) => refusals.ofWeight(home, weight) ?? [])
    return { reason: 'weights', detail: weights!, refused: asked[0] ? refusals.describe(asked[0]) : null }
  }
  const node = defined.tensors[example]!
  const sources = node.sources.flatMap((source) => defined.tensors[source] ?? [])
  const refusal = refusals.ofNode('supports-op', home, node, sources)
  if (refusal) return { reason: 'refused', detail: 'supports_op', refused: refusals.describe(refusal) }
  if (isHere(cache)) return { reason: 'kv-cache', detail: cache!, refused: null }
  return undefined
}
