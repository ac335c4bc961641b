import type { RequestPartKind } from '../../model/events.ts'
import type { RequestFigures } from '../requests/figures.ts'
import { IN_QUEUE, sumOf } from '../requests/parts.ts'
import { confidenceOfRequests } from './requests.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { requestParts, WITH_REQUESTS } from './sql.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'of the latency of all requests: a request that finds a free slot waits for the end of one call at most',
}

const FOR_SLOTS =
  'More slots (-np, --parallel) as far as the KV cache has space for them (-c): slots share calls, so that tokens of several requests cost ' +
  'little more than one. Else fewer requests at once, or shorter answers (n_predict)'
const FOR_CALLS =
  'A server takes requests from its queue between calls, and slots are free: smaller batches (-b, -ub) make calls with prompts shorter, at ' +
  'the cost of slower prompts. More slots change nothing'
const FOR_UNKNOWN =
  'What it waits for is recorded by ggml2perfetto record, and in a log of llama-server with -lv 5; of other servers, see their metrics'

/** What requests wait for in the queue: the parts, in words, and what to do. */
const CAUSES = [
  { key: 'deferred_ns', part: 'deferred', advice: FOR_SLOTS },
  { key: 'call_wait_ns', part: 'call-wait', advice: FOR_CALLS },
  { key: 'queued_ns', part: 'queued', advice: FOR_UNKNOWN },
] as const satisfies readonly { key: (typeof IN_QUEUE)[number]; part: RequestPartKind; advice: string }[]

/** Requests wait in the queue. */
export const queueTime: Rule = {
  id: 'queue-time',
  title: 'Requests wait in the queue',
  limits: { share: SHARE },
  advice: `For a free slot: ${FOR_SLOTS}. For the end of a call: ${FOR_CALLS}. Where the reason is not known: ${FOR_UNKNOWN}`,
  look: (analysis) => {
    const { requests } = analysis
    const queuedNs = requests && sumOf(requests.parts, IN_QUEUE)
    if (!requests || queuedNs === null || requests.latency_ns === 0) return []
    const { parts, latency_ns, slots, by_type } = requests
    const share = queuedNs / latency_ns
    const longest = Math.max(...Object.values(by_type).map(({ queued }) => queued?.max_ns ?? 0))
    const sentence = sentenceOf(requests, queuedNs, longest)
    if (share < SHARE.value) return [{ figure: sentence }]
    const [{ advice }] = CAUSES.toSorted((a, b) => (parts[b.key] ?? 0) - (parts[a.key] ?? 0)) as [
      (typeof CAUSES)[number],
    ]
    return found(sentence, {
      advice,
      time_ns: queuedNs,
      ...confidenceOfRequests(analysis, ''),
      evidence: {
        ...{ queued_share: share, queued_ns: queuedNs, longest_ns: longest, slots: slots.length },
        ...Object.fromEntries(CAUSES.flatMap(({ key }) => (key === 'queued_ns' ? [] : [[key, parts[key] ?? 0]]))),
      },
      check: {
        sql: `${WITH_REQUESTS}select sum(dur) from ${requestParts(
          undefined,
          CAUSES.map(({ part }) => part),
        )}`,
        evidence: 'queued_ns',
      },
    })
  },
}

function sentenceOf({ parts, latency_ns, slots }: RequestFigures, queuedNs: number, longestNs: number): string {
  const words: Record<(typeof CAUSES)[number]['key'], string> = {
    deferred_ns: `for a free one of ${slots.length} slot${slots.length === 1 ? '' : 's'}`,
    call_wait_ns: 'for the end of a call, with a slot free',
    queued_ns: 'for an unknown reason',
  }
  const known = CAUSES.filter(({ key }) => (parts[key] ?? 0) > 0).toSorted((a, b) => parts[b.key]! - parts[a.key]!)
  const why = known.map(({ key }) => `${percent(parts[key]! / latency_ns)} ${words[key]}`).join(', ')
  const text = `requests wait ${percent(queuedNs / latency_ns)} of their latency in the queue, at most ${time(longestNs)}`
  return known.length === 0 ? text : `${text}: ${why}`
}
