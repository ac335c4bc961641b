import { AllocationsByName } from '../../model/allocations.ts'
import type { AllocationEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** Counters of the Memory group: bytes of all backend buffers of one name, from their allocation until they are freed. */
export class Allocations {
  private readonly byName = new AllocationsByName()

  constructor(private readonly context: TrackContext) {}

  add(event: AllocationEvent): void {
    this.byName.add(event)
  }

  /** Allocations up to a time: the first, the last, and their bytes; undefined if there are none, or if the log begins later. */
  until(atNs: number): { readonly firstNs: number; readonly lastNs: number; readonly bytes: number } | undefined {
    const all = this.byName.all().flatMap(({ events }) => events)
    const events = all.filter((event) => event.bytes > 0 && event.atNs <= atNs)
    if (events.length === 0 || events.some(({ isEarlier }) => isEarlier)) return undefined
    const times = events.map((event) => event.atNs)
    const bytes = events.reduce((sum, event) => sum + event.bytes, 0)
    return { firstNs: Math.min(...times), lastNs: Math.max(...times), bytes }
  }

  finish(): void {
    const { tracks, names, writer } = this.context
    for (const [nth, { name, events }] of this.byName.all().entries()) {
      const track = tracks.add('allocated', { buffers: names.text(name) || 'unnamed buffers', nth })
      let live = 0
      for (const { atNs, bytes } of events) {
        live += bytes
        writer.counter(track, atNs, live)
      }
    }
  }
}
