import type { InputEvent, RequestEvent, RpcEvent, TraceEvent } from '../../model/events.ts'

/** Converts times of an input to those of the trace, which count from the first input's origin, on its clock. */
export interface Relation {
  /** Where it is from, in words. */
  readonly how: string
  /** Offset from a time since the input's origin, in ns. */
  readonly shiftNs: number
  /** Further offset per ns since `driftFromNs`. */
  readonly drift: number
  readonly driftFromNs: number
  /** Maximum error, in ns; undefined if unknown. */
  readonly boundNs: number | undefined
  /** Where the error is larger: by `perNs` per ns before and after these times of the input. */
  readonly beyond?: { readonly fromNs: number; readonly toNs: number; readonly perNs: number }
}

/** The relation of the first input, and of inputs with the same clock and origin. */
export const SAME: Relation = { how: 'the same clock', shiftNs: 0, drift: 0, driftFromNs: 0, boundNs: 0 }

/** Converts a time of the input to one of the trace. */
export function timeOf({ shiftNs, drift, driftFromNs }: Relation, ns: number): number {
  return ns + shiftNs + (drift === 0 ? 0 : Math.round(drift * (ns - driftFromNs)))
}

/** The maximum error of the input's times from `firstNs` to `lastNs`, in ns; undefined if unknown. */
export function boundWithin({ boundNs, beyond }: Relation, firstNs: number, lastNs: number): number | undefined {
  if (boundNs === undefined || !beyond) return boundNs
  return Math.ceil(boundNs + beyond.perNs * Math.max(0, beyond.fromNs - firstNs, lastNs - beyond.toNs))
}

/** Converts a batch of the input to the clock of `first`. */
export function related(batch: TraceEvent[], relation: Relation, first: InputEvent): TraceEvent[] {
  const isSame = relation.shiftNs === 0 && relation.drift === 0
  if (isSame && batch[0]?.kind !== 'input') return batch
  return batch.map((event) => {
    if (event.kind === 'input') {
      return { ...event, clock: first.clock, originNs: first.originNs + BigInt(timeOf(relation, 0)) }
    }
    return isSame ? event : moved(event, relation)
  })
}

function moved(event: TraceEvent, relation: Relation): TraceEvent {
  if ('atNs' in event) return { ...event, atNs: timeOf(relation, event.atNs) }
  if (!('startNs' in event)) return event
  const span = { startNs: timeOf(relation, event.startNs), endNs: timeOf(relation, event.endNs) }
  if (event.kind === 'operator') return { ...event, ...span, waitEndNs: timeOf(relation, event.waitEndNs) }
  if (event.kind === 'rpc') return { ...event, ...span, ...movedMessage(event, relation) }
  if (event.kind === 'request') return { ...event, ...span, ...movedRequest(event, relation) }
  if (event.kind === 'token' && event.returnNs !== undefined)
    return { ...event, ...span, returnNs: timeOf(relation, event.returnNs) }
  return { ...event, ...span }
}

function movedMessage({ sentNs, answeredNs }: RpcEvent, relation: Relation): Partial<RpcEvent> {
  return {
    sentNs: timeOf(relation, sentNs),
    answeredNs: answeredNs === undefined ? undefined : timeOf(relation, answeredNs),
  }
}

function movedRequest({ launchNs, firstTokenNs, parts }: RequestEvent, relation: Relation): Partial<RequestEvent> {
  const moved = (ns: number) => timeOf(relation, ns)
  return {
    launchNs: launchNs < 0 ? launchNs : moved(launchNs),
    firstTokenNs: firstTokenNs < 0 ? firstTokenNs : moved(firstTokenNs),
    parts: parts.map((part) => ({ ...part, startNs: moved(part.startNs), endNs: moved(part.endNs) })),
  }
}

/** The relation from the trace to the input. */
export function inverse({ how, shiftNs, drift, driftFromNs, boundNs }: Relation): Relation {
  const back = { shiftNs: -shiftNs, drift: -drift / (1 + drift), driftFromNs: driftFromNs + shiftNs }
  return { how, ...back, boundNs }
}

/** Converts by `first`, then by `second`; described as `second`. */
export function chained(first: Relation, second: Relation): Relation {
  const drift = first.drift + second.drift + first.drift * second.drift
  return { ...second, shiftNs: timeOf(second, timeOf(first, 0)), drift, driftFromNs: 0 }
}
