import { plural } from '../../model/units.ts'
import type { RequestFigures } from '../requests/figures.ts'
import { sumOf, WORK } from '../requests/parts.ts'
import { confidenceOfRequests } from './requests.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = { value: 0.1, why: 'of the work for all requests: some clients always go' }

const FOR_CANCELLED =
  'Clients go before their answer is complete: their timeouts are too short for the queue and the prompt, or they ask again. A server ' +
  'notices it only when it sends: answers that stream are cancelled earlier'
const FOR_FAILED =
  "The server's messages are the reason: ggml2perfetto why <logs> --request, with the number of one that failed"

/** Much work was for requests that nobody waited for, or that failed. */
export const cancelledWork: Rule = {
  id: 'cancelled-work',
  title: 'Work for requests that were cancelled or failed',
  limits: { share: SHARE },
  advice: `Where they were cancelled: ${FOR_CANCELLED}. Where they failed: ${FOR_FAILED}`,
  look: (analysis) => {
    const { requests } = analysis
    if (!requests) return []
    const { cancelled, count, outcomes } = requests
    const all = plural(count, 'request')
    if (!cancelled) return [{ figure: `none of ${all} was cancelled or failed` }]
    const [allNs, timeNs] = [sumOf(requests.parts, WORK), cancelled.time_ns]
    const counted = `${outcomesOf(requests)} of ${all}`
    if (!allNs || timeNs === null)
      return [{ figure: `${counted}: the log does not contain the time of the work for them` }]
    const share = timeNs / allNs
    const unknown = cancelled.requests - cancelled.timed
    const rest = unknown > 0 ? `; the time of ${unknown} of them is not known` : ''
    const sentence = `${percent(share)} of the work was for requests that were not answered (${counted}): ${time(timeNs)}${rest}`
    if (share < SHARE.value) return [{ figure: sentence }]
    const { prompt_tokens, generated_tokens } = cancelled
    return found(sentence, {
      advice: (outcomes.cancelled ?? 0) >= (outcomes.error ?? 0) ? FOR_CANCELLED : FOR_FAILED,
      time_ns: timeNs,
      ...confidenceOfRequests(analysis, ''),
      evidence: {
        ...{ cancelled_share: share, cancelled_ns: timeNs, requests: cancelled.requests },
        ...(prompt_tokens !== null && { prompt_tokens }),
        ...(generated_tokens !== null && { generated_tokens }),
      },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'cancelled_ns' },
    })
  },
}

/** `2 cancelled, 1 failed`: as `stats` counts them. */
const outcomesOf = ({ outcomes }: RequestFigures) =>
  [
    ...(outcomes.cancelled ? [`${outcomes.cancelled} cancelled`] : []),
    ...(outcomes.error ? [`${outcomes.error} failed`] : []),
  ].join(', ')
