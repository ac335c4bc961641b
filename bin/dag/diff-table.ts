import { callText, type DagDiff, type DiffNode, type DiffPart, differencesOf, diffPartText } from '../../lib/cli.ts'
import type { Column, Section } from '../stats/section.ts'
import { firstRows, more } from '../stats/section.ts'
import { duration, plural } from '../units.ts'

const COLUMNS: readonly Column[] = [
  { title: '', isText: true },
  { title: 'node', isText: true },
  { title: 'op', isText: true },
  { title: 'time a' },
  { title: 'time b' },
  { title: 'change' },
  { title: 'what', isText: true },
]
const MARKS = { added: '+', removed: '−', changed: '~', same: '' } as const
/** Where more nodes differ in their shape alone, the models have different sizes: one line for all. */
const SHAPES_MAX = 4
/** Rows of nodes that differ in their time only. */
const TIMES = 3

/** How two graphs differ, for people. `top`: rows of nodes that were added, removed and changed, each, of each part. */
export function diffSections(diff: DagDiff, top: number): Section[] {
  const graphs = (['a', 'b'] as const).map((side): [string, string] => {
    const { name, nodes, operators, layers } = diff[side]
    const size = `${plural(nodes, 'node')}, ${operators} computed, ${plural(layers, 'layer')}`
    return [side, `${name}, ${callText(diff[side])}: ${size}`]
  })
  const same = diff.parts.filter((part) => part.nodes.every(({ change }) => change === 'same'))
  return [
    {
      title: 'graphs',
      facts: graphs,
      lines: ['times are of one call each; ggml2perfetto compare says what is certain'],
    },
    ...diff.parts.map((part) => partSection(part, top)),
    ...(same.length === diff.parts.length
      ? [{ title: 'the structure of both graphs is the same: ops, types, shapes and sources' }]
      : []),
  ]
}

function partSection(part: DiffPart, top: number): Section {
  const nodesWith = (change: DiffNode['change']) => part.nodes.filter((node) => node.change === change)
  const shapes = part.nodes.filter(({ differs }) => differs.length === 1 && differs[0] === 'shape')
  const isOtherSize = shapes.length > SHAPES_MAX
  const differing = part.nodes.filter((node) => node.change !== 'same' && !(isOtherSize && shapes.includes(node)))
  const counts = (['added', 'removed', 'changed'] as const)
    .map((change) => ({ change, count: nodesWith(change).length }))
    .filter(({ count }) => count > 0)
    .map(({ change, count }) => `${count} ${change}`)
  // Nodes that read another node because of those that were added or removed are the least of news.
  const order = ({ differs }: DiffNode) => (differs.length === 1 && differs[0] === 'sources' ? 1 : 0)
  const sorted = [...differing].sort((a, b) => order(a) - order(b))
  const rows = (['added', 'removed', 'changed'] as const).map((change) =>
    firstRows(
      sorted.filter((node) => node.change === change),
      top,
    ),
  )
  const [shown, rest] = [rows.flatMap((row) => row.shown), rows.flatMap((row) => row.rest)]
  const slower = [...nodesWith('same'), ...(isOtherSize ? shapes : [])]
    .filter((node) => changeNs(node) !== null)
    .sort((a, b) => Math.abs(changeNs(b)!) - Math.abs(changeNs(a)!))
    .slice(0, TIMES)
  const [a, b] = (['a', 'b'] as const).map((side) =>
    part.nodes.reduce((sum, node) => sum + (node[side]?.wall_ns ?? 0), 0),
  ) as [number, number]
  return {
    title: `${diffPartText(part)}: ${counts.length === 0 ? 'the same nodes' : counts.join(', ')}`,
    facts: [['time', `${duration(a)} → ${duration(b)}${part.is_layer ? ' a layer' : ''}`]],
    tables: [{ columns: COLUMNS, rows: [...shown, ...slower].map(cellsOf) }],
    lines: [
      ...(rest.length > 0
        ? [`${more(rest)}: --top ${Math.max(...rows.map(({ shown, rest }) => shown.length + rest.length))}, --json`]
        : []),
      ...(isOtherSize
        ? [`${plural(shapes.length, 'node')} with another shape, such as ${shapeText(shapes.at(-1)!)}`]
        : []),
    ],
  }
}

/** `Qcur MUL_MAT: 512 → 896` */
const shapeText = ({ a, b }: DiffNode) => `${[b!.role, b!.op].filter(Boolean).join(' ')}: ${a!.shape} → ${b!.shape}`

const ratioText = (ratio: number) => (ratio < 0.005 ? '< × 0.01' : `× ${ratio.toFixed(2)}`)

const changeNs = ({ a, b }: DiffNode) =>
  a === null || b === null || a.wall_ns === null || b.wall_ns === null ? null : b.wall_ns - a.wall_ns

function cellsOf(node: DiffNode): string[] {
  const { change, a, b } = node
  const side = (b ?? a)!
  const time = (ns: number | null | undefined) => (ns === null || ns === undefined ? '' : duration(ns))
  const ratio = changeNs(node) === null || !a?.wall_ns ? '' : ratioText(b!.wall_ns! / a.wall_ns)
  const what =
    a && b
      ? differencesOf(node)
      : [[side.type, side.shape].filter(Boolean).join(' '), `reads ${side.sources.join(', ')}`]
  return [MARKS[change], side.role || '–', side.op, time(a?.wall_ns), time(b?.wall_ns), ratio, what.join(', ')]
}
