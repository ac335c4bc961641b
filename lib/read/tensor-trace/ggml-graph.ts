// A graph: ggml_graph_dump_dot's output as the TensorTrace tools convert it (graphs/token-NNNNN.json).
//
//     {"token_id": 0, "metadata": {…}, "nodes": [{"id": "node_3", "address": "0x59b797b9d980", "label": "Qcur-0",
//       "operation": "X*Y", "shape": [4096, 2], "dtype": "f32", "layer_id": 0, …}], "edges": [{"source": "node_2",
//       "target": "node_3", "label": "src 1"}]}
//
// dtype is not reliable ("reshaped", "view") and not used.

import { type JsonObject, listOf, readJson, shapeOf, textOf, wholeOf } from '../../input/json.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import { plural } from '../../model/units.ts'
import { UNKNOWN } from '../../model/unknown.ts'
import { containing } from '../common/holdings.ts'
import type { Format } from '../format.ts'

/** ggml_op_symbol of ops whose symbol is not their name. */
const SYMBOLS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'X*Y': 'MUL_MAT',
    'X[i]*Y': 'MUL_MAT_ID',
    'x*y': 'MUL',
    'x+y': 'ADD',
    'x[i]+y': 'ADD_ID',
    'x-y': 'SUB',
    'x/y': 'DIV',
    'x*v': 'SCALE',
    'x^2': 'SQR',
    'x->y': 'CPY',
  }),
)

export const ggmlGraph: Format = {
  name: 'ggml-graph',
  title: 'graph of the TensorTrace tools (graphs/token-NNNNN.json): nodes with their layers',
  isCompanion: true,

  sniff(head) {
    const text = new TextDecoder().decode(head).trimStart()
    if (!text.startsWith('{')) return false
    return (
      (/"total_nodes"\s*:/.test(text) && /"total_edges"\s*:/.test(text)) ||
      (/"nodes"\s*:\s*\[/.test(text) && /"operation"\s*:/.test(text))
    )
  },

  async *read(source, { names }) {
    const document = await readJson(source, ggmlGraph.name)
    const listed = listOf(document, 'nodes', ggmlGraph.name)
    const nodes = listed.filter((node) => textOf(node, 'id') !== '')
    const edges = listOf(document, 'edges', ggmlGraph.name)
    const contents = containing(`a graph of ${plural(nodes.length, 'node')}`)
    yield [
      { kind: 'input', format: ggmlGraph.name, clock: 'none', originNs: 0n, ...contents },
      ...listed.flatMap((node, i) => (textOf(node, 'id') === '' ? [withoutId(i)] : [])),
      ...tensorsOf(nodes, edges, names),
    ]
  },
}

const withoutId = (index: number) =>
  issueOf('companion-entry', `node ${index}: expected its id, found none`, { byte: 0 }, 0)

/** Every node after its sources. */
function* tensorsOf(
  nodes: readonly JsonObject[],
  edges: readonly JsonObject[],
  names: Names,
): Generator<TraceEvent, void> {
  const sourcesOf = sourcesIn(edges)
  const byKey = new Map(nodes.map((node) => [textOf(node, 'id'), node] as const))
  const ids = new Map<string, number>()
  for (const key of sorted(byKey.keys(), sourcesOf)) {
    const wanted = sourcesOf.get(key) ?? []
    const sources = wanted.flatMap((source) => ids.get(source) ?? [])
    if (sources.length < wanted.length) {
      const detail = `a source of "${key.slice(0, 50)}" is not in the graph, or is computed from this node`
      yield issueOf('graph-edge', detail, { byte: 0 }, 0)
    }
    const node = byKey.get(key)
    if (!node) continue
    const id = ids.size
    ids.set(key, id)
    yield { ...tensorOf(node, wanted.length === 0, names), id, sources }
  }
}

/** The sources of each node, in ggml's order. (A result of ggml_cast has itself as a source, which is left out.) */
function sourcesIn(edges: readonly JsonObject[]): Map<string, string[]> {
  const sourcesOf = new DefaultMap<string, string[]>(() => [])
  const order = (edge: JsonObject) => textOf(edge, 'label')
  const inOrder = [...edges].sort((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0))
  for (const edge of inOrder) {
    const [source, target] = [textOf(edge, 'source'), textOf(edge, 'target')]
    if (source !== target) sourcesOf.of(target).push(source)
  }
  return sourcesOf
}

/** Topological order by depth-first search, without recursion: a graph may be as deep as it has nodes. */
function sorted(keys: Iterable<string>, sourcesOf: ReadonlyMap<string, readonly string[]>): Set<string> {
  const done = new Set<string>()
  const begun = new Set<string>()
  for (const key of keys) {
    const stack = [key]
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      if (begun.has(top)) {
        done.add(top)
        stack.pop()
        continue
      }
      begun.add(top)
      for (const source of sourcesOf.get(top) ?? []) if (!begun.has(source)) stack.push(source)
    }
  }
  return done
}

function tensorOf(node: JsonObject, isLeaf: boolean, names: Names) {
  const address = /^0x[\da-f]{1,13}$/.test(textOf(node, 'address')) ? Number(node['address']) : 0
  return {
    ...UNKNOWN.tensor,
    name: names.id(textOf(node, 'label')),
    layer: wholeOf(node, 'layer_id') ?? -1,
    op: isLeaf ? 0 : names.id(opOf(textOf(node, 'operation'))),
    ne: shapeOf(node),
    structAddress: address,
  }
}

/** `rms_norm(x)` is RMS_NORM; unknown symbols stay unchanged. A dot file has `\\>` for `>`. */
function opOf(symbol: string): string {
  const call = /^(\w+)\(/.exec(symbol)
  return SYMBOLS.get(symbol.replace('\\>', '>')) ?? (call ? call[1]!.toUpperCase() : symbol)
}
