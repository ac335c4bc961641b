import * as Plot from '@observablehq/plot'
import { hierarchy, treemap } from 'd3-hierarchy'
import { groupOperators } from '../../analyze/operators/groups.ts'
import { duration, percent, size } from '../../model/units.ts'
import { byName, chart, fitting, legend, textPixels } from '../chart.ts'
import { type Context, operatorName } from '../context.ts'
import { figureHtml, type Section, tableOf } from '../figure.ts'
import type { Html } from '../html.ts'

/** Areas of a treemap; smaller ones are one area of their block. */
const AREAS_MAX = 40
/** Phases with a treemap of their time. */
const PHASES_MAX = 2

/** A part of a whole. */
interface Area {
  readonly block: string
  readonly name: string
  readonly value: number
}

/** Which parts of the model have the time, and the bytes. */
export function blocksSection(context: Context): Section | undefined {
  const { call_time, operators } = context.analysis
  const inOrder = [...call_time].sort((a, b) => b.time_ns - a.time_ns).map(({ phase }) => phase as string)
  const phases =
    inOrder.length > 0
      ? inOrder.slice(0, PHASES_MAX)
      : [...new Set(operators.rows.map(({ phase }) => phase))].slice(0, 1)
  const content = [...phases.map((phase) => timeFigure(phase, context)), weightsFigure(context)].filter(
    (html) => html !== undefined,
  )
  return content.length === 0 ? undefined : { id: 'blocks', title: 'Parts of the model', content }
}

function timeFigure(phase: string, { analysis, stats }: Context): Html | undefined {
  const groups = groupOperators(analysis, ['block', 'role', 'op', 'phase']).filter((group) => group.phase === phase)
  const areas = groups.map((group) => ({
    block: String(group.block),
    name: operatorName(group),
    value: group.wall_ns ?? 0,
  }))
  const all = areas.reduce((sum, { value }) => sum + value, 0)
  if (all === 0) return undefined
  return figureHtml({
    ...treemapOf(
      areas,
      `Operators ${phase === 'none' ? 'outside calls' : `of ${phase}`} by wall time`,
      (ns) => `${duration(ns)}, ${percent(ns / all)}`,
    ),
    about: `An area is the wall time of an operator in all layers, from its first start to the end of its last barrier; ${duration(all)} in all.`,
    table: tableOf(groups, {
      '<block': ({ block }) => String(block),
      '<operator': operatorName,
      'wall time': ({ wall_ns }) => duration(wall_ns ?? 0),
      share: ({ wall_ns }) => percent((wall_ns ?? 0) / all),
      steps: ({ steps }) => steps ?? '',
    }),
    source: stats('--by block,role,op,phase --csv'),
  })
}

function weightsFigure({ analysis: { model }, stats }: Context): Html | undefined {
  const areas = (model?.by_block ?? []).map(({ block, bytes }) => ({ block, name: block, value: bytes ?? 0 }))
  const all = areas.reduce((sum, { value }) => sum + value, 0)
  if (all === 0) return undefined
  const table = tableOf(model!.by_block, {
    '<block': ({ block }) => block,
    tensors: ({ tensors }) => tensors,
    bytes: ({ bytes }) => size(bytes ?? 0),
    share: ({ bytes }) => percent((bytes ?? 0) / all),
  })
  return figureHtml({
    ...treemapOf(areas, 'Weights by bytes', (bytes) => `${size(bytes)}, ${percent(bytes / all)}`),
    about: `An area is the size of the weights of a part of the model; ${size(all)} in all.`,
    table,
    source: `${stats('--json')} (model.by_block)`,
  })
}

interface Node {
  readonly name: string
  readonly block: string
  readonly value?: number
  readonly children?: readonly Node[]
}

/** The largest areas, those of a block together; the others of each block as one. */
function treeOf(areas: readonly Area[]): Node {
  const least = areas.map(({ value }) => value).sort((a, b) => b - a)[AREAS_MAX] ?? 0
  const blocks = [...new Set(areas.map(({ block }) => block))]
  const children = blocks.map((block): Node => {
    const inBlock = areas.filter((area) => area.block === block)
    const small = inBlock.filter(({ value }) => value <= least)
    const rest = { block, name: `${small.length} more`, value: small.reduce((sum, { value }) => sum + value, 0) }
    return {
      block,
      name: block,
      children: [...inBlock.filter(({ value }) => value > least), ...(rest.value > 0 ? [rest] : [])],
    }
  })
  return { name: '', block: '', children }
}

/** The name of an area with its share, as far as they fit. */
function labelOf(name: string, share: string, pixels: number): string {
  const both = `${name} ${share}`
  if (fitting(both, pixels) === both) return both
  const short = fitting(name, pixels - textPixels(` ${share}`))
  return short === '' ? fitting(share, pixels) : `${short} ${share}`
}

function treemapOf(areas: readonly Area[], title: string, text: (value: number) => string) {
  const all = areas.reduce((sum, { value }) => sum + value, 0)
  const tree = treeOf(areas)
  const blocks = (tree.children ?? []).map(({ block }) => block)
  const drawing = chart(title, (width, isNarrow) => {
    const height = isNarrow ? 340 : 300
    const root = hierarchy(tree, ({ children }) => children as Node[] | undefined)
      .sum(({ value }) => value ?? 0)
      .sort((a, b) => (b.value ?? 0) - (a.value ?? 0))
    const leaves = treemap<Node>().size([width, height]).paddingInner(1)(root).leaves()
    return {
      height,
      margin: 0,
      x: { axis: null, domain: [0, width], range: [0, width] },
      y: { axis: null, domain: [0, height], range: [0, height] },
      color: byName(blocks),
      marks: [
        Plot.rect(leaves, {
          ...{ x1: 'x0', x2: 'x1', y1: 'y0', y2: 'y1' },
          fill: ({ data }) => data.block,
          fillOpacity: 0.3,
          stroke: ({ data }) => data.block,
          inset: 0.5,
          title: ({ data, value }) => `${data.block}: ${data.name}\n${text(value ?? 0)}`,
        }),
        Plot.text(
          leaves.filter(({ y0, y1 }) => y1 - y0 >= 18),
          {
            ...{ x: 'x0', y: 'y0', dx: 5, dy: 11, textAnchor: 'start', fill: 'currentColor', pointerEvents: 'none' },
            text: ({ data, value, x0, x1 }) => labelOf(data.name, percent((value ?? 0) / all), x1 - x0 - 10),
          },
        ),
      ],
    }
  })
  return { title, legend: legend(blocks), chart: drawing }
}
