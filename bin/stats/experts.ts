import type { Analysis } from '../../lib/cli.ts'
import { count, duration, percent, plural, size, threeDigits } from '../units.ts'
import { type Column, firstRows, more, type Section, type StatsTable } from './section.ts'

type Experts = NonNullable<Analysis['experts']>
type PhaseName = keyof Experts['by_phase']
type Pairs = NonNullable<Experts['reuse_and_time']>

/** Layers of a table without --experts. */
const LAYERS_MAX = 8
/** Pairs from which correlations of layers, and means of quarters, are shown: of fewer they are chance. */
const PAIRS_MIN = 32

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))
const known = (value: number | null, as: (value: number) => string = threeDigits) => (value === null ? '' : as(value))

/** Which experts were chosen. `top`: rows of the table of experts; without it there is none, and layers are few. */
export function expertsSection({ experts }: Analysis, top: number | undefined): Section | undefined {
  if (!experts || experts.layers.length === 0) return undefined
  const phases = Object.keys(experts.by_phase) as PhaseName[]
  const main = phases.includes('decode') ? 'decode' : phases[0]!
  const shown = top === undefined ? [main] : phases
  const tables = [
    totalsTable(experts),
    ...shown.map((phase) => layersTable(experts, phase, top === undefined ? LAYERS_MAX : Infinity)),
    ...(top === undefined ? [] : shown.map((phase) => mostUsedTable(experts, phase, top))),
    ...cachesTable(experts, main, top !== undefined),
    ...quartersTable(experts.reuse_and_time),
  ]
  return { title: 'experts', tables, lines: reuseLines(experts.reuse_and_time) }
}

function totalsTable({ by_phase, layers }: Experts): StatsTable {
  const all = layers.reduce((sum, { experts }) => sum + experts, 0)
  const rows = Object.entries(by_phase).map(([phase, totals]) => [
    phase,
    count(totals.activations),
    percent(totals.entropy_share),
    percent(totals.top_share),
    `${count(totals.unused)} of ${count(all)}`,
    known(totals.repeated_share, percent),
    known(totals.independent_share, percent),
    known(totals.mean_reuse_tokens),
    known(totals.mean_reuse_experts),
    threeDigits(totals.distinct_per_batch),
    threeDigits(totals.tokens_per_expert),
  ])
  return {
    columns: [
      text('all layers'),
      ...COLUMNS,
      { title: 'experts a batch', rank: 1 },
      { title: 'tokens an expert', rank: 2 },
    ],
    rows,
  }
}

const COLUMNS: readonly Column[] = [
  { title: 'activations', rank: 3 },
  ...numbers('entropy', 'top eighth', 'unused', 'repeated', 'by chance'),
  ...numbers('reuse (tokens)', 'reuse (experts)'),
]

function layersTable({ layers }: Experts, phase: PhaseName, max: number): StatsTable {
  const expertLayers = layers.filter(({ by_phase }) => by_phase[phase])
  const { shown, rest } = firstRows(expertLayers, max)
  const columns = [
    text(`layers in ${phase}`),
    ...numbers('experts'),
    ...COLUMNS,
    { title: 'Gini', rank: 2 },
    { title: 'most used', rank: 1 },
    ...numbers('time with reuse'),
  ]
  const rows = shown.map(({ layer, experts, experts_are_min, experts_per_token, by_phase, reuse_and_time }) => {
    const { activations, balance, repeated, reuse } = by_phase[phase]!
    const pairs = phase === 'decode' && (reuse_and_time?.count ?? 0) >= PAIRS_MIN ? reuse_and_time : null
    const correlation = pairs?.time_with_reuse?.spearman ?? null
    return [
      layer < 0 ? 'not known' : `${layer}`,
      `${experts_per_token} of ${experts_are_min ? '≥ ' : ''}${experts}`,
      count(activations),
      percent(balance.entropy_share),
      percent(balance.top_share),
      count(balance.unused),
      repeated === null ? '' : percent(repeated.share),
      repeated === null ? '' : percent(repeated.independent_share),
      known(reuse.mean_tokens),
      known(reuse.mean_experts),
      balance.gini.toFixed(2),
      `${balance.most_used}`,
      known(correlation, (value) => value.toFixed(2)),
    ]
  })
  if (rest.length > 0) rows.push([more(rest), ...columns.slice(1).map(() => '')])
  return { columns, rows }
}

/** The experts with the most activations of a phase. */
function mostUsedTable({ layers }: Experts, phase: PhaseName, top: number): StatsTable {
  const all = layers.flatMap(({ layer, by_phase }) => {
    const choices = by_phase[phase]
    if (!choices) return []
    const mean = choices.activations / choices.by_expert.length
    return choices.by_expert.map((activations, expert) => ({
      ...{ layer, expert, activations },
      tokens: activations / choices.tokens,
      toMean: activations / mean,
    }))
  })
  const sorted = all.sort((a, b) => b.activations - a.activations || a.layer - b.layer || a.expert - b.expert)
  const { shown, rest } = firstRows(sorted, top)
  const rows = shown.map(({ layer, expert, activations, tokens, toMean }) => {
    return [`blk.${layer}`, `${expert}`, count(activations), percent(tokens), `${threeDigits(toMean)} ×`]
  })
  if (rest.length > 0) rows.push([more(rest), '', '', '', ''])
  const columns = [text(`most used experts in ${phase}`), ...numbers('expert', 'activations', 'of tokens', 'of mean')]
  return { columns, rows }
}

function cachesTable({ caches }: Experts, phase: PhaseName, hasLayers: boolean): StatsTable[] {
  if (caches.length === 0) return []
  const columns = [
    text(`simulated caches: hits in ${phase}`),
    text('for'),
    ...numbers('experts', 'bytes', 'LRU', 'LFU', 'most used', 'learned'),
  ]
  const rows = caches.flatMap((cache) => {
    const hits = cache.by_phase[phase]
    if (!hits || (cache.scope === 'layer' && !hasLayers)) return []
    return [
      [
        cache.size,
        cache.scope === 'layer' ? 'each layer' : 'all layers',
        count(cache.experts),
        known(cache.bytes, size),
        percent(hits.lru_share),
        known(hits.lfu_share, percent),
        percent(hits.pinned_share),
        known(hits.learned_share, percent),
      ],
    ]
  })
  return [{ columns, rows }]
}

function quartersTable(reuseAndTime: Experts['reuse_and_time']): StatsTable[] {
  if (!reuseAndTime || reuseAndTime.count < PAIRS_MIN) return []
  const names = ['shortest', 'short', 'long', 'longest']
  const rows = reuseAndTime.quarters.map((quarter, i) => [
    names[i]!,
    count(quarter.pairs),
    threeDigits(quarter.mean_reuse_tokens),
    duration(quarter.mean_time_ns),
    known(quarter.mean_faults),
  ])
  const columns = numbers(
    'calls',
    'reuse (tokens)',
    'MUL_MAT_ID',
    (reuseAndTime.fault_counter ?? 'faults').replaceAll('_', ' '),
  )
  return [{ columns: [text('decode by reuse distance'), ...columns], rows }]
}

/** How far times of decode calls follow from reuse distances. */
function reuseLines(reuseAndTime: Pairs | null): string[] {
  if (!reuseAndTime) return []
  const r = (name: string, value: Pairs['time_with_reuse']) =>
    value === null ? [] : [`with ${name} ${value.spearman.toFixed(2)} (Pearson ${value.pearson.toFixed(2)})`]
  const faults = (reuseAndTime.fault_counter ?? '').replaceAll('_', ' ')
  const parts = [...r('reuse distance', reuseAndTime.time_with_reuse), ...r(faults, reuseAndTime.time_with_faults)]
  if (parts.length === 0) return []
  return [
    `rank correlation of the time in MUL_MAT_ID of ${plural(reuseAndTime.count, 'decode call')}: ${parts.join(', ')}`,
  ]
}
