import type { RequestEvent } from '../../model/events.ts'
import { activeFromNs } from '../../model/requests/durations.ts'
import type { TrackContext } from '../context.ts'

/** Counters of requests that wait for a slot, and of slots that work on one. Requests come when they end, so they are drawn last. */
export class Levels {
  private readonly queue: number[][] = []
  private readonly busy: number[][] = []

  constructor(private readonly context: TrackContext) {}

  add(event: RequestEvent): void {
    const { startNs, launchNs, endNs, slot, parts } = event
    const workNs = parts.length > 0 ? activeFromNs(event) : launchNs >= 0 ? launchNs : startNs
    if (workNs > startNs) this.queue.push([startNs, 1], [workNs, -1])
    if ((slot >= 0 || launchNs >= 0) && endNs > workNs) this.busy.push([workNs, 1], [endNs, -1])
  }

  finish(): void {
    this.draw('queueLength', this.queue)
    this.draw('slotsBusy', this.busy)
  }

  private draw(key: 'queueLength' | 'slotsBusy', steps: number[][]): void {
    if (steps.length === 0) return
    const { tracks, writer } = this.context
    const track = tracks.add(key, {})
    steps.sort(([a], [b]) => a! - b!)
    let level = 0
    steps.forEach(([atNs, step], i) => {
      level += step!
      if (steps[i + 1]?.[0] !== atNs) writer.counter(track, atNs!, level)
    })
  }
}
