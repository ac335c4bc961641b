import type { InputEvent, TraceEvent } from '../../model/events.ts'

/** How the times of an input become those of the trace, which count from the first input's origin, on its clock. */
export interface Relation {
  /** In words: where it is from. */
  readonly how: string
  /** What to add to a time since the input's origin, in ns. */
  readonly shiftNs: number
  /** By how much more per ns, counted from `driftFromNs`. */
  readonly drift: number
  readonly driftFromNs: number
  /** By how much it may be wrong, in ns; undefined where no one knows. */
  readonly boundNs: number | undefined
}

/** The relation of the first input, and of those that are on its clock and begin at once. */
export const SAME: Relation = { how: 'the same clock', shiftNs: 0, drift: 0, driftFromNs: 0, boundNs: 0 }

/** A time of the input as one of the trace. */
export function timeOf({ shiftNs, drift, driftFromNs }: Relation, ns: number): number {
  return ns + shiftNs + (drift === 0 ? 0 : Math.round(drift * (ns - driftFromNs)))
}

/** A batch of the input on the clock of `first`. */
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
  return { ...event, ...span }
}

/** From the trace back to the input. */
export function inverse({ how, shiftNs, drift, driftFromNs, boundNs }: Relation): Relation {
  const back = { shiftNs: -shiftNs, drift: -drift / (1 + drift), driftFromNs: driftFromNs + shiftNs }
  return { how, ...back, boundNs }
}

/** From an input to where `second` leads from where `first` leads: said to be as the second says. */
export function chained(first: Relation, second: Relation): Relation {
  const drift = first.drift + second.drift + first.drift * second.drift
  return { ...second, shiftNs: timeOf(second, timeOf(first, 0)), drift, driftFromNs: 0 }
}
