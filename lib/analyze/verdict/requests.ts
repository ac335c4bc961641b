import { plural } from '../../model/units.ts'
import type { Analysis, Distribution, RequestRow } from '../analysis.ts'
import { nameOf } from '../findings/requests.ts'
import { percent, time } from '../findings/words.ts'
import type { RequestParts } from '../requests/figures.ts'

/** The requests that a run is judged by: those of the type with the most. */
interface JudgedRequests {
  readonly noun: string
  readonly requests: number
  readonly latency: Distribution
  readonly slowest: RequestRow | undefined
}

/** Undefined where fewer than two have a latency: a single text is judged by its tokens. */
export function requestsIn({ requests, calls }: Analysis): JudgedRequests | undefined {
  const types = Object.entries(requests?.by_type ?? {})
    .flatMap(([type, { latency }]) => (latency ? [{ type, latency }] : []))
    .toSorted((a, b) => b.latency.count - a.latency.count)
  const [most] = types.filter(({ type }) => type !== 'unknown').concat(types)
  if (!most || (most.latency.count < 2 && calls.decode_tokens_per_s !== null)) return undefined
  const { type, latency } = most
  const noun = type === 'unknown' || type === 'completion' ? 'request' : `${type} request`
  return { noun, requests: latency.count, latency, slowest: requests!.slowest.find((row) => row.type === type) }
}

/** Waiting of less than this part of a latency is not its cause. */
const WAITED = 0.2

/** What the slowest of so many requests waited for, or what took its time. */
export function causeOfSlowest(slowest: RequestRow, latencies: number): string | undefined {
  const { parts, latency_ns, id, task } = slowest
  if (!parts || latency_ns === null || !(latency_ns > 0)) return undefined
  const most = (keys: readonly (keyof RequestParts)[]) =>
    keys.map((key) => ({ key, ns: parts[key] ?? 0 })).toSorted((a, b) => b.ns - a.ns)[0]!
  const name = latencies === 1 ? 'it' : `the slowest (${nameOf(id, task)})`
  const waited = most(Object.keys(WAITS) as (keyof typeof WAITS)[])
  if (waited.ns >= WAITED * latency_ns)
    return `${name} waited ${time(waited.ns)} ${WAITS[waited.key as keyof typeof WAITS](slowest)}`
  const worked = most(Object.keys(WORK) as (keyof typeof WORK)[])
  if (worked.ns < latency_ns / 2) return undefined
  return `${name} took ${time(worked.ns)} (${percent(worked.ns / latency_ns)}) ${WORK[worked.key as keyof typeof WORK](slowest)}`
}

const WAITS = {
  call_wait_ns: () => 'for the end of the running call',
  deferred_ns: () => 'for a free slot',
  queued_ns: () => 'in a queue',
  stalled_ns: ({ stalled_by, parts }: RequestRow) => {
    const byPrompts = stalled_by.reduce((sum, { prefill_ns }) => sum + prefill_ns, 0)
    const what = byPrompts > parts!.stalled_ns! / 2 ? 'prompts of others' : 'other requests'
    return `for ${what}${parts!.deferred_ns === 0 ? ', not for a slot' : ''}`
  },
  preempted_ns: () => 'for a CPU that its thread had lost',
} satisfies Partial<Record<keyof RequestParts, (row: RequestRow) => string>>

const WORK = {
  prefill_ns: ({ prompt_tokens, reused_tokens }: RequestRow) =>
    prompt_tokens === null
      ? 'to process its prompt'
      : `to process ${plural(prompt_tokens - (reused_tokens ?? 0), 'token')} of its prompt`,
  decode_ns: ({ generated_tokens }: RequestRow) =>
    `to generate ${generated_tokens === null ? 'its tokens' : plural(generated_tokens, 'token')}`,
  verify_ns: ({ generated_tokens }: RequestRow) =>
    `to verify drafts${generated_tokens === null ? '' : ` for ${plural(generated_tokens, 'token')}`}`,
  sample_ns: () => 'in samplers and grammar',
} satisfies Partial<Record<keyof RequestParts, (row: RequestRow) => string>>
