import type { EventBatch } from '../common/batches.ts'

/** More counters, of all events and CPUs, are damage. */
const TRACKS_MAX = 4096

/** Counters of which a value is known for each interval: drawn from its start, and 0 after the last one. */
export class IntervalCounters {
  private readonly tracks = new Map<string, number>()

  constructor(private readonly batch: EventBatch) {}

  sample(name: string, description: string, atNs: number, value: number): void {
    let track = this.tracks.get(name)
    if (track === undefined) {
      if (this.tracks.size === TRACKS_MAX) return this.batch.leftOut.add('values of further events')
      track = this.tracks.size
      this.tracks.set(name, track)
      this.batch.add({ kind: 'own-track', id: track, name, description, holds: 'counter' })
    }
    this.batch.add({ kind: 'own-sample', track, atNs, value })
  }

  /** `endNs`: the end of the last interval. */
  finish(endNs: number): void {
    for (const track of this.tracks.values()) this.batch.add({ kind: 'own-sample', track, atNs: endNs, value: 0 })
    this.batch.end()
  }
}
