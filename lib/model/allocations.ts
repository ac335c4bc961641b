import { DefaultMap } from './default-map.ts'
import type { AllocationEvent } from './events.ts'

/** Bytes of the backend buffers of one name. */
export interface Allocated {
  readonly name: number
  /** In order of time. */
  readonly events: readonly AllocationEvent[]
}

/** Allocations by name of the buffers. Kept to the end: logs record an allocation only when the buffer is first used. */
export class AllocationsByName {
  private readonly events = new DefaultMap<number, AllocationEvent[]>(() => [])

  add(event: AllocationEvent): void {
    this.events.of(event.buffer).push(event)
  }

  /** In the order in which the names were first seen. */
  all(): Allocated[] {
    return [...this.events].map(([name, events]) => ({ name, events: events.sort((a, b) => a.atNs - b.atNs) }))
  }
}
