import type { Phase } from '../../model/events.ts'
import type { ExpertChoices, ExpertLayer, ExpertTotals } from './figures.ts'

/** The figures of all layers, by phase. */
export function totalsOf(layers: readonly ExpertLayer[]): Partial<Record<Phase, ExpertTotals>> {
  const byPhase = new Map<Phase, ExpertChoices[]>()
  for (const { by_phase } of layers) {
    for (const [phase, choices] of Object.entries(by_phase) as [Phase, ExpertChoices][])
      byPhase.set(phase, [...(byPhase.get(phase) ?? []), choices])
  }
  return Object.fromEntries([...byPhase].map(([phase, choices]) => [phase, totalOf(choices)]))
}

function totalOf(layers: readonly ExpertChoices[]): ExpertTotals {
  const sum = (figureOf: (layer: ExpertChoices) => number) => layers.reduce((sum, layer) => sum + figureOf(layer), 0)
  const mean = (figureOf: (layer: ExpertChoices) => number, weight: (layer: ExpertChoices) => number = () => 1) => {
    const weights = sum(weight)
    return weights > 0 ? sum((layer) => weight(layer) * figureOf(layer)) / weights : null
  }
  const activations = sum((layer) => layer.activations)
  const distinct = sum(({ batches, distinct_per_batch }) => batches * distinct_per_batch)
  const followers = ({ repeated }: ExpertChoices) => repeated?.tokens ?? 0
  const reused = ({ reuse }: ExpertChoices) => reuse.count
  return {
    activations,
    entropy_share: mean(({ balance }) => balance.entropy_share)!,
    gini: mean(({ balance }) => balance.gini)!,
    top_share: mean(({ balance }) => balance.top_share)!,
    unused: sum(({ balance }) => balance.unused),
    repeated_share: mean(({ repeated }) => repeated?.share ?? 0, followers),
    independent_share: mean(({ repeated }) => repeated?.independent_share ?? 0, followers),
    mean_reuse_tokens: mean(({ reuse }) => reuse.mean_tokens ?? 0, reused),
    mean_reuse_experts: mean(({ reuse }) => reuse.mean_experts ?? 0, reused),
    distinct_per_batch: distinct / sum(({ batches }) => batches),
    tokens_per_expert: distinct > 0 ? activations / distinct : 0,
  }
}
