import { checkNames } from '../../errors.ts'
import { REQUESTS_WITH_OPTIONS, WHY_REQUEST_OPTIONS } from '../../generated/option-names.ts'
import { count, plural } from '../../model/units.ts'
import type { Analysis } from '../analysis.ts'
import { nameOf } from '../findings/requests.ts'
import { percent, time } from '../findings/words.ts'
import type { RequestParts, RequestRow, StalledBy } from '../requests/figures.ts'
import { PART_KEYS } from '../requests/parts.ts'

/** A part of a request's latency, in words. */
export interface RequestReason {
  readonly part: keyof RequestParts
  readonly time_ns: number
  /** Of its latency; null where that is not known. */
  readonly share: number | null
  readonly sentence: string
}

/** Why an answer was slow. */
export interface WhyRequest {
  readonly request: RequestRow
  /** What its latency consists of, most time first. */
  readonly reasons: readonly RequestReason[]
  /** What else is known of it, such as reuse that was lost. */
  readonly remarks: readonly string[]
}

/** One request: by its number in the log, from 1, or by the server's number of its task, or by both. */
export interface WhichRequest {
  readonly request?: number | undefined
  readonly task?: number | undefined
}

/** The rows of requests with these numbers: those of the series `requests`, or of the slowest ones. */
export function requestsWith({ series, requests }: Analysis, which: WhichRequest): readonly RequestRow[] {
  checkNames('requestsWith', which, REQUESTS_WITH_OPTIONS)
  const { request, task } = which
  const rows = series?.requests?.rows ?? requests?.slowest ?? []
  return rows.filter(
    (row) => (request === undefined || row.id === request) && (task === undefined || row.task === task),
  )
}

/**
 * What the time of one answer went to; undefined where the Analysis has no row of it ({@link requestsWith}), or several: a server that
 * was started again, or several servers, use numbers of tasks again.
 */
export function whyRequest(analysis: Analysis, which: WhichRequest): WhyRequest | undefined {
  checkNames('whyRequest', which, WHY_REQUEST_OPTIONS)
  const [request, second] = requestsWith(analysis, which)
  if (!request || second) return undefined
  const { parts, latency_ns } = request
  const reasons = PART_KEYS.flatMap((part): RequestReason[] => {
    const ns = parts?.[part] ?? 0
    if (ns <= 0) return []
    const share = latency_ns === null ? null : latency_ns > 0 ? ns / latency_ns : 0
    const amount = share === null ? time(ns) : `${time(ns)} (${percent(share)})`
    return [{ part, time_ns: ns, share, sentence: `${amount}: ${SENTENCES[part](request, ns)}` }]
  })
  return { request, reasons: reasons.sort((a, b) => b.time_ns - a.time_ns), remarks: remarksOf(request) }
}

const SENTENCES: Readonly<Record<keyof RequestParts, (row: RequestRow, ns: number) => string>> = {
  call_wait_ns: () => 'it waited in the queue for the end of the running call: a server takes tasks between calls',
  deferred_ns: () => 'it waited in the queue for a free slot',
  queued_ns: () => 'it waited in a queue',
  prepare_ns: () => 'its slot was prepared: states saved and restored, its tokens compared with those in the cache',
  prefill_ns: prefillSentence,
  draft_ns: ({ drafted_tokens }) => `a draft model proposed ${plural(drafted_tokens, 'token')}`,
  decode_ns: ({ generated_tokens, drafted_tokens }, ns) => {
    const isAll = generated_tokens !== null && generated_tokens > 1 && drafted_tokens === 0
    return `calls computed its tokens${isAll ? `: ${plural(generated_tokens, 'token')}, ${time(ns / (generated_tokens - 1))} each after the first` : ''}`
  },
  verify_ns: ({ drafted_tokens, accepted_tokens }) =>
    `calls verified drafts: ${count(accepted_tokens)} of ${plural(drafted_tokens, 'token')} accepted`,
  sample_ns: () => 'samplers and grammar chose its tokens',
  text_ns: () => 'tokens became text',
  stalled_ns: ({ stalled_by, stalled_inferred_ns }) => {
    const inferred =
      stalled_inferred_ns > 0
        ? `; ${time(stalled_inferred_ns)} of it is inferred: calls with prompts of others in them`
        : ''
    return `it waited while others were worked on${stalled_by.length > 0 ? `: ${stalled_by.map(byText).join(', ')}` : ''}${inferred}`
  },
  preempted_ns: () => 'the thread that makes its calls could run but had no CPU',
  send_ns: () => 'the last result was sent',
  other_ns: ({ inferred }) =>
    inferred.includes('parts') ? 'the log does not show for what' : 'none of this: the program between calls',
}

function prefillSentence({ prompt_tokens, reused_tokens }: RequestRow, ns: number): string {
  if (prompt_tokens === null) return 'calls processed its prompt'
  const processed = prompt_tokens - (reused_tokens ?? 0)
  const reused = reused_tokens === null ? '' : `, ${count(reused_tokens)} were in the cache`
  const rate = ns > 0 ? `, ${count((processed * 1e9) / ns)} tokens/s` : ''
  return `calls processed ${count(processed)} of ${plural(prompt_tokens, 'token')} of its prompt${reused}${rate}`
}

function byText({ id, task, time_ns, prefill_ns, prefill_tokens }: StalledBy): string {
  const what =
    prefill_ns > time_ns / 2 && prefill_tokens > 0 ? ` (${plural(prefill_tokens, 'token')} of its prompt)` : ''
  return `${time(time_ns)} for ${nameOf(id, task)}${what}`
}

function remarksOf(request: RequestRow): string[] {
  const { lost, outcome, error, parts, inferred, drafted_tokens, accepted_tokens } = request
  const remarks: string[] = []
  if (lost && lost.processed_again > 0) {
    const why = lost.reason === null ? `token ${count(lost.position)} differs from that in its slot` : lost.reason
    remarks.push(
      `${plural(lost.processed_again, 'token')} of its prompt ${lost.processed_again === 1 ? 'was' : 'were'} processed though the slot had ${count(lost.tokens)} others from there on: ${why}`,
    )
  }
  if (outcome === 'cancelled') remarks.push('it was cancelled: its client did not wait for it')
  if (outcome === 'error') remarks.push(`it failed${error === null ? '' : `: ${error}`}`)
  if (outcome === 'unfinished') remarks.push('the log ends before it does')
  if (parts === null) remarks.push('the log does not contain its calls: where its time went is not known')
  if (drafted_tokens > 0 && (parts?.verify_ns ?? 0) === 0)
    remarks.push(
      `${count(accepted_tokens)} of ${plural(drafted_tokens, 'drafted token')} ${drafted_tokens === 1 ? 'was' : 'were'} accepted`,
    )
  if (inferred.includes('borders')) remarks.push('its borders are inferred from its tokens')
  const stated = ['parts', 'tokens'].filter((what) => {
    return inferred.some((known) => known === what) && (what !== 'parts' || parts !== null)
  })
  if (stated.length > 0) remarks.push(`its ${stated.join(' and ')} are inferred from what the server wrote of it`)
  if (inferred.includes('times')) {
    const known = parts === null ? '' : ': these are what the server measured, from its prompt on'
    remarks.push(`the log contains no times of it${known}`)
  }
  return remarks
}
