import { WORK } from '../requests/parts.ts'
import { confidenceOfRequests } from './requests.ts'
import type { Limit, Rule } from './rule.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = { value: 0.1, why: 'of the work for all requests: some clients always go' }

/** Much work was for requests that nobody waited for. */
export const cancelledWork: Rule = {
  id: 'cancelled-work',
  title: 'Work for requests that were cancelled or failed',
  limits: { share: SHARE },
  advice:
    'Clients go before their answer is complete: their timeouts are too short for the queue and the prompt, or they ask again. A server ' +
    'notices it only when it sends: answers that stream are cancelled earlier',
  look: (analysis) => {
    const { requests } = analysis
    if (!requests) return []
    const allNs = WORK.reduce((sum, key) => sum + requests.parts[key], 0)
    const { cancelled, count } = requests
    if (!cancelled || allNs === 0) return [{ figure: `none of ${count} requests was cancelled` }]
    const share = cancelled.time_ns / allNs
    const sentence = `${percent(share)} of the work was for ${cancelled.requests} of ${count} requests that were cancelled or failed: ${time(cancelled.time_ns)}`
    if (share < SHARE.value) return [{ figure: sentence }]
    const finding = {
      sentence,
      time_ns: cancelled.time_ns,
      ...confidenceOfRequests(analysis, ''),
      evidence: {
        ...{ cancelled_share: share, cancelled_ns: cancelled.time_ns, requests: cancelled.requests },
        ...{ prompt_tokens: cancelled.prompt_tokens, generated_tokens: cancelled.generated_tokens },
      },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'cancelled_ns' },
    }
    return [{ figure: sentence, finding }]
  },
}
