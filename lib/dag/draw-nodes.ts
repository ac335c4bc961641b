import type { GraphLeaf, GraphNode } from '../analyze/series/figures.ts'
import type { Fill } from './colors.ts'
import type { DagNode } from './dag.ts'
import type { DrawnNode } from './drawing.ts'
import { METRICS, type MetricName, valueText } from './metrics.ts'

const NOT_MEASURED: Fill = { fill: '#ffffff', text: '#000000' }
const OUTSIDE: Fill = { fill: '#eeeeee', text: '#000000' }

/** Shapes of Graphviz by op. */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  [/^(MUL_MAT|MUL_MAT_ID|OUT_PROD)$/, 'box'],
  [/^(FLASH_ATTN|SOFT_MAX)/, 'octagon'],
  [/NORM/, 'hexagon'],
  [/^(ADD|ADD1|ADD_ID|SUB|MUL|DIV|SCALE)$/, 'ellipse'],
  [/^ROPE/, 'folder'],
  [/^(GET_ROWS|SET_ROWS|CPY|CONT|DUP|CONCAT|REPEAT|SET|PAD)/, 'note'],
  [/^(ARGSORT|TOP_K|ARGMAX|SUM|MEAN)/, 'tab'],
  [/GLU|^(UNARY|SILU|GELU|CLAMP|SQR|SQRT)/, 'component'],
  [/^(VIEW|RESHAPE|PERMUTE|TRANSPOSE|NONE)$/, 'plain'],
]

/** The shape of a node by its op. */
export const shapeOf = (op: string) => SHAPES.find(([pattern]) => pattern.test(op))?.[1] ?? 'box'

/** The id of a node, or of a leaf, in a drawing. */
export const drawnId = (id: number) => (id >= 0 ? `n${id}` : `leaf${-2 - id}`)

/** `Qcur-0 MUL_MAT` */
export const nameOf = ({ name, op }: Pick<GraphNode, 'name' | 'op'>) => [name, op].filter(Boolean).join(' ')

/** `f32 512×2` */
export const dataOf = ({ type, shape }: Pick<GraphNode, 'type' | 'shape'>) => [type, shape].filter(Boolean).join(' ')

/** Figures in the title of a node; those that are not known are left out. */
const TITLED: readonly MetricName[] = [
  'time',
  'compute',
  'wait',
  'imbalance',
  'slow_cores',
  'bytes',
  'weights',
  'gbps',
  'flop',
  'experts',
]

/** All that is known of a node. `further`: sentences. */
export function titleOf(node: DagNode, further: readonly string[] = []): string {
  const { kind, order, block, in_layer, backend, split } = node
  const figures = TITLED.flatMap((key) => {
    const { title, unit, of: figureOf } = METRICS[key]
    const value = figureOf(node)
    return value === null ? [] : [`${title}: ${valueText(value, unit)}`]
  })
  return [
    [nameOf(node), dataOf(node), block, in_layer >= 0 ? `layer ${in_layer}` : 'in no layer'].join(', '),
    ...(order === null ? [] : [`order: ${order}`]),
    ...figures,
    ...(kind === 'operator' ? [] : [kind === 'fused' ? 'computed together with the node after it' : kind]),
    ...(backend === null ? [] : [`on ${backend || 'an unnamed backend'}, split ${split}`]),
    ...further,
  ].join('\n')
}

/** A node. `name`: its first line. `color`: undefined where its figure is not known. */
export function drawnNode(
  node: DagNode,
  drawn: {
    readonly name: string
    readonly value: string
    readonly color: Fill | undefined
    readonly title: string
    readonly readsWeights: boolean
  },
): DrawnNode {
  const shape = shapeOf(node.op)
  const isView = node.kind === 'view'
  return {
    id: drawnId(node.id),
    lines: [
      ...new Set([drawn.name, node.op, [isView ? node.shape : dataOf(node), drawn.value].filter(Boolean).join(' · ')]),
    ],
    title: drawn.title,
    shape,
    ...(drawn.color ?? NOT_MEASURED),
    outline: isView ? 'none' : node.kind !== 'operator' ? 'dashed' : drawn.readsWeights ? 'thick' : 'thin',
  }
}

/** A weight, a cache or an input. `count`: the number of equal ones, in as many layers. */
export function drawnLeaf(leaf: GraphLeaf, count = 1): DrawnNode {
  const { id, kind, size_bytes } = leaf
  const size = size_bytes === null ? [] : [valueText(size_bytes, 'bytes')]
  const name = count > 1 ? `${leaf.role || kind}, ${count} ×` : leaf.name || kind
  return {
    id: drawnId(id),
    lines: [name, [dataOf(leaf), ...size].join(', ')],
    title: [`${kind} ${name}`, dataOf(leaf), ...size].join('\n'),
    shape: kind === 'input' ? 'oval' : 'cylinder',
    ...OUTSIDE,
    outline: 'thin',
  }
}

/** A node that is not in the range. */
export function drawnOutside(node: GraphNode): DrawnNode {
  return {
    id: drawnId(node.id),
    lines: [nameOf(node)],
    title: `${nameOf(node)}, ${dataOf(node)}\nnot in the range that is drawn`,
    shape: 'box',
    ...OUTSIDE,
    outline: 'dashed',
  }
}
