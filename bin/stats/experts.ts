import type { Analysis } from '../../lib/cli.ts'
import { count, duration, percent, plural, size, threeDigits } from '../units.ts'
import { type CellsOf, known, number, type Section, type StatsTable, tableOf, text } from './section.ts'

type Experts = NonNullable<Analysis['experts']>
type PhaseName = keyof Experts['by_phase']
type Totals = NonNullable<Experts['by_phase'][PhaseName]>
type Pairs = NonNullable<Experts['reuse_and_time']>

/** Layers of a table without --experts. */
const LAYERS_MAX = 8
/** Pairs from which correlations of layers, and means of quarters, are shown: of fewer they are chance. */
const PAIRS_MIN = 32

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
  const rows = Object.entries(by_phase).map(([phase, totals]) => {
    return { ...totals, phase, unused: `${count(totals.unused)} of ${count(all)}` }
  })
  return tableOf(rows, {}, [
    text('all layers', ({ phase }) => phase),
    ...CHOICES,
    number('experts a batch', ({ distinct_per_batch }) => threeDigits(distinct_per_batch), 1),
    number('tokens an expert', ({ tokens_per_expert }) => threeDigits(tokens_per_expert), 2),
  ])
}

/** Choices of a phase: of a layer, or of all. */
type Choices = Omit<Totals, 'unused' | 'distinct_per_batch' | 'tokens_per_expert'> & { readonly unused: string }

const CHOICES: readonly CellsOf<Choices>[] = [
  number('activations', ({ activations }) => count(activations), 3),
  number('entropy', ({ entropy_share }) => percent(entropy_share)),
  number('top eighth', ({ top_share }) => percent(top_share)),
  number('unused', ({ unused }) => unused),
  number('repeated', ({ repeated_share }) => known(repeated_share, percent)),
  number('by chance', ({ independent_share }) => known(independent_share, percent)),
  number('reuse (tokens)', ({ mean_reuse_tokens }) => known(mean_reuse_tokens, threeDigits)),
  number('reuse (experts)', ({ mean_reuse_experts }) => known(mean_reuse_experts, threeDigits)),
]

function layersTable({ layers }: Experts, phase: PhaseName, max: number): StatsTable {
  const rows = layers.flatMap(({ by_phase, ...layer }) => {
    const choices = by_phase[phase]
    if (!choices) return []
    const { balance, repeated, reuse } = choices
    const figures = { repeated_share: repeated?.share ?? null, independent_share: repeated?.independent_share ?? null }
    const distances = { mean_reuse_tokens: reuse.mean_tokens, mean_reuse_experts: reuse.mean_experts }
    return [{ ...layer, ...choices, ...balance, ...figures, ...distances, unused: count(balance.unused) }]
  })
  const correlation = (pairs: Experts['layers'][number]['reuse_and_time']) =>
    phase === 'decode' && pairs && pairs.count >= PAIRS_MIN ? pairs.time_with_reuse?.spearman : null
  return tableOf(rows, { max }, [
    text(`layers in ${phase}`, ({ layer }) => (layer < 0 ? 'not known' : `${layer}`)),
    number('experts', (row) => `${row.experts_per_token} of ${row.experts_are_min ? '≥ ' : ''}${row.experts}`),
    ...CHOICES,
    number('Gini', ({ gini }) => threeDigits(gini), 2),
    number('most used', ({ most_used }) => count(most_used), 1),
    number('time with reuse', ({ reuse_and_time }) => known(correlation(reuse_and_time), (value) => value.toFixed(2))),
  ])
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
  return tableOf(sorted, { max: top }, [
    text(`most used experts in ${phase}`, ({ layer }) => `blk.${layer}`),
    number('expert', ({ expert }) => `${expert}`),
    number('activations', ({ activations }) => count(activations)),
    number('of tokens', ({ tokens }) => percent(tokens)),
    number('of mean', ({ toMean }) => `${threeDigits(toMean)} ×`),
  ])
}

function cachesTable({ caches }: Experts, phase: PhaseName, hasLayers: boolean): StatsTable[] {
  if (caches.length === 0) return []
  const rows = caches.flatMap(({ by_phase, ...cache }) =>
    by_phase[phase] && (cache.scope !== 'layer' || hasLayers) ? [{ ...cache, ...by_phase[phase] }] : [],
  )
  return [
    tableOf(rows, {}, [
      text(`simulated caches: hits in ${phase}`, ({ size }) => size),
      text('for', ({ scope }) => (scope === 'layer' ? 'each layer' : 'all layers')),
      number('experts', ({ experts }) => count(experts)),
      number('bytes', ({ bytes }) => known(bytes, size)),
      number('LRU', ({ lru_share }) => percent(lru_share)),
      number('LFU', ({ lfu_share }) => known(lfu_share, percent)),
      number('most used', ({ pinned_share }) => percent(pinned_share)),
      number('learned', ({ learned_share }) => known(learned_share, percent)),
    ]),
  ]
}

function quartersTable(reuseAndTime: Experts['reuse_and_time']): StatsTable[] {
  if (!reuseAndTime || reuseAndTime.count < PAIRS_MIN) return []
  const names = ['shortest', 'short', 'long', 'longest']
  return [
    tableOf(reuseAndTime.quarters, {}, [
      text('decode by reuse distance', (_, i) => names[i]!),
      number('calls', ({ pairs }) => count(pairs)),
      number('reuse (tokens)', ({ mean_reuse_tokens }) => threeDigits(mean_reuse_tokens)),
      number('MUL_MAT_ID', ({ mean_time_ns }) => duration(mean_time_ns)),
      number((reuseAndTime.fault_counter ?? 'faults').replaceAll('_', ' '), ({ mean_faults }) =>
        known(mean_faults, threeDigits),
      ),
    ]),
  ]
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
