import * as Plot from '@observablehq/plot'
import type { NumaFigures } from '../../analyze/analysis.ts'
import { bytesByNode, policyText, shareText } from '../../analyze/numa/words.ts'
import { percent, size } from '../../model/units.ts'
import { chart } from '../chart.ts'
import { colour } from '../colours.ts'
import type { Context } from '../context.ts'
import { figureHtml, type Section, sourceHtml, tableHtml, tableOf } from '../figure.ts'
import { type Html, html } from '../html.ts'

/** Rows of the heat map and of its table. */
const TENSORS_MAX = 48

/** Where memory is, and who reads it; only of machines with several NUMA nodes. */
export function numaSection(context: Context): Section | undefined {
  const { numa } = context.analysis
  if (!numa) return undefined
  const workers = tableOf(numa.workers, {
    worker: ({ worker }) => `${worker}`,
    'on node': ({ node }) => (node < 0 ? 'not known' : `${node}`),
    read: ({ read_bytes }) => size(read_bytes),
    local: ({ local_share }) => shareText(local_share),
    '<from': ({ by_node }) => bytesByNode(numa, by_node),
  })
  const operators = tableOf(numa.operators, {
    '<operator': ({ role, op }) => `${role} ${op}`.trim(),
    read: ({ read_bytes }) => size(read_bytes),
    local: ({ local_share }) => shareText(local_share),
    estimated: ({ estimated_share }) => percent(estimated_share),
  })
  return {
    id: 'numa',
    title: 'NUMA',
    content: [
      html`<p>Local reads: ${shareText(numa.local_share)} of ${size(numa.read_bytes)} that workers read in calls; ${policyText(numa)}.</p>`,
      heatMap(numa, context),
      ...(workers.rows.length > 0 ? [tableHtml(workers, 'What workers read, by where it is')] : []),
      ...(operators.rows.length > 0 ? [tableHtml(operators, 'What operators read')] : []),
      sourceHtml(`${context.stats('--json')} (numa)`),
    ].filter((part) => part !== undefined),
  }
}

/** A row for each tensor, a column for each node. */
function heatMap(numa: NumaFigures, { stats }: Context): Html | undefined {
  const { nodes } = numa
  const shown = numa.tensors.slice(0, TENSORS_MAX)
  if (shown.length === 0) return undefined
  const cells = shown.flatMap(({ tensor, by_node, size_bytes }) =>
    nodes.map(({ node }, i) => ({
      tensor,
      node: `node ${node}`,
      bytes: by_node[i] ?? 0,
      share: size_bytes > 0 ? (by_node[i] ?? 0) / size_bytes : 0,
    })),
  )
  return figureHtml({
    title: 'Tensors by node',
    about: `A stronger colour: more of the tensor is on the node. ${shown.length < numa.tensors.length ? `The ${shown.length} of which most was read.` : ''}`,
    chart: chart('Part of each tensor on each node', () => ({
      height: 60 + 18 * shown.length,
      marginLeft: 160,
      x: { label: null, type: 'band', domain: nodes.map(({ node }) => `node ${node}`) },
      y: { label: null, type: 'band', domain: shown.map(({ tensor }) => tensor) },
      marks: [
        Plot.cell(cells, {
          ...{ x: 'node', y: 'tensor', fill: colour(0), fillOpacity: 'share', stroke: colour(0), strokeOpacity: 0.15 },
          title: ({ tensor, node, bytes, share }) => `${tensor}, ${node}\n${size(bytes)}, ${percent(share)}`,
        }),
      ],
    })),
    table: tableOf(shown, {
      '<tensor': ({ tensor }) => tensor,
      size: ({ size_bytes }) => size(size_bytes),
      '<is on': ({ by_node }) => bytesByNode(numa, by_node),
      local: ({ local_share }) => shareText(local_share),
    }),
    source: `${stats('--json')} (numa.tensors)`,
  })
}
