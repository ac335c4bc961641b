import type { Timed } from '../../../input/reorder-window.ts'

/** Events that wait at most, whether or not a round ends: those of perf's buffers of a large machine. */
const WAITING_MAX = 1 << 18

/**
 * Puts events into the order of their times. perf empties the buffers of all CPUs in turn, a round, and writes a mark
 * (FINISHED_ROUND): what comes later is not earlier than the latest event of the round before
 * (tools/perf/util/session.c).
 */
export class Rounds<T extends Timed> {
  private waiting: T[] = []
  private latestNs = -Infinity
  private settledNs = -Infinity
  private passedNs = -Infinity

  /** Takes an event in; false if it is later than it may be: it is behind some that were passed on. */
  push(event: T): boolean {
    this.waiting.push(event)
    if (event.atNs > this.latestNs) this.latestNs = event.atNs
    return event.atNs >= this.passedNs
  }

  /** Do too many wait? */
  get isFull(): boolean {
    return this.waiting.length >= WAITING_MAX
  }

  /** A round ended: the events that nothing will come before. */
  finishRound(): T[] {
    this.sort()
    const passed = this.pass(this.waiting.findIndex(({ atNs }) => atNs > this.settledNs))
    this.settledNs = this.latestNs
    return passed
  }

  /** The earlier half of what waits. */
  takeHalf(): T[] {
    this.sort()
    return this.pass(this.waiting.length >>> 1)
  }

  /** All that waits. */
  finish(): T[] {
    this.sort()
    return this.pass(-1)
  }

  private sort(): void {
    this.waiting.sort((a, b) => a.atNs - b.atNs)
  }

  /** The first `count` events; all of them where it is below 0. */
  private pass(count: number): T[] {
    const passed = count < 0 ? this.waiting : this.waiting.slice(0, count)
    this.waiting = count < 0 ? [] : this.waiting.slice(count)
    const last = passed.at(-1)
    if (last) this.passedNs = last.atNs
    return passed
  }
}
