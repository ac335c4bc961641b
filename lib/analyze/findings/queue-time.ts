import { confidenceOfRequests } from './requests.ts'
import type { Limit, Rule } from './rule.ts'
import { requestParts, WITH_REQUESTS } from './sql.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'of the latency of all requests: a request that finds a free slot waits for the end of one call at most',
}

/** Requests wait for a free slot. */
export const queueTime: Rule = {
  id: 'queue-time',
  title: 'Requests wait for a free slot',
  limits: { share: SHARE },
  advice:
    'More slots (-np, --parallel) as far as the KV cache has space for them (-c): slots share calls, so that tokens of several requests cost ' +
    'little more than one. Else fewer requests at once, or shorter answers (n_predict)',
  look: (analysis) => {
    const { requests } = analysis
    if (!requests || requests.latency_ns === 0) return []
    const { parts, latency_ns, slots, by_type } = requests
    const share = parts.queued_ns / latency_ns
    const longest = Math.max(...Object.values(by_type).map(({ queued }) => queued?.max_ns ?? 0))
    const of = `${slots.length} slot${slots.length === 1 ? '' : 's'}`
    const sentence = `requests wait ${percent(share)} of their latency for one of ${of}: at most ${time(longest)}`
    if (share < SHARE.value) return [{ figure: sentence }]
    const finding = {
      sentence,
      time_ns: parts.queued_ns,
      ...confidenceOfRequests(analysis, ''),
      evidence: { queued_share: share, queued_ns: parts.queued_ns, longest_ns: longest, slots: slots.length },
      check: {
        sql: `${WITH_REQUESTS}select sum(dur) from ${requestParts(undefined, ['queued'])}`,
        evidence: 'queued_ns',
      },
    }
    return [{ figure: sentence, finding }]
  },
}
