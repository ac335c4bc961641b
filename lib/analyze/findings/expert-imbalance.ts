import type { Analysis, ExpertChoices, ExpertLayer } from '../analysis.ts'
import { CALLS } from '../run/losses.ts'
import { confidenceOf, found, type Limit, type Looked, RULE_PHASES, type Rule } from './rule.ts'
import { slicesIn } from './sql.ts'
import { number, percent } from './words.ts'

const SHARE: Limit = {
  value: 0.5,
  why: 'the most used eighth of experts has half of all choices; routers are trained for an even choice: of gpt-oss-20b entropies of 4.5 to 4.7 of 5 bits are published',
}
const TIMES: Limit = {
  value: 2,
  why: 'of few experts, an eighth (at least as many as a token has) is a large share of an even choice too: it must have twice as much',
}
const ACTIVATIONS: Limit = {
  value: 16,
  why: 'fewer choices for each expert, on average, show chance: with 16 an even choice gives its most used eighth less than 1.5 × its share',
}

/** A few experts are chosen for most tokens. */
export const expertImbalance: Rule = {
  id: 'expert-imbalance',
  title: 'A few experts take most tokens',
  limits: { share: SHARE, times: TIMES, activations: ACTIVATIONS },
  advice:
    'A small cache or fast memory for experts serves most tokens: stats --experts lists the experts, and the hit rates of caches by size. ' +
    'Other texts may choose other experts: compare logs of several before you rely on it',
  look: (analysis) => RULE_PHASES.flatMap((phase) => lookAt(analysis, phase)),
}

type OfLayer = Pick<ExpertLayer, 'layer' | 'experts' | 'expert_bytes'> & { readonly of: ExpertChoices }

function lookAt(analysis: Analysis, phase: (typeof RULE_PHASES)[number]): Looked[] {
  const all = (analysis.experts?.layers ?? []).flatMap(({ by_phase, experts_are_min, ...layer }): OfLayer[] => {
    const choices = by_phase[phase]
    return choices && !experts_are_min ? [{ ...layer, of: choices }] : []
  })
  const layers = all.filter(({ of: choices, experts }) => choices.activations >= ACTIVATIONS.value * experts)
  if (layers.length === 0) return all.length > 0 ? [tooFew(all, phase)] : []
  const mean = (figureOf: (layer: OfLayer) => number) =>
    layers.reduce((sum, layer) => sum + figureOf(layer), 0) / layers.length
  const share = mean(({ of: choices }) => choices.balance.top_share)
  const even = mean(({ of: choices, experts }) => choices.balance.top_experts / experts)
  const [{ experts, of: first }] = layers as [OfLayer]
  const unused = layers.reduce((sum, { of: choices }) => sum + choices.balance.unused, 0)
  const inAll = layers.reduce((sum, { experts }) => sum + experts, 0)
  const sentence =
    `${first.balance.top_experts} of ${experts} experts of a layer take ${percent(share)} of the choices of ${phase} ` +
    `(an even choice: ${percent(even)}), ${unused} of ${inAll} are never chosen`
  if (share < SHARE.value || share < TIMES.value * even) return [{ figure: sentence }]
  const [busiest] = layers.toSorted((a, b) => shareOfMost(b) - shareOfMost(a)) as [OfLayer]
  const { most_used, entropy_share } = busiest.of.balance
  return found(sentence, {
    time_ns: 0,
    ...confidenceOf(
      analysis,
      mean(({ of: choices }) => choices.batches),
      [...CALLS, 'experts'],
    ),
    evidence: {
      phase,
      top_share: share,
      even_share: even,
      unused_experts: unused,
      ...unusedBytes(layers),
      layer: busiest.layer,
      expert: most_used,
      activations: busiest.of.by_expert[most_used]!,
      tokens: busiest.of.tokens,
      entropy_share,
    },
    check: { sql: activationsSql(phase, busiest.layer, most_used), evidence: 'activations' },
  })
}

function tooFew(layers: readonly OfLayer[], phase: string): Looked {
  const most = Math.max(...layers.map(({ of: choices, experts }) => choices.activations / experts))
  return { figure: `${phase} chooses an expert ${number(most)} times on average: too few to judge the balance` }
}

const shareOfMost = ({ of: choices }: OfLayer) => choices.by_expert[choices.balance.most_used]! / choices.tokens

function unusedBytes(layers: readonly OfLayer[]): { readonly unused_weight_bytes?: number } {
  if (layers.some(({ expert_bytes }) => expert_bytes === null)) return {}
  return {
    unused_weight_bytes: layers.reduce(
      (sum, { expert_bytes, of: choices }) => sum + expert_bytes! * choices.balance.unused,
      0,
    ),
  }
}

/** Tokens of a phase for which a layer's expert was chosen: how often its number is in the lists of the slices. */
function activationsSql(phase: (typeof RULE_PHASES)[number], layer: number, expert: number): string {
  const list = `',' || replace(extract_arg(s.arg_set_id, 'debug.experts'), ';', ',,') || ','`
  const without = `replace(${list}, ',${expert},', '')`
  return (
    `select sum((length(${list}) - length(${without})) / ${String(expert).length + 2}) ${slicesIn(phase, 'expert')} ` +
    `and extract_arg(s.arg_set_id, 'debug.layer') = ${layer}`
  )
}
