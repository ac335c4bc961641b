import { isVerification } from './calls.ts'
import type { TokenEvent } from './events.ts'

/** Of a llama_context in speculative decoding: the model that answers, or the smaller one whose drafts that one verifies. */
export type Role = 'target' | 'draft'

/**
 * Finds out which contexts draft and which verify. llama.cpp keeps that to itself: a context that verifies tokens is a target, and the
 * one whose call came just before that is its draft. (Drafts of n-grams or of the target itself have no context of their own.)
 */
export class Roles {
  private readonly roles = new Map<number, Role>()
  private latest = 0

  /** Calls in the order in which they were made. */
  add(event: TokenEvent): void {
    const context = event.batch?.context ?? 0
    if (this.latest !== context && this.latest !== 0 && isVerification(event) && this.of(this.latest) === undefined) {
      this.roles.set(this.latest, 'draft')
      this.roles.set(context, 'target')
    }
    this.latest = context
  }

  /** Undefined where nothing is drafted, so far. */
  of(context: number): Role | undefined {
    return this.roles.get(context)
  }
}
