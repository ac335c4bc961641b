import * as Plot from '@observablehq/plot'
import type { ExpertFigures } from '../../analyze/analysis.ts'
import { percent, plural, threeDigits } from '../../model/units.ts'
import { byName, chart, legend } from '../chart.ts'
import { colour } from '../colours.ts'
import { type Context, known } from '../context.ts'
import { columns, figureHtml, type Section, type Table } from '../figure.ts'
import type { Html } from '../html.ts'

/** Columns of the heat map; of more experts a column is several. */
const COLUMNS_MAX = 128
/** Layers of the heat map. */
const LAYERS_MAX = 128

/** Which experts were chosen, and how long ago they were used before. */
export function expertsSection(context: Context): Section | undefined {
  const { experts } = context.analysis
  if (!experts || experts.layers.length === 0) return undefined
  const content = phasesOf(experts).flatMap((phase) => [
    heatMap(experts, phase, context),
    reuseFigure(experts, phase, context),
  ])
  const figures = [...content, cachesFigure(experts, context)].filter((html) => html !== undefined)
  return figures.length === 0 ? undefined : { id: 'experts', title: 'Experts', content: figures }
}

type PhaseName = keyof ExpertFigures['by_phase']

/** Decode first, as its weights are read for each token; at most two phases. */
function phasesOf({ by_phase }: ExpertFigures): PhaseName[] {
  const phases = Object.keys(by_phase) as PhaseName[]
  return phases.sort((a, b) => Number(b === 'decode') - Number(a === 'decode')).slice(0, 2)
}

function heatMap({ layers }: ExpertFigures, phase: PhaseName, { stats }: Context): Html | undefined {
  const shown = layers.slice(0, LAYERS_MAX).filter(({ by_phase }) => by_phase[phase])
  if (shown.length === 0) return undefined
  const experts = Math.max(...shown.map(({ by_phase }) => by_phase[phase]!.by_expert.length))
  const per = Math.max(1, Math.ceil(experts / COLUMNS_MAX))
  const cells = shown.flatMap(({ layer, by_phase }) => {
    const { by_expert, activations } = by_phase[phase]!
    return Array.from({ length: Math.ceil(by_expert.length / per) }, (_, i) => {
      const count = by_expert.slice(i * per, (i + 1) * per).reduce((sum, value) => sum + value, 0)
      return { layer, expert: i * per, count, share: activations > 0 ? count / activations : 0 }
    })
  })
  const most = Math.max(...cells.map(({ share }) => share), 1e-9)
  const rows = shown.map(({ layer }) => layer)
  return figureHtml({
    title: `Choices of experts by layer, ${phase}`,
    about: `A stronger colour was chosen more often; the strongest is ${percent(most)} of the choices of its layer.${per > 1 ? ` A column is ${per} experts.` : ''}`,
    chart: chart(`Choices of experts by layer in ${phase}`, () => ({
      height: 60 + Math.max(8, Math.min(22, 500 / rows.length)) * rows.length,
      marginLeft: 44,
      x: { label: 'expert', domain: [-0.5, experts - 0.5], ticks: wholeTicks(experts), tickFormat: String },
      y: {
        label: 'layer',
        domain: [Math.max(...rows) + 0.5, Math.min(...rows) - 0.5],
        ticks: wholeTicks(Math.max(...rows) + 1),
        tickFormat: String,
      },
      marks: [
        Plot.rect(cells, {
          ...{
            x1: ({ expert }) => expert - 0.5,
            x2: ({ expert }) => expert + per - 0.5,
            y1: ({ layer }) => layer - 0.5,
            y2: ({ layer }) => layer + 0.5,
          },
          fill: colour(0),
          fillOpacity: ({ share }) => share / most,
          stroke: colour(0),
          strokeOpacity: 0.15,
          title: ({ layer, expert, count, share }) =>
            `layer ${layer}, expert${per > 1 ? `s from ${expert}` : ` ${expert}`}\n${plural(count, 'choice')}, ${percent(share)}`,
        }),
      ],
    })),
    table: choicesTable(shown, phase),
    source: `${stats('--json')} (experts.layers)`,
  })
}

const TITLES = [
  'tokens',
  'most used',
  'max to mean',
  'Gini',
  'entropy',
  'unused',
  'repeated',
  'choices by expert',
] as const

const choicesTable = (layers: ExpertFigures['layers'], phase: PhaseName): Table => ({
  columns: columns('<layer', ...TITLES),
  rows: layers.map(({ layer, by_phase }) => {
    const { tokens, balance, repeated, by_expert } = by_phase[phase]!
    return [
      ...[`${layer}`, tokens, balance.most_used],
      ...[threeDigits(balance.max_to_mean), threeDigits(balance.gini), percent(balance.entropy_share)],
      ...[balance.unused, known(repeated?.share, percent)],
      by_expert.slice(0, COLUMNS_MAX).join(' '),
    ]
  }),
})

function reuseFigure({ layers, by_phase }: ExpertFigures, phase: PhaseName, { stats }: Context): Html | undefined {
  const sums: number[] = []
  for (const { by_phase } of layers)
    for (const [i, count] of (by_phase[phase]?.reuse.tokens_histogram ?? []).entries()) sums[i] = (sums[i] ?? 0) + count
  const all = sums.reduce((sum, value) => sum + value, 0)
  if (all === 0) return undefined
  const range = (i: number) => (i === 0 ? '1' : `${2 ** i}–${2 ** (i + 1) - 1}`)
  const bars = sums.map((count, i) => ({ range: range(i), count, share: count / all }))
  const totals = by_phase[phase]
  return figureHtml({
    title: `Reuse distance of experts, ${phase}`,
    about: `How many tokens ago an expert was used before in its layer; on average ${known(totals?.mean_reuse_tokens, threeDigits) || '?'} tokens. All layers together; first uses are not in it.`,
    chart: chart(`Reuse distance of experts in ${phase}, in percent of choices`, () => ({
      height: 230,
      marginLeft: 44,
      x: { label: 'tokens since the last use', domain: bars.map(({ range }) => range), type: 'band' },
      y: { label: 'share of choices, %', grid: true, percent: true },
      marks: [
        Plot.barY(bars, {
          x: 'range',
          y: 'share',
          fill: colour(2),
          inset: 0.5,
          title: ({ range, count, share }) => `${range} tokens\n${plural(count, 'choice')}, ${percent(share)}`,
        }),
        Plot.ruleY([0]),
      ],
    })),
    table: {
      columns: columns('<tokens since the last use', 'choices', 'share'),
      rows: bars.map(({ range, count, share }) => [range, count, percent(share)]),
    },
    source: `${stats('--json')} (experts.layers.by_phase.reuse)`,
  })
}

/** Hits of simulated caches, in decode. */
function cachesFigure({ caches }: ExpertFigures, { stats }: Context): Html | undefined {
  const policies = [
    ['LRU', 'lru_share'],
    ['LFU', 'lfu_share'],
    ['most used, known afterwards', 'pinned_share'],
  ] as const
  const shown = caches.filter(({ by_phase }) => by_phase.decode)
  const points = shown.flatMap(({ size, scope, experts_share, by_phase }) =>
    policies.flatMap(([policy, key]) => {
      const hits = by_phase.decode![key]
      return scope === 'layer' && hits !== null ? [{ size, experts_share, policy: policy as string, hits }] : []
    }),
  )
  if (points.length === 0) return undefined
  const names = policies.map(([policy]) => policy as string)
  return figureHtml({
    title: 'Simulated caches of experts, decode',
    about: 'The part of choices whose expert is in a cache of each layer that contains so many of the experts.',
    legend: legend(names),
    chart: chart('Hits of simulated caches of experts by their size, in percent', () => ({
      height: 260,
      marginLeft: 44,
      x: { label: 'experts in the cache, %', percent: true, domain: [0, 100] },
      y: { label: 'hits, %', percent: true, grid: true, domain: [0, 100] },
      color: byName(names),
      marks: [
        Plot.line(points, { x: 'experts_share', y: 'hits', stroke: 'policy', strokeWidth: 2 }),
        Plot.dot(points, {
          x: 'experts_share',
          y: 'hits',
          fill: 'policy',
          r: 4,
          title: ({ policy, size, hits }) => `${policy}, ${size}\n${percent(hits)} of choices are hits`,
        }),
      ],
    })),
    table: {
      columns: columns('<size', '<scope', 'experts', 'LRU', 'LFU', 'most used'),
      rows: shown.map(({ size, scope, experts, by_phase }) => {
        const { lru_share, lfu_share, pinned_share } = by_phase.decode!
        return [size, scope, experts, percent(lru_share), known(lfu_share, percent), percent(pinned_share)]
      }),
    },
    source: `${stats('--json')} (experts.caches)`,
  })
}

/** At most ten whole numbers below a number. */
const wholeTicks = (below: number) => {
  const every = Math.ceil(below / 10)
  return Array.from({ length: Math.ceil(below / every) }, (_, i) => i * every)
}
