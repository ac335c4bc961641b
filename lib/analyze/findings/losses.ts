import { kindOfIssue, LOST_WORDS } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import type { Analysis } from '../analysis.ts'
import { CALLS, countsOfLosses } from '../run/losses.ts'
import { found, type Limit, type Rule } from './rule.ts'

const COUNT: Limit = { value: 1, why: 'each loss is a part of the run of which nothing is known' }

/** What is missing in a log makes figures doubtful. */
export const losses: Rule = {
  id: 'losses',
  title: 'Parts of the run were not recorded',
  limits: { count: COUNT },
  advice:
    'The hint of the most frequent kind of loss (docs/reference/issues.md); ggml2perfetto stats --contents shows all of them',
  look: ({ inputs }) => {
    const counts = Object.entries(countsOfLosses(inputs))
    const lost = counts.reduce((sum, [, count]) => sum + count, 0)
    if (lost < COUNT.value) return [{ figure: 'no losses in the log' }]
    const codes = counts.map(([code]) => code).join(', ')
    const sentence = `${plural(lost, 'loss')} ${lost === 1 ? 'makes' : 'make'} ${doubtfulFigures(inputs)} doubtful (${codes})`
    return found(sentence, {
      time_ns: 0,
      confidence: 'high',
      confidence_reason: 'recorders count what they drop, and gaps in a log show',
      evidence: { losses: lost, codes },
      advice: adviceOn(counts),
      check: { command: 'ggml2perfetto stats --contents <log>', evidence: 'losses' },
    })
  },
}

/** Each kind of loss has its own remedy. */
function adviceOn(counts: readonly (readonly [code: string, count: number])[]): string {
  const [[code] = ['']] = [...counts].sort(([, a], [, b]) => b - a)
  const { title, hint } = kindOfIssue({ code })!
  const others = counts.length > 1 ? '; ggml2perfetto stats --contents shows the other losses' : ''
  return `${title}: ${hint}${others}`
}

/** Figures of calls are in all others. */
function doubtfulFigures(inputs: Analysis['inputs']): string {
  const kinds = new Set(inputs.flatMap(({ losses }) => losses.flatMap(({ lost }) => lost)))
  const isOfAll = inputs.some(({ losses }) => losses.some(({ lost }) => lost.length === 0))
  if (isOfAll || CALLS.some((kind) => kinds.has(kind))) return 'all figures'
  const words = [...kinds].map((kind) => LOST_WORDS[kind] ?? kind)
  return `figures of ${words.join(', ')}`
}
