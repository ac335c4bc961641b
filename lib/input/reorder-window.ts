/** Something that happened at a time. */
export interface Timed {
  readonly atNs: number
}

/**
 * Puts records in the order of their times, as long as none is more than `size` records late. Equal times keep their
 * order of arrival. Logs are nearly sorted, so a record mostly goes to the end.
 */
export class ReorderWindow<T extends Timed> {
  private held: T[] = []
  private head = 0

  constructor(private readonly size: number) {}

  /** The records in the window, earliest first. */
  get waiting(): readonly T[] {
    return this.held.slice(this.head)
  }

  /** Takes a record in; returns the earliest one once more than `size` wait. */
  push(record: T): T | undefined {
    const held = this.held
    let slot = held.length
    while (slot > this.head && held[slot - 1]!.atNs > record.atNs) slot--
    if (slot === held.length) held.push(record)
    else held.splice(slot, 0, record)
    return held.length - this.head > this.size ? this.shift() : undefined
  }

  /** The earliest record, or undefined when none is left. */
  shift(): T | undefined {
    const record = this.held[this.head]
    if (record === undefined) return undefined
    this.head++
    if (this.head > this.size) {
      this.held = this.held.slice(this.head) // rarely, so that a shift costs next to nothing
      this.head = 0
    }
    return record
  }
}
