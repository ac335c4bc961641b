import { MinHeap } from '../bytes/min-heap.ts'

/** Something that happened at a time. */
export interface Timed {
  readonly atNs: number
}

/**
 * Sorts records by time, where none is more than `size` records late. Equal times keep their order of arrival. Logs are
 * nearly sorted: most records come in order, and wait in a list; the others, in a heap.
 */
export class ReorderWindow<T extends Timed> {
  /** Those in order; those that were passed on are undefined. */
  private held: (T | undefined)[] = []
  private head = 0
  /** The time of the last one in order. */
  private lastNs = -Infinity
  /** Late ones, by their numbers in order of arrival. */
  private readonly late = new Map<number, T>()
  private readonly lateTimes = new MinHeap()
  private latest = 0

  constructor(private readonly size: number) {}

  private get count(): number {
    return this.held.length - this.head + this.late.size
  }

  /** The records in the window, earliest first. */
  get waiting(): readonly T[] {
    const inOrder = this.held.slice(this.head) as T[]
    return this.late.size === 0 ? inOrder : [...inOrder, ...this.late.values()].sort((a, b) => a.atNs - b.atNs)
  }

  /** Adds a record; returns the earliest one where more than `size` wait. */
  push(record: T): T | undefined {
    if (record.atNs >= this.lastNs || this.count === 0) {
      this.held.push(record)
      this.lastNs = record.atNs
    } else {
      this.lateTimes.push(record.atNs, this.latest)
      this.late.set(this.latest++, record)
    }
    return this.count > this.size ? this.shift() : undefined
  }

  /** Removes the earliest record; undefined: none is left. */
  shift(): T | undefined {
    const record = this.held[this.head]
    // One in order of the same time came before a late one.
    if (this.late.size > 0 && !(record && record.atNs <= this.lateTimes.least)) return this.shiftLate()
    if (record === undefined) return undefined
    this.held[this.head++] = undefined
    if (this.head > this.size) {
      this.held = this.held.slice(this.head) // rarely, so that a shift is cheap
      this.head = 0
    }
    return record
  }

  private shiftLate(): T {
    const number = this.lateTimes.pop()
    const record = this.late.get(number)!
    this.late.delete(number)
    return record
  }
}

/** Most events that wait for the end of a round: perf's buffers of a large machine. */
const WAITING_MAX = 1 << 18

/**
 * Sorts events by time. perf empties the buffers of all CPUs in turn, a round, and writes a mark (FINISHED_ROUND): later
 * records are not earlier than the latest event of the previous round (tools/perf/util/session.c).
 *
 *     file      │ CPU 0: 1 4 7   CPU 1: 2 3 8 │ CPU 0: 9 12   CPU 1: 10 11 15 │ CPU 0: 13 …
 *                             finishRound() ──┘              finishRound() ──┘
 *     waiting   │                1 2 3 4 7 8  │             9 10 11 12 15     │
 *     released  │ (none: 8 is the latest)     │ 1 2 3 4 7 8  (8 is settled)   │ 9 10 11 12 15
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
