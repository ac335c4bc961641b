import { DefaultMap } from '../../model/default-map.ts'
import type { AllocationEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** Counters of the Memory group: bytes of all backend buffers of one name, from their allocation until they are freed. */
export class Allocations {
  /** By name of the buffers. Kept to the end: logs record an allocation only when the buffer is first used. */
  private readonly events = new DefaultMap<number, AllocationEvent[]>(() => [])

  constructor(private readonly context: TrackContext) {}

  add(event: AllocationEvent): void {
    this.events.of(event.buffer).push(event)
  }

  /** Allocations up to a time: the first, the last, and their bytes; undefined if there are none, or if the log begins later. */
  until(atNs: number): { readonly firstNs: number; readonly lastNs: number; readonly bytes: number } | undefined {
    const events = [...this.events.values()].flat().filter((event) => event.bytes > 0 && event.atNs <= atNs)
    if (events.length === 0 || events.some(({ isEarlier }) => isEarlier)) return undefined
    const times = events.map((event) => event.atNs)
    const bytes = events.reduce((sum, event) => sum + event.bytes, 0)
    return { firstNs: Math.min(...times), lastNs: Math.max(...times), bytes }
  }

  finish(): void {
    const { tracks, names, writer } = this.context
    let nth = 0
    for (const [buffer, events] of this.events) {
      const track = tracks.add('allocated', { buffers: names.text(buffer) || 'unnamed buffers', nth: nth++ })
      let live = 0
      for (const { atNs, bytes } of events.sort((a, b) => a.atNs - b.atNs)) {
        live += bytes
        writer.counter(track, atNs, live)
      }
    }
  }
}
