import { Inferred, type RequestEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { durationsOf, hasTimes } from '../../model/requests/durations.ts'
import { orNull } from '../../model/units.ts'
import type { LostTokens, RequestParts, RequestRow, StalledBy } from './figures.ts'
import type { Cause } from './stalls.ts'

/** Requests that stalled one, in its row. */
const STALLED_BY_MAX = 5

/** What is known of a request together with others. */
export interface Measured {
  readonly parts: RequestParts | undefined
  readonly causes: readonly Cause[]
  readonly excessNs: number
}

/** The row of a request; times of the log. */
export function rowOf(event: RequestEvent, { parts, causes, excessNs }: Measured, names: Names): RequestRow {
  const { startNs, generatedTokens } = event
  const { latencyNs, ttftNs, tpotNs } = durationsOf(event)
  return {
    id: event.id,
    task: orNull(event.task),
    slot: orNull(event.slot),
    type: event.type,
    outcome: event.outcome,
    start_ns: hasTimes(event) ? startNs : null,
    latency_ns: latencyNs,
    ttft_ns: ttftNs,
    tpot_ns: tpotNs,
    prompt_tokens: orNull(event.promptTokens),
    reused_tokens: orNull(event.reusedTokens),
    generated_tokens: orNull(generatedTokens),
    drafted_tokens: event.draftedTokens,
    accepted_tokens: event.acceptedTokens,
    parts: parts ?? null,
    stalled_inferred_ns: excessNs,
    stalled_by: stalledBy(causes, latencyNs ?? 0).slice(0, STALLED_BY_MAX),
    lost: lostOf(event, parts, names),
    error: event.error === undefined ? null : names.text(event.error),
    inferred: inferredIn(hasTimes(event) ? event.inferred : event.inferred | Inferred.Order),
  }
}

/** The others for which a request waited, most time first. */
export function stalledBy(causes: readonly Cause[], latencyNs: number): StalledBy[] {
  return causes
    .map(
      ({ by, timeNs, prefillNs, prefillTokens, overlapNs }): StalledBy => ({
        ...{ id: by.id, task: orNull(by.task), time_ns: timeNs, share: latencyNs > 0 ? timeNs / latencyNs : 0 },
        ...{ prefill_ns: prefillNs, prefill_tokens: prefillTokens, overlap_ns: overlapNs },
      }),
    )
    .sort((a, b) => b.time_ns - a.time_ns)
}

function lostOf(
  { lost, promptTokens, reusedTokens }: RequestEvent,
  parts: RequestParts | undefined,
  names: Names,
): LostTokens | null {
  if (!lost) return null
  const processed = promptTokens < 0 ? 0 : promptTokens - Math.max(reusedTokens, 0)
  const prefillNs = parts?.prefill_ns ?? null
  const again = Math.max(Math.min(lost.tokens, processed), 0)
  return {
    position: lost.position,
    tokens: lost.tokens,
    processed_again: again,
    time_ns: again === 0 ? 0 : prefillNs === null ? null : (prefillNs * again) / processed,
    reason: lost.reason === undefined ? null : names.text(lost.reason),
  }
}

function inferredIn(bits: number): RequestRow['inferred'] {
  const all = [
    [Inferred.Call, 'borders'],
    [Inferred.Parts, 'parts'],
    [Inferred.TokenCount, 'tokens'],
    [Inferred.Order, 'times'],
  ] as const
  return all.filter(([bit]) => bits & bit).map(([, what]) => what)
}
