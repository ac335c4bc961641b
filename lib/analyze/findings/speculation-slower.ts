import { count, plural } from '../../model/units.ts'
import type { Analysis } from '../analysis.ts'
import type { DraftFigures } from '../requests/figures.ts'
import { confidenceOf, found, type Limit, type Rule } from './rule.ts'
import { requestParts, WITH_REQUESTS } from './sql.ts'
import { number, percent, time } from './words.ts'

const SPEEDUP: Limit = {
  value: 0.95,
  why: 'times of calls scatter by some percent: from there on drafts cost more than they save',
}

const CYCLES: Limit = { value: 8, why: 'drafts that are verified: the acceptance of fewer is chance' }

const acceptance = ({ accepted_tokens, drafted_tokens }: DraftFigures) =>
  `${count(accepted_tokens)} of ${plural(drafted_tokens, 'drafted token')} were accepted: the log does not contain what they cost`

/** The calls of the speculation that does not pay: those that would not be made without drafts, as a share of all decode calls; 0: none. */
export function callsOfDrafts({ speculation, call_time }: Analysis): number {
  if (!speculation || speculation.speedup === null || speculation.cycles < CYCLES.value) return 0
  const { calls = 0 } = call_time.find(({ phase }) => phase === 'decode') ?? {}
  return speculation.speedup >= SPEEDUP.value ? 0 : Math.max(0, 1 - speculation.generated_tokens / Math.max(calls, 1))
}

/** Tokens with drafts take longer than without. */
export const speculationSlower: Rule = {
  id: 'speculation-slower',
  title: 'Speculative decoding does not pay',
  limits: { speedup: SPEEDUP, cycles: CYCLES },
  // Its calls are short, of several contexts and lengths, so that graphs are planned again.
  covers: ['outside-graphs'],
  advice: (program) =>
    `Shorter drafts (${program.option('draftTokens')}), only those that the draft model is sure of (${program.option('draftProbability')}), ` +
    'a draft model that is smaller or nearer to the model; or none. On a CPU and with MoE models a call of several tokens costs nearly as much as the tokens one by one',
  look: (analysis) => {
    const { speculation, requests } = analysis
    const drafts = speculation ? null : requests?.drafts
    if (drafts) return [{ figure: acceptance(drafts) }]
    if (!speculation || speculation.speedup === null || speculation.without_token_ns === null) return []
    const { speedup, with_token_ns, without_token_ns, generated_tokens, cycles, acceptance_share } = speculation
    const accepted = acceptance_share === null ? '' : `: ${percent(acceptance_share)} of drafted tokens are accepted`
    const sentence = `a token takes ${time(with_token_ns)} with drafts and ${time(without_token_ns)} without${accepted}`
    if (speedup >= SPEEDUP.value || cycles < CYCLES.value) return [{ figure: `${sentence} (× ${number(speedup)})` }]
    const { without_from, draft_ns, verify_ns, sample_ns } = speculation
    const { confidence, confidence_reason } = confidenceOf(analysis, cycles)
    const isExtrapolated = without_from !== 'plain decode calls'
    return found(sentence, {
      time_ns: (with_token_ns - without_token_ns) * generated_tokens,
      confidence: isExtrapolated && confidence === 'high' ? 'medium' : confidence,
      confidence_reason: `${confidence_reason}; without drafts: ${without_from}`,
      evidence: {
        ...{ speedup, with_token_ns, without_token_ns, without_from: without_from!, cycles },
        ...{ drafted: speculation.drafted_tokens, accepted: speculation.accepted_tokens },
        ...{ draft_ns, verify_ns, sample_ns },
      },
      check: {
        sql: `${WITH_REQUESTS}select sum(dur) from ${requestParts(undefined, ['draft'])}`,
        evidence: 'draft_ns',
      },
    })
  },
}
