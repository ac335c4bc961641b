import type { Timed } from '../../../input/reorder-window.ts'

/** Most events that wait for the end of a round: perf's buffers of a large machine. */
const WAITING_MAX = 1 << 18

/**
 * Sorts events by time. perf empties the buffers of all CPUs in turn, a round, and writes a mark (FINISHED_ROUND): later
 * records are not earlier than the latest event of the previous round (tools/perf/util/session.c).
 */
export class Rounds<T extends Timed> {
  private waiting: T[] = []
  private latestNs = -Infinity
  private settledNs = -Infinity
  private passedNs = -Infinity

  /** Adds an event; false if it is too late: later ones are released already. */
  push(event: T): boolean {
    this.waiting.push(event)
    if (event.atNs > this.latestNs) this.latestNs = event.atNs
    return event.atNs >= this.passedNs
  }

  /** Do too many events wait? */
  get isFull(): boolean {
    return this.waiting.length >= WAITING_MAX
  }

  /** A round ended: releases the events that no later record can precede. */
  finishRound(): T[] {
    this.sort()
    const passed = this.pass(this.waiting.findIndex(({ atNs }) => atNs > this.settledNs))
    this.settledNs = this.latestNs
    return passed
  }

  /** Releases the earlier half of the waiting events. */
  takeHalf(): T[] {
    this.sort()
    return this.pass(this.waiting.length >>> 1)
  }

  /** Releases all waiting events. */
  finish(): T[] {
    this.sort()
    return this.pass(-1)
  }

  private sort(): void {
    this.waiting.sort((a, b) => a.atNs - b.atNs)
  }

  /** Removes the first `count` events; all where it is below 0. */
  private pass(count: number): T[] {
    const passed = count < 0 ? this.waiting : this.waiting.slice(0, count)
    this.waiting = count < 0 ? [] : this.waiting.slice(count)
    const last = passed.at(-1)
    if (last) this.passedNs = last.atNs
    return passed
  }
}
