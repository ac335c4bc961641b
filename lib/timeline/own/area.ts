import type { CounterEvent } from '../../model/events.ts'
import type { OwnEvent } from '../../model/own-events.ts'
import type { TrackContext } from '../context.ts'
import { OwnTracks } from './own-tracks.ts'
import { Series } from './series.ts'

/** Draws custom series and tracks of an input, or of the program that creates the events. */
export class OwnArea {
  private readonly series: Series
  private readonly tracks: OwnTracks

  constructor(context: TrackContext) {
    this.series = new Series(context)
    this.tracks = new OwnTracks(context)
  }

  take(event: CounterEvent | OwnEvent): void {
    switch (event.kind) {
      case 'counter':
        return this.series.place(event)
      case 'own-track':
        return this.tracks.define(event)
      case 'own-name':
        return this.tracks.rename(event)
      case 'own-slice':
        return this.tracks.slice(event)
      case 'own-instant':
        return this.tracks.instant(event)
      case 'own-sample':
        return this.tracks.sample(event)
    }
  }

  finish(): void {
    this.tracks.finish()
  }
}
