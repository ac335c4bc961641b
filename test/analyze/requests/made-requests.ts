import type { EventInput, Names, TraceEvent } from '../../../lib/index.ts'
import type { RequestEvent, RequestPart, RequestPartKind } from '../../../lib/model/events.ts'

/** Requests that tests make. */

/** A part: what, its end in ns, and what is known of it. */
export type MadePart = readonly [what: RequestPartKind, untilNs: number, of?: Partial<RequestPart>]

/** A request from `startNs` on, its parts without gaps. */
export interface MadeRequest extends Partial<Omit<RequestEvent, 'parts' | 'endNs'>> {
  readonly startNs: number
  readonly parts: readonly MadePart[]
}

/** A request with these parts. */
export function requestOf({ parts, startNs, ...of }: MadeRequest, id: number): RequestEvent {
  let fromNs = startNs
  const made = parts.map(([what, endNs, more]): RequestPart => {
    const part = {
      what,
      startNs: fromNs,
      endNs,
      call: -1,
      tokens: -1,
      accepted: -1,
      othersTokens: 0,
      others: 0,
      ...more,
    }
    fromNs = endNs
    return part
  })
  return {
    ...{ kind: 'request', id, task: 100 + id, slot: id - 1, context: 1, type: 'completion', outcome: 'complete' },
    ...{ startNs, launchNs: startNs, firstTokenNs: -1, endNs: fromNs, promptTokens: -1, reusedTokens: -1 },
    ...{ generatedTokens: -1, draftedTokens: 0, acceptedTokens: 0, inferred: 0, parts: made },
    ...of,
  }
}

/** A log of events that `make` returns. */
export const logOf = (make: (names: Names) => TraceEvent[]): EventInput => ({
  name: 'made',
  *events(names) {
    yield [{ kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    yield make(names)
  },
})

/** A log of requests, in the order of their ends. */
export function logOfRequests(requests: readonly MadeRequest[], more: (names: Names) => TraceEvent[] = () => []) {
  return logOf((names) => [
    ...more(names),
    ...requests.map((of, i) => requestOf(of, i + 1)).sort((a, b) => a.endNs - b.endNs),
  ])
}
