import type { TokenEvent } from './events.ts'

/** Calls that are held back at most, for one that does not come. */
const HELD_MAX = 1024

/**
 * Puts calls in the order in which they were made: a log has those of one thread in order, those of several as their
 * blocks came to be written.
 */
export class CallOrder {
  private readonly held = new Map<number, TokenEvent>()
  private next = 0

  constructor(private readonly tell: (event: TokenEvent) => void) {}

  add(event: TokenEvent): void {
    // Calls without a number (warm-ups), and any that were given up: as they come.
    if (event.call < this.next) return this.tell(event)
    if (event.call === this.next && this.held.size === 0) {
      this.next++
      return this.tell(event)
    }
    this.held.set(event.call, event)
    if (this.held.size > HELD_MAX) this.next = Math.min(...this.held.keys())
    this.tellInOrder()
  }

  /** Tells of the calls that are still held back. */
  finish(): void {
    while (this.held.size > 0) {
      this.next = Math.min(...this.held.keys())
      this.tellInOrder()
    }
  }

  private tellInOrder(): void {
    for (let event = this.held.get(this.next); event; event = this.held.get(this.next)) {
      this.held.delete(this.next++)
      this.tell(event)
    }
  }
}
