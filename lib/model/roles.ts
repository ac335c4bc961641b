import { isVerification } from './calls.ts'
import type { TokenEvent } from './events.ts'

/** Of a llama_context in speculative decoding: the model that answers, or the smaller one whose drafts that one verifies. */
export type Role = 'target' | 'draft'

/**
 * Finds out which contexts draft and which verify. llama.cpp keeps that to itself: a context that verifies tokens is a target, and the
 * one whose call came just before that, on the same thread and at one of these positions, is its draft. (Drafts of n-grams or of the
 * target itself have no context of their own.)
 */
export class Roles {
  private readonly roles = new Map<number, Role>()
  private latest: TokenEvent | undefined

  /** Calls in the order in which they were made. */
  add(event: TokenEvent): void {
    const { latest } = this
    this.latest = event
    if (!isVerification(event)) return
    const context = event.batch!.context
    const before = latest?.batch?.context ?? 0
    // At an address that was freed there may be another context now.
    if (this.of(context) === 'draft') this.roles.set(context, 'target')
    if (before === 0 || before === context || this.of(before) !== undefined || !drafted(latest!, event)) return
    this.roles.set(before, 'draft')
    this.roles.set(context, 'target')
  }

  /** Is nothing drafted, so far? */
  get areNone(): boolean {
    return this.roles.size === 0
  }

  /** Undefined where nothing is drafted, so far. */
  of(context: number): Role | undefined {
    return this.roles.get(context)
  }
}

/** Was a call made just where the next one verifies? Sequences are numbered by each context for itself. */
function drafted({ tid, batch }: TokenEvent, verification: TokenEvent): boolean {
  const { spans } = verification.batch!
  const isAmong = (position: number) =>
    spans.some((span) => position >= span.position && position < span.position + span.tokens)
  return tid === verification.tid && batch!.spans.some(({ position }) => isAmong(position))
}
