import type { GraphNode } from '../analyze/series/figures.ts'
import { checkNames } from '../errors.ts'
import { DRAW_OPTIONS } from '../generated/option-names.ts'
import { plural } from '../model/units.ts'
import { type Colors, colorsOf } from './colors.ts'
import { backendsOf, type Dag, type DagEdge, type DagNode } from './dag.ts'
import { dataOf, drawnId, drawnLeaf, drawnNode, drawnOutside, nameOf, titleOf } from './draw-nodes.ts'
import type { Drawing, DrawnEdge, DrawnLegend } from './drawing.ts'
import { type FoldedEdge, type FoldedNode, fold, foldEdges, foldLeaves, partsText } from './fold.ts'
import { type ColorScale, METRICS, type Metric, type MetricName, valueText } from './metrics.ts'

/** How a graph is drawn. */
export interface DagDrawOptions {
  /** Name of the run in the title. */
  readonly name: string
  /** Default `time`. */
  readonly colorBy?: MetricName | undefined
  /** Values of nodes in place of a figure. */
  readonly values?: NodeValues | undefined
  /** Default: that of the figure; of values linear. */
  readonly scale?: ColorScale | undefined
  /** Weights as nodes; default true. */
  readonly weights?: boolean | undefined
  /** Views as nodes; default true. Without them, edges lead from what they are views of. */
  readonly views?: boolean | undefined
  /** Parts of the same structure as one, with the mean of each figure. */
  readonly collapse?: boolean | undefined
  /** Writes the shape of the data at each edge. */
  readonly edgeShapes?: boolean | undefined
}

/** Values of nodes from elsewhere. */
export interface NodeValues {
  readonly title: string
  readonly of: (node: GraphNode) => number | undefined
}

/** A node of the drawing, for one node or for those of several layers. */
interface Shown {
  readonly node: DagNode
  readonly folded?: FoldedNode
}

/** Nodes in a frame. */
interface Framed {
  readonly title: string | undefined
  readonly members: readonly Shown[]
}

type DrawnMetric = Pick<Metric, 'title' | 'unit' | 'scale'> & { readonly of: (shown: Shown) => number | null }

/** A graph as a drawing. */
export function draw(dag: Dag, options: DagDrawOptions): Drawing {
  checkNames('draw', options, DRAW_OPTIONS)
  const { views = true, weights = true, collapse = false } = options
  const patterns = collapse ? fold(dag) : undefined
  const isDivided = backendsOf(dag.nodes).length > 1
  const parts = patterns ? patterns.map(frameOf) : layersOf(dag.nodes)
  const frames = (isDivided ? parts.flatMap(bySplit) : parts).map(({ title, members }) => ({
    title,
    members: members.filter(({ node }) => views || node.kind !== 'view'),
  }))
  const shown = frames.flatMap(({ members }) => members)
  const all = patterns ? foldEdges(dag, patterns) : dag.edges.map((edge) => ({ ...edge, isForward: false }))
  const metric = metricOf(options, dag.nodes)
  const colors = colorsOf(
    shown.map(metric.of).filter((value) => value !== null),
    metric.scale,
  )
  const ids = new Set(shown.map(({ node }) => node.id))
  const edges = (views ? all : throughViews(all, dag.nodes)).filter(({ to }) => ids.has(to))
  const read = new Set(edges.map(({ from }) => from))
  const leaves = dag.leaves.filter(({ id, kind }) => read.has(id) && (weights || kind !== 'weight'))
  const outside = dag.outside.filter(({ id }) => read.has(id))
  const sources = new Map(
    [...dag.nodes, ...leaves.map((leaf) => ({ ...leaf, op: '' })), ...outside].map((node) => [node.id, node]),
  )
  const sameLeaves = patterns ? foldLeaves(dag.leaves) : new Map<number, readonly number[]>()
  const weightIds = new Set(dag.leaves.flatMap(({ id, kind }) => (kind === 'weight' ? [id] : [])))
  return {
    title: `${options.name}: ${callText(dag)}`,
    description: descriptionOf(dag, options, metric),
    legend: legendOf(colors, metric, options),
    groups: [
      ...frames.map(({ title, members }) => ({
        title,
        nodes: members.map((shown) => drawnShown(shown, metric, colors, weightIds)),
      })),
      {
        nodes: [
          ...outside.map(drawnOutside),
          ...leaves.map((leaf) => drawnLeaf(leaf, sameLeaves.get(leaf.id)?.length)),
        ],
      },
    ].filter(({ nodes }) => nodes.length > 0),
    edges: edges.flatMap((edge) => {
      const [from, to] = [sources.get(edge.from), sources.get(edge.to)]
      return from && to ? [drawnEdge(edge, from, to, options)] : []
    }),
  }
}

/** Number of nodes and edges of a drawing: its layout takes longer the more it has. */
export function sizeOf({ groups, edges }: Drawing): { readonly nodes: number; readonly edges: number } {
  return { nodes: groups.reduce((sum, { nodes }) => sum + nodes.length, 0), edges: edges.length }
}

/** `call 2 (decode, 1 token)` */
export function callText({ call, phase, tokens }: Pick<Dag, 'call' | 'phase' | 'tokens'>): string {
  if (call < 0) return 'a graph run in no recorded call'
  const facts = tokens === null ? [] : [`${tokens} token${tokens === 1 ? '' : 's'}`]
  return `call ${call} (${[phase, ...facts].join(', ')})`
}

function frameOf(pattern: ReturnType<typeof fold>[number]): Framed {
  const { parts, layers, nodes } = pattern
  const times = parts === 1 ? '' : `: ${parts} × this, with the mean of each figure`
  const title = parts === 1 && layers.length === 0 ? undefined : partsText(pattern) + times
  return { title, members: nodes.map((folded) => ({ node: folded.mean, folded })) }
}

function layersOf(nodes: readonly DagNode[]): Framed[] {
  const hasRuns = (nodes.at(-1)?.run ?? 0) > 0
  const byLayer = new Map<string, { readonly title: string | undefined; readonly members: Shown[] }>()
  for (const node of nodes) {
    const { in_layer, run } = node
    const title = in_layer < 0 ? undefined : `layer ${in_layer}${hasRuns ? `, graph run ${run}` : ''}`
    const layer = byLayer.get(`${run} ${in_layer}`) ?? { title, members: [] }
    layer.members.push({ node })
    byLayer.set(`${run} ${in_layer}`, layer)
  }
  return [...byLayer.values()]
}

/** Nodes of a frame that one backend computes in one piece, in a frame of their own with its name. */
function bySplit({ title, members }: Framed): Framed[] {
  const found: { readonly split: number | null; readonly framed: Framed & { readonly members: Shown[] } }[] = []
  for (const shown of members) {
    const { split, backend } = shown.node
    const isOfSeveral = (shown.folded?.ids.length ?? 1) > 1
    const last = found.at(-1)
    // Views are of no split: they remain with the nodes before them.
    if (last && (split === null || last.split === split)) last.framed.members.push(shown)
    else {
      const name = backend || 'an unnamed backend'
      const place = split === null ? undefined : isOfSeveral ? name : `${name}, split ${split}`
      found.push({
        split,
        framed: { title: [title, place].filter(Boolean).join(' · ') || undefined, members: [shown] },
      })
    }
  }
  return found.map(({ framed }) => framed)
}

function metricOf({ colorBy = 'time', values, scale }: DagDrawOptions, nodes: readonly DagNode[]): DrawnMetric {
  const metric: Metric = METRICS[colorBy]
  const title = (label: string) => `${label}, ${scale ?? (values ? 'linear' : metric.scale)} scale`
  if (!values)
    return { ...metric, title: title(metric.title), scale: scale ?? metric.scale, of: ({ node }) => metric.of(node) }
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const figureOf = ({ node, folded }: Shown) => {
    const found = (folded?.ids ?? [node.id])
      .map((id) => values.of(byId.get(id)!))
      .filter((value) => value !== undefined)
    return found.length === 0 ? null : found.reduce((sum, value) => sum + value, 0) / found.length
  }
  return { title: title(values.title), unit: '', scale: scale ?? 'linear', of: figureOf }
}

/** Edges that lead from what a view is of, in place of the view. */
function throughViews(edges: readonly FoldedEdge[], nodes: readonly DagNode[]): FoldedEdge[] {
  const views = new Set(nodes.flatMap(({ id, kind }) => (kind === 'view' ? [id] : [])))
  const into = new Map<number, FoldedEdge[]>()
  for (const edge of edges) if (views.has(edge.to)) into.set(edge.to, [...(into.get(edge.to) ?? []), edge])
  const found = new Map<string, FoldedEdge>()
  for (const edge of edges) {
    if (views.has(edge.to)) continue
    const seen = new Set<string>()
    const stack = [{ from: edge.from, isForward: edge.isForward }]
    for (let top = stack.pop(); top; top = stack.pop()) {
      const { from, isForward } = top
      if (views.has(from)) {
        // A damaged graph may have views of each other.
        if (seen.has(`${from} ${isForward}`)) continue
        seen.add(`${from} ${isForward}`)
        for (const next of into.get(from) ?? []) stack.push({ from: next.from, isForward: isForward || next.isForward })
        continue
      }
      const key = `${from} ${edge.to} ${edge.kind}`
      if (!found.has(key)) found.set(key, { ...edge, from, isForward })
    }
  }
  return [...found.values()]
}

function drawnShown(shown: Shown, metric: DrawnMetric, colors: Colors | undefined, weights: ReadonlySet<number>) {
  const { node, folded } = shown
  const value = metric.of(shown)
  const isFolded = folded !== undefined && folded.ids.length > 1
  const slowest =
    isFolded && folded.slowest_ns !== null
      ? [`slowest: ${valueText(folded.slowest_ns, 'ns')}, in layer ${folded.slowest_layer}`]
      : []
  const further = isFolded ? [`the mean of ${plural(folded.ids.length, 'node')}`, ...slowest] : []
  return drawnNode(node, {
    name: isFolded ? node.role || node.op : node.name,
    value: value === null ? '' : valueText(value, metric.unit),
    color: value === null ? undefined : colors?.of(value),
    title: titleOf(node, further),
    readsWeights: node.sources.some((id) => weights.has(id)),
  })
}

function drawnEdge(
  { from, to, kind, isForward }: Pick<DagEdge, 'from' | 'to' | 'kind'> & { readonly isForward: boolean },
  source: Pick<GraphNode, 'name' | 'op' | 'type' | 'shape'>,
  node: GraphNode | DagNode | { readonly name: string; readonly op: string },
  { edgeShapes }: DagDrawOptions,
): DrawnEdge {
  const how =
    kind === 'memory' ? '\nthrough memory: it reads what the other wrote' : isForward ? '\nin the next layer' : ''
  return {
    from: drawnId(from),
    to: drawnId(to),
    title: `${nameOf(source)} → ${nameOf(node)}, ${dataOf(source)}${how}`,
    label: edgeShapes ? source.shape : undefined,
    isDashed: kind === 'memory' || isForward,
    isLoose: isForward,
  }
}

function descriptionOf(dag: Dag, { collapse, colorBy, values }: DagDrawOptions, metric: DrawnMetric): string {
  const operators = dag.nodes.filter(({ kind }) => kind === 'operator')
  const heaviest = [...operators].sort((a, b) => (b.wall_ns ?? 0) - (a.wall_ns ?? 0)).slice(0, 5)
  const list = heaviest.map((node) => `${nameOf(node)} (${valueText(node.wall_ns ?? 0, 'ns')})`).join(', ')
  return [
    `A graph of ${plural(dag.nodes.length, 'node')}, ${operators.length} of them computed; arrows lead from data to the nodes that read it.`,
    ...(collapse ? ['Layers with the same structure are drawn once.'] : []),
    `Colours show ${values ? metric.title : METRICS[colorBy ?? 'time'].title}.`,
    ...(heaviest.length > 0 ? [`Most time: ${list}.`] : []),
  ].join(' ')
}

/** Cells in a legend. */
const CELLS = 5

function legendOf(
  colors: Colors | undefined,
  { title, unit }: DrawnMetric,
  { views = true, collapse }: DagDrawOptions,
): DrawnLegend {
  const count = !colors || colors.least === colors.most ? 1 : CELLS
  const places = Array.from({ length: count }, (_, i) => (count === 1 ? 1 : i / (count - 1)))
  const cells = colors
    ? places.map((place) => ({ value: colors.at(place), label: valueText(colors.at(place), unit) }))
    : []
  return {
    title: colors ? title : `${title}: not known`,
    cells: cells.map(({ value, label }) => ({ ...colors!.of(value), label })),
    notes: [
      `thick outline: reads weights · dashed outline: computed with another node, or not recorded${views ? ' · no outline: a view' : ''}`,
      `dashed arrow: through memory, such as a cache${collapse ? ', or to the next layer' : ''}`,
    ],
  }
}
