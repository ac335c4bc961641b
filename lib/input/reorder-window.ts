/** Something that happened at a time. */
export interface Timed {
  readonly atNs: number
}

/**
 * Sorts records by time, where none is more than `size` records late. Equal times keep their order of arrival. Logs are
 * nearly sorted, so most records are appended.
 */
export class ReorderWindow<T extends Timed> {
  private held: T[] = []
  private head = 0

  constructor(private readonly size: number) {}

  /** The records in the window, earliest first. */
  get waiting(): readonly T[] {
    return this.held.slice(this.head)
  }

  /** Adds a record; returns the earliest one where more than `size` wait. */
  push(record: T): T | undefined {
    const held = this.held
    const last = held[held.length - 1]
    if (!last || last.atNs <= record.atNs || held.length === this.head) held.push(record)
    else held.splice(this.slotAfter(record.atNs), 0, record)
    return held.length - this.head > this.size ? this.shift() : undefined
  }

  /** Index for a record of this time: after all that are not later. */
  private slotAfter(atNs: number): number {
    let low = this.head
    let high = this.held.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.held[middle]!.atNs <= atNs) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Removes the earliest record; undefined: none is left. */
  shift(): T | undefined {
    const record = this.held[this.head]
    if (record === undefined) return undefined
    this.head++
    if (this.head > this.size) {
      this.held = this.held.slice(this.head) // rarely, so that a shift is cheap
      this.head = 0
    }
    return record
  }
}
