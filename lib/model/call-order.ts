import type { TokenEvent } from './events.ts'

/** Maximum number of calls that wait for a missing one. */
const HELD_MAX = 1024

/**
 * Sorts calls by their number: a log contains the calls of one thread in order, but those of several threads in the order
 * in which their blocks were written.
 */
export class CallOrder {
  private readonly held = new Map<number, TokenEvent>()
  private next = 0

  constructor(private readonly onCall: (event: TokenEvent) => void) {}

  add(event: TokenEvent): void {
    // Calls without a number (warm-ups) and late calls are passed on at once.
    if (event.call < this.next) return this.onCall(event)
    if (event.call === this.next && this.held.size === 0) {
      this.next++
      return this.onCall(event)
    }
    this.held.set(event.call, event)
    if (this.held.size > HELD_MAX) this.next = Math.min(...this.held.keys())
    this.passInOrder()
  }

  /** Passes on the calls that still wait. */
  finish(): void {
    while (this.held.size > 0) {
      this.next = Math.min(...this.held.keys())
      this.passInOrder()
    }
  }

  private passInOrder(): void {
    for (let event = this.held.get(this.next); event; event = this.held.get(this.next)) {
      this.held.delete(this.next++)
      this.onCall(event)
    }
  }
}
