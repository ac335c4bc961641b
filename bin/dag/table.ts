import {
  backendsOf,
  callText,
  coreKindsIn,
  type Dag,
  type FoldedNode,
  fold,
  METRICS,
  type MetricName,
  type NodeValues,
  type Pattern,
  partsText,
  valueText,
} from '../../lib/cli.ts'
import type { Column, Section } from '../stats/section.ts'
import { firstRows, more } from '../stats/section.ts'
import { duration, percent, plural, threeDigits } from '../units.ts'

/** What the table shows. */
export interface TableOptions {
  readonly colorBy: MetricName
  readonly values: NodeValues | undefined
  /** Only so many nodes, those with the most of `colorBy`. */
  readonly top: number | undefined
  readonly views: boolean
}

/** Characters of the longest bar. */
const BAR = 12
/** Operators in the first line. */
const FIRST = 3
/** Rows of a part, without `top`. */
const ROWS_MAX = 100

const COLUMNS: readonly Column[] = [
  { title: '#' },
  { title: 'node', isText: true },
  { title: 'op', isText: true },
  { title: 'in', isText: true, rank: 2 },
  { title: 'result', isText: true, rank: 4 },
  { title: 'time' },
  { title: 'share' },
  { title: '', isText: true, rank: 1 },
  { title: 'slowest', rank: 6 },
  { title: 'bytes', rank: 3 },
  { title: 'GB/s' },
  { title: 'imbalance', rank: 2 },
]
const SHOWN: ReadonlySet<MetricName> = new Set(['time', 'bytes', 'gbps', 'imbalance', 'order'])

interface Row {
  readonly folded: FoldedNode
  readonly of: Pattern
  readonly value: number | null
}

/** The graph in one line: how long its nodes take, and which of them the longest. */
export function dagLine(dag: Dag): string {
  const totalNs = dag.nodes.reduce((sum, { wall_ns }) => sum + (wall_ns ?? 0), 0)
  const nodes = `${callText(dag)}: ${plural(dag.nodes.length, 'node')}`
  if (totalNs === 0) return nodes
  const sums = new Map<string, number>()
  for (const { role, op, wall_ns } of dag.nodes) {
    const name = `${role} ${op}`.trim()
    sums.set(name, (sums.get(name) ?? 0) + (wall_ns ?? 0))
  }
  const first = [...sums].sort(([, a], [, b]) => b - a).slice(0, FIRST)
  const named = first.map(([name, ns]) => `${name} ${percent(ns / totalNs)}`)
  return `${nodes} in ${duration(totalNs)}, most of it ${named.join(', ')}`
}

/** Where there are several backends: the splits of the graph, and the layers and nodes of each backend. */
function splitsFact({ nodes }: Dag): [string, string][] {
  const backends = backendsOf(nodes)
  if (backends.length < 2) return []
  const texts = backends.map((backend) => {
    const own = nodes.filter((node) => node.backend === backend)
    const splits = new Set(own.map(({ split }) => split)).size
    return `${backend} ${plural(splits, 'split')} with ${plural(own.length, 'node')}`
  })
  return [['backends', texts.join(', ')]]
}

/** A graph for people: its nodes in their order, layers of the same structure once. */
export function dagSections(dag: Dag, options: TableOptions): Section[] {
  const patterns = fold(dag)
  const byId = new Map(dag.nodes.map((node) => [node.id, node]))
  const figureOf = (folded: FoldedNode) => {
    if (!options.values) return METRICS[options.colorBy].of(folded.mean)
    const found = folded.ids.map((id) => options.values!.of(byId.get(id)!)).filter((value) => value !== undefined)
    return found.length === 0 ? null : found.reduce((sum, value) => sum + value, 0) / found.length
  }
  const parts = patterns.map((pattern) => ({
    of: pattern,
    rows: pattern.nodes
      .filter(({ mean: { kind } }) => options.views || kind !== 'view')
      .map((folded): Row => ({ folded, of: pattern, value: figureOf(folded) })),
  }))
  const totalNs = dag.nodes.reduce((sum, { wall_ns }) => sum + (wall_ns ?? 0), 0)
  const all = parts.flatMap(({ rows }) => rows)
  const most = Math.max(...all.map(({ folded, of: pattern }) => (folded.mean.wall_ns ?? 0) * pattern.parts))
  const isDivided = backendsOf(dag.nodes).length > 1
  const kinds = coreKindsIn(dag.nodes.map(({ by_core_kind }) => ({ kinds: by_core_kind ?? [] })))
  const tableOf = (rows: readonly Row[]) => ({
    columns: [
      ...COLUMNS,
      ...kinds.map((kind) => ({ title: `on ${kind || 'unknown'}`, rank: 5 })),
      ...(isDivided ? [{ title: 'on', isText: true }] : []),
      ...valueColumn(options),
    ],
    rows: rows.map((row) => cellsOf(row, { totalNs, most, isDivided, kinds, ...options })),
  })
  const operators = dag.nodes.filter(({ kind }) => kind === 'operator').length
  const facts: [string, string][] = [
    ['call', callText(dag).replace(/^call /, '')],
    ['nodes', `${plural(dag.nodes.length, 'node')}, ${operators} computed, ${plural(dag.edges.length, 'edge')}`],
    ['time', `${duration(totalNs)}, the sum over nodes`],
    ...splitsFact(dag),
  ]
  const graph: Section = { title: 'graph', facts }
  if (options.top !== undefined) {
    const sorted = all.filter(({ value }) => value !== null).sort((a, b) => weightOf(b, options) - weightOf(a, options))
    return [graph, { title: `most ${titleOf(options)}`, tables: [tableOf(sorted.slice(0, options.top))] }]
  }
  return [
    graph,
    ...parts.map(({ of: pattern, rows }): Section => {
      const { shown, rest } = firstRows(rows, ROWS_MAX)
      const mean = pattern.parts > 1 ? `; figures are means of ${pattern.parts}, shares are of all` : ''
      return {
        title: partsText(pattern) + mean,
        tables: [tableOf(shown)],
        ...(rest.length > 0 ? { lines: [`${more(rest)}: --nodes, --layers or --top chooses`] } : {}),
      }
    }),
  ]
}

const titleOf = ({ values, colorBy }: TableOptions) => values?.title ?? METRICS[colorBy].title

const isSum = (metric: MetricName) => ['time', 'compute', 'wait', 'bytes', 'weights', 'flop'].includes(metric)

/** The order of `top`: of times, bytes and FLOP all layers count. */
const weightOf = ({ value, of: pattern }: Row, { values, colorBy }: TableOptions) =>
  (value ?? 0) * (values === undefined && isSum(colorBy) ? pattern.parts : 1)

const valueColumn = (options: TableOptions): Column[] =>
  options.values || !SHOWN.has(options.colorBy) ? [{ title: titleOf(options) }] : []

function cellsOf(
  { folded, of: pattern, value }: Row,
  options: TableOptions & {
    readonly totalNs: number
    readonly most: number
    readonly isDivided: boolean
    readonly kinds: readonly string[]
  },
): string[] {
  const { mean, ids, slowest_ns, slowest_layer } = folded
  const { totalNs, most } = options
  const wallNs = mean.wall_ns === null ? null : mean.wall_ns * ids.length
  const text = (value: number | null, format: (value: number) => string) => (value === null ? '' : format(value))
  const slowest = slowest_ns === null || ids.length === 1 ? '' : `${duration(slowest_ns)} in ${slowest_layer}`
  const unit = options.values ? '' : METRICS[options.colorBy].unit
  return [
    `${ids[0]}`,
    ids.length > 1 ? mean.role || '–' : mean.name,
    mean.op + (mean.kind === 'fused' ? ' (fused)' : ''),
    options.top === undefined ? '' : partsText(pattern),
    [mean.type, mean.shape].filter(Boolean).join(' '),
    text(mean.wall_ns, duration),
    text(wallNs, (ns) => percent(totalNs === 0 ? 0 : ns / totalNs)),
    text(wallNs, (ns) => '▇'.repeat(Math.max(0, Math.round((BAR * ns) / most)))),
    slowest,
    text(METRICS.bytes.of(mean), (bytes) => valueText(bytes, 'bytes')),
    text(mean.gb_per_s, threeDigits),
    text(mean.imbalance_share, percent),
    ...options.kinds.map((kind) => {
      const found = mean.by_core_kind?.find((row) => row.kind === kind)
      return found ? duration(found.time_ns) : ''
    }),
    ...(options.isDivided ? [mean.backend ?? ''] : []),
    ...valueColumn(options).map(() =>
      text(value, (value) => (unit === '' ? threeDigits(value) : valueText(value, unit))),
    ),
  ]
}
