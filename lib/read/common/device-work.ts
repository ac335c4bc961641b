import { type GpuEvent, UNKNOWN_PLACE } from '../../model/gpu-events.ts'
import { Inferred } from '../../model/inferred.ts'
import type { Names } from '../../model/names.ts'

/** What a backend printed of an operator, or of all operators of one kind in a graph. Times in ns. */
export interface DeviceOperator {
  readonly name: string
  readonly timeNs: number
  /** Operators that it sums up; 1 by default. */
  readonly count?: number
  readonly facts: Readonly<Record<string, number | string>>
  /** Bits of {@link Inferred}; by default its start is laid end to end. */
  readonly inferred?: number
}

/** The event of an operator on a queue that is only known by the name of its backend. */
export function deviceOperator(
  names: Names,
  queue: string,
  { name, count = 1, facts, inferred = Inferred.Laid }: DeviceOperator,
  startNs: number,
  endNs: number,
): GpuEvent {
  return {
    ...{ kind: 'gpu', what: 'kernel', name: names.id(name), startNs, endNs, correlation: -1, signature: 0 },
    ...{ ...UNKNOWN_PLACE, stream: names.id(queue), queue: names.id(queue) },
    facts: count > 1 ? { ...facts, count } : facts,
    ...(count > 1 && { count }),
    ...(inferred !== 0 && { inferred }),
  }
}
