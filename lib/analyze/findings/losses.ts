import { type Limit, lostEvents, type Rule } from './rule.ts'

const COUNT: Limit = { value: 1, why: 'each loss is a part of the run of which nothing is known' }

/** Losses in the logs make all figures doubtful. */
export const losses: Rule = {
  id: 'losses',
  title: 'Parts of the run were not recorded',
  limits: { count: COUNT },
  advice:
    'ggml2perfetto info shows what is missing, and docs/issues.md why: record with a larger --max-size, or less with --level and --tokens',
  look: (analysis) => {
    const lost = lostEvents(analysis)
    const codes = [...new Set(analysis.inputs.flatMap(({ issues }) => Object.keys(issues)))].join(', ')
    if (lost < COUNT.value) return [{ figure: 'no losses in the log' }]
    const sentence = `${lost === 1 ? '1 loss makes' : `${lost} losses make`} all figures doubtful (${codes})`
    const finding = {
      sentence,
      time_ns: 0,
      confidence: 'high' as const,
      confidence_reason: 'the recorder counts what it drops, and gaps in the log show',
      evidence: { losses: lost, codes },
      check: { command: 'ggml2perfetto info <log>', evidence: 'losses' },
    }
    return [{ figure: sentence, finding }]
  },
}
