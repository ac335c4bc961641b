import type { GraphNode } from '../../analyze/analysis.ts'
import { duration, size, threeDigits } from '../../model/units.ts'
import { type Context, known } from '../context.ts'
import { columns, figureHtml, type Section } from '../figure.ts'
import { html, raw } from '../html.ts'

/** The layer of a recorded graph that a report shows: the one in the middle, as all are usually alike; undefined where there is none. */
export function layerToShow(nodes: readonly Pick<GraphNode, 'layer'>[]): number | undefined {
  const layers = [...new Set(nodes.map(({ layer }) => layer))].filter((layer) => layer >= 0).sort((a, b) => a - b)
  return layers[Math.floor(layers.length / 2)]
}

/** The graph of one layer. */
export function graphSection({ analysis: { series, inputs }, drawing, command }: Context): Section | undefined {
  const graph = series?.graph
  if (!graph || !drawing || inputs.length === 0) return undefined
  const nodes = graph.nodes.filter(({ layer, kind }) => layer === drawing.layer && kind !== 'view')
  const bytesOf = ({ bytes_read, bytes_written }: GraphNode) =>
    bytes_read === null || bytes_written === null ? null : bytes_read + bytes_written
  const figure = figureHtml({
    title: `Layer ${drawing.layer} in call ${graph.call} (${graph.phase})`,
    about: 'Arrows lead from data to the nodes that read it. Views are left out; a stronger colour has more time.',
    chart: html`<div class="chart paper scroll" tabindex="0" role="region" aria-label="Graph of layer ${drawing.layer}">${raw(drawing.svg.slice(Math.max(0, drawing.svg.indexOf('<svg'))))}</div>`,
    table: {
      columns: columns('<node', '<op', '<type', '<shape', 'order', 'time', 'bytes', 'GB/s', 'imbalance'),
      rows: nodes.map((node) => [
        ...[
          node.name || '(unnamed)',
          node.op,
          node.type,
          node.shape,
          known(node.order, String),
          known(node.wall_ns, duration),
        ],
        known(bytesOf(node), size),
        node.wall_ns ? known(bytesOf(node), (bytes) => threeDigits(bytes / node.wall_ns!)) : '',
        known(node.imbalance_share, (share) => `${threeDigits(100 * share)} %`),
      ]),
    },
    source: command('dag', `--layers ${drawing.layer} --call ${Math.max(0, graph.call)}`),
  })
  return { id: 'graph', title: 'Graph of one layer', content: [figure] }
}
