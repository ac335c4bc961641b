import { resized } from '../../bytes/resized.ts'
import type { RequestEvent } from '../../model/events.ts'
import { activeFromNs } from '../../model/requests/durations.ts'
import type { TrackContext } from '../context.ts'

/** Counters of requests that wait for a slot, and of slots that work on one. Requests come when they end, so they are drawn last. */
export class Levels {
  private readonly queue = new Level()
  private readonly busy = new Level()

  constructor(private readonly context: TrackContext) {}

  add(event: RequestEvent): void {
    const { startNs, launchNs, endNs, slot, parts } = event
    const workNs = parts.length > 0 ? activeFromNs(event) : launchNs >= 0 ? launchNs : startNs
    if (workNs > startNs) this.queue.add(startNs, workNs)
    if ((slot >= 0 || launchNs >= 0) && endNs > workNs) this.busy.add(workNs, endNs)
  }

  finish(): void {
    this.draw('queueLength', this.queue)
    this.draw('slotsBusy', this.busy)
  }

  private draw(key: 'queueLength' | 'slotsBusy', level: Level): void {
    if (level.count === 0) return
    const { tracks, writer } = this.context
    const track = tracks.add(key, {})
    level.each((atNs, height) => writer.counter(track, atNs, height))
  }
}

/** How many intervals contain each time. */
class Level {
  count = 0
  private starts = new Float64Array(64)
  private ends = new Float64Array(64)

  add(startNs: number, endNs: number): void {
    const at = this.count++
    if (at === this.starts.length) {
      this.starts = resized(this.starts, 2 * at)
      this.ends = resized(this.ends, 2 * at)
    }
    this.starts[at] = startNs
    this.ends[at] = endNs
  }

  /** Calls back for each time at which an interval begins or ends, in order. */
  each(onStep: (atNs: number, height: number) => void): void {
    const { count } = this
    const starts = this.starts.subarray(0, count).sort()
    const ends = this.ends.subarray(0, count).sort()
    let begun = 0
    let ended = 0
    while (ended < count) {
      const atNs = begun < count ? Math.min(starts[begun]!, ends[ended]!) : ends[ended]!
      while (begun < count && starts[begun] === atNs) begun++
      while (ended < count && ends[ended] === atNs) ended++
      onStep(atNs, begun - ended)
    }
  }
}
