import type { CounterEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** The Counters group: one row for each numeric series that the input names. */
export class Series {
  private readonly tracks = new Map<number, number>()

  constructor(private readonly context: TrackContext) {}

  place({ name, unit, atNs, value }: CounterEvent): void {
    const { tracks, names, writer } = this.context
    let track = this.tracks.get(name)
    if (track === undefined) {
      track = tracks.add('oneSeries', { name: names.text(name), unit, nth: this.tracks.size })
      this.tracks.set(name, track)
    }
    writer.counter(track, atNs, value)
  }
}
