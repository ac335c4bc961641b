import { callText, type DagDiff, type DiffNode, type DiffPart, differencesOf, diffPartText } from '../../lib/index.ts'
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
/** Rows of nodes that differ in their time only. */
const TIMES = 3

/** How two graphs differ, for people. `top`: rows of nodes that differ, of each part. */
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
  const of = (change: DiffNode['change']) => part.nodes.filter((node) => node.change === change)
  const differing = part.nodes.filter(({ change }) => change !== 'same')
  const counts = (['added', 'removed', 'changed'] as const)
    .map((change) => ({ change, count: of(change).length }))
    .filter(({ count }) => count > 0)
    .map(({ change, count }) => `${count} ${change}`)
  // Nodes that read another node because of those that were added or removed are the least of news.
  const order = (node: DiffNode) =>
    node.change === 'changed' ? (node.differs.every((key) => key === 'sources') ? 2 : 1) : 0
  const { shown, rest } = firstRows(
    [...differing].sort((a, b) => order(a) - order(b)),
    top,
  )
  const slower = of('same')
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
    ...(rest.length > 0 ? { lines: [`${more(rest)}: --top ${differing.length}, --json`] } : {}),
  }
}

const changeNs = ({ a, b }: DiffNode) =>
  a === null || b === null || a.wall_ns === null || b.wall_ns === null ? null : b.wall_ns - a.wall_ns

function cellsOf(node: DiffNode): string[] {
  const { change, a, b } = node
  const of = (b ?? a)!
  const time = (ns: number | null | undefined) => (ns === null || ns === undefined ? '' : duration(ns))
  const ratio = changeNs(node) === null || !a?.wall_ns ? '' : `× ${(b!.wall_ns! / a.wall_ns).toFixed(2)}`
  const what =
    a && b ? differencesOf(node) : [[of.type, of.shape].filter(Boolean).join(' '), `reads ${of.sources.join(', ')}`]
  return [MARKS[change], of.role || '–', of.op, time(a?.wall_ns), time(b?.wall_ns), ratio, what.join(', ')]
}
