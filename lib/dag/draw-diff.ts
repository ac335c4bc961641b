import type { DagDiff, DiffNode, DiffPart, DiffSide, NamedDag } from './diff.ts'
import { callText } from './draw.ts'
import { shapeOf } from './draw-nodes.ts'
import type { Drawing, DrawnEdge, DrawnNode } from './drawing.ts'
import { rangesText } from './fold.ts'
import { valueText } from './metrics.ts'

/** Colours that people with colour blindness can distinguish (Okabe and Ito, 2008); each has a mark, too. */
const STYLES = {
  added: { mark: '+ ', fill: '#0072b2', text: '#ffffff' },
  removed: { mark: '− ', fill: '#e69f00', text: '#000000' },
  changed: { mark: '~ ', fill: '#f0e442', text: '#000000' },
  same: { mark: '', fill: '#ffffff', text: '#000000' },
} as const satisfies Readonly<Record<DiffNode['change'], unknown>>

/** `layers 0–4`, or of both sides where they differ. */
export function diffPartText({ layers_a, layers_b, is_layer }: DiffPart): string {
  if (!is_layer) return 'in no layer'
  const text = (layers: readonly number[]) =>
    layers.length === 0 ? 'nothing' : `layer${layers.length === 1 ? '' : 's'} ${rangesText(layers)}`
  const [a, b] = [text(layers_a), text(layers_b)]
  return a === b ? a : `${a} of a, ${b} of b`
}

/** `6.43 µs → 7.1 µs`; empty where neither is known. */
function timesText({ a, b }: DiffNode): string {
  const text = (side: DiffSide | null) => (side === null || side.wall_ns === null ? '' : valueText(side.wall_ns, 'ns'))
  return a && b ? [...new Set([text(a), text(b)])].filter(Boolean).join(' → ') : text(a ?? b)
}

/** `shape: 512 → 896`: what differs in a node. */
export function differencesOf({ differs, a, b }: DiffNode): string[] {
  return differs.map((key) => {
    const text = (side: DiffSide) =>
      key === 'sources' ? `reads ${side.sources.join(', ') || 'nothing'}` : side[key] || 'none'
    const [before, after] = [text(a!), text(b!)]
    if (key === 'sources')
      return before === after ? 'reads another node of that name' : `${after} (a: ${before.slice(6)})`
    return `${key === 'role' ? 'name' : key}: ${before} → ${after}`
  })
}

/** Both graphs as one drawing. Layers of the same structure are drawn once. */
export function drawDiff(diff: DagDiff, a: NamedDag, b: NamedDag): Drawing {
  const groups = diff.parts.map((part, p) => ({
    title: part.is_layer ? diffPartText(part) : undefined,
    nodes: part.nodes.map((node, i) => drawnOf(node, `d${p}_${i}`)),
  }))
  const counts = (['added', 'removed', 'changed'] as const).map((change) => {
    const count = diff.parts.reduce((sum, { nodes }) => sum + nodes.filter((node) => node.change === change).length, 0)
    return `${count} ${change}`
  })
  return {
    title: `a: ${diff.a.name}, ${callText(diff.a)}; b: ${diff.b.name}, ${callText(diff.b)}`,
    description: `The graphs of a and b as one. Of their nodes ${counts.join(', ')}; nodes of several layers count once.`,
    legend: {
      title: 'b, compared with a:',
      cells: (['added', 'removed', 'changed', 'same'] as const).map((change) => {
        const { mark, fill, text } = STYLES[change]
        return { fill, text, label: mark + change }
      }),
      notes: [
        'arrows: blue, only in b; orange and dashed, only in a · to another layer they are not drawn',
        'times: a → b, the mean over the layers, of one call each',
      ],
    },
    groups,
    edges: edgesOf(diff, a, b),
  }
}

function drawnOf(node: DiffNode, id: string): DrawnNode {
  const side = (node.b ?? node.a)!
  const { mark, fill, text } = STYLES[node.change]
  const data = [side.type, side.shape].filter(Boolean).join(' ')
  const times = timesText(node)
  const isView = side.kind === 'view'
  return {
    id,
    lines: [
      ...new Set([
        `${mark}${side.role || side.name}`,
        side.op,
        [isView ? side.shape : data, times].filter(Boolean).join(' · '),
      ]),
    ],
    title: [
      `${node.change}: ${side.role || side.name} ${side.op}, ${data}`,
      ...differencesOf(node),
      ...(node.a && node.b ? [] : [`reads ${side.sources.join(', ')}`]),
      ...(times === '' ? [] : [`time: ${times}`]),
    ].join('\n'),
    ...{ shape: isView && node.change !== 'same' ? 'box' : shapeOf(side.op), fill, text },
    outline: isView ? 'none' : side.kind !== 'operator' ? 'dashed' : 'thin',
  }
}

/** Edges between nodes of one part, of a, of b, or of both. */
function edgesOf({ parts }: DagDiff, a: NamedDag, b: NamedDag): DrawnEdge[] {
  const found = new Map<string, { from: string; to: string; title: string; sides: Set<'a' | 'b'> }>()
  for (const [side, { dag }] of [
    ['a', a],
    ['b', b],
  ] as const) {
    const byId = new Map<number, { readonly id: string; readonly name: string }>()
    for (const [p, { nodes }] of parts.entries())
      for (const [i, node] of nodes.entries()) {
        // The nodes of the first layer of a part are in it; those of others would be drawn a second time.
        const diffSide = node[side]
        if (diffSide) byId.set(diffSide.ids[0]!, { id: `d${p}_${i}`, name: `${diffSide.role} ${diffSide.op}` })
      }
    for (const { from, to } of dag.edges) {
      const [source, node] = [byId.get(from), byId.get(to)]
      if (!source || !node) continue
      const key = `${source.id} ${node.id}`
      const edge = found.get(key) ?? {
        from: source.id,
        to: node.id,
        title: `${source.name} → ${node.name}`,
        sides: new Set(),
      }
      edge.sides.add(side)
      found.set(key, edge)
    }
  }
  return [...found.values()].map(({ sides, title, ...edge }) => {
    if (sides.size === 2) return { ...edge, title }
    return sides.has('b')
      ? { ...edge, title: `${title}, only in b`, color: STYLES.added.fill }
      : { ...edge, title: `${title}, only in a`, color: '#b35c00', isDashed: true }
  })
}
