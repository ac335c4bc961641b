import { QUEUE_PARTS, type RequestEvent, type RequestPart, type RequestPartKind } from '../request-events.ts'
import { isPlaced } from '../times.ts'

/** Durations of a request, in ns; null: not known. */
export interface RequestDurations {
  /** From its start to its end. */
  readonly latencyNs: number | null
  /** From its start to its first token; null without one. */
  readonly ttftNs: number | null
  /** From its first token to its last, by the tokens after the first; null with fewer than two. */
  readonly tpotNs: number | null
  /** By kind: the sum of its parts; null where the input does not contain a kind. */
  readonly partNs: (what: RequestPartKind) => number | null
}

/**
 * The durations of a request: the differences of its times, where these are recorded. Where they only follow from the order of a log's
 * lines, those that the server itself measured and wrote at the request's end: they begin with its prompt, not in the queue.
 */
export function durationsOf(event: RequestEvent): RequestDurations {
  return hasTimes(event) ? recorded(event) : stated(event)
}

/** Are its times recorded? A request takes some time: where it ends when it begins, they are not. */
export function hasTimes({ inferred, startNs, endNs }: RequestEvent): boolean {
  return isPlaced(inferred) && endNs > startNs
}

function recorded(event: RequestEvent): RequestDurations {
  const { startNs, endNs, firstTokenNs, generatedTokens, parts, unknownParts } = event
  const hasTokens = firstTokenNs >= 0
  const sums = new Map<RequestPartKind, number>()
  for (const { what, startNs, endNs } of parts) sums.set(what, (sums.get(what) ?? 0) + endNs - startNs)
  return {
    latencyNs: endNs - startNs,
    ttftNs: hasTokens ? firstTokenNs - startNs : null,
    tpotNs: hasTokens && generatedTokens > 1 ? (lastTokenNs(event) - firstTokenNs) / (generatedTokens - 1) : null,
    partNs: (what) => (parts.length === 0 || unknownParts?.includes(what) ? null : (sums.get(what) ?? 0)),
  }
}

/** The end of the last part that makes a token. */
function lastTokenNs({ parts, endNs, firstTokenNs }: RequestEvent): number {
  const last = parts.findLast(({ what }) => what === 'sample' || what === 'decode' || what === 'verify')
  return Math.max(last?.endNs ?? endNs, firstTokenNs)
}

function stated({ generatedTokens, stated = {} }: RequestEvent): RequestDurations {
  const { promptNs = null, generationNs = null, totalNs } = stated
  const sumNs = promptNs === null || generationNs === null ? null : promptNs + generationNs
  return {
    latencyNs: totalNs ?? sumNs,
    ttftNs: generatedTokens > 0 ? promptNs : null,
    tpotNs: generatedTokens > 1 && generationNs !== null ? generationNs / (generatedTokens - 1) : null,
    partNs: (what) => (what === 'prefill' ? promptNs : what === 'decode' ? generationNs : null),
  }
}

/** Is a part one before a slot begins with the request? */
export function isInQueue({ what }: RequestPart): boolean {
  return (QUEUE_PARTS as readonly RequestPartKind[]).includes(what)
}

/** When a request can wait for others, or keep them waiting: from the end of its time in the queue. */
export function activeFromNs({ parts, endNs }: RequestEvent): number {
  return parts.find((part) => !isInQueue(part))?.startNs ?? endNs
}
