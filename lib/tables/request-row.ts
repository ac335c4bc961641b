import type { RequestEvent } from '../model/events.ts'
import { inferredText } from '../model/inferred.ts'
import type { Names } from '../model/names.ts'
import { durationsOf } from '../model/requests/durations.ts'
import { orNull } from '../model/units.ts'
import type { NewRow } from './table-file.ts'

/** The row of a request. */
export function requestRow(event: RequestEvent, names: Names): NewRow<'request'> {
  const { startNs, lost, error, inferred } = event
  const { latencyNs, ttftNs, partNs: part } = durationsOf(event)
  return {
    request: event.id,
    ts_ns: startNs,
    dur_ns: latencyNs,
    task: orNull(event.task),
    slot: orNull(event.slot),
    context: event.context || null,
    type: event.type,
    outcome: event.outcome,
    ttft_ns: ttftNs,
    call_wait_ns: part('call-wait'),
    deferred_ns: part('deferred'),
    queue_ns: part('queued'),
    prepare_ns: part('prepare'),
    prefill_ns: part('prefill'),
    draft_ns: part('draft'),
    decode_ns: part('decode'),
    verify_ns: part('verify'),
    sample_ns: part('sample'),
    text_ns: part('text'),
    stalled_ns: part('stalled'),
    send_ns: part('send'),
    other_ns: part('other'),
    n_prompt: orNull(event.promptTokens),
    n_cached: orNull(event.reusedTokens),
    n_gen: orNull(event.generatedTokens),
    n_draft: event.draftedTokens,
    n_accepted: event.acceptedTokens,
    n_lost: lost ? lost.tokens : null,
    error: error === undefined ? null : names.text(error),
    inferred: inferred === 0 ? null : inferredText(inferred),
  }
}
