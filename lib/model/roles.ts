import { isVerification } from './calls.ts'
import type { TokenEvent } from './events.ts'

/** Role of a llama_context in speculative decoding: the draft model proposes tokens, the target model verifies them. */
export type ContextRole = 'target' | 'draft'

/**
 * Detects which contexts draft and which verify, as llama.cpp does not report it: a context that verifies tokens is a target, and the
 * context whose call came just before, on the same thread and at one of these positions, is its draft. (Drafts of n-grams or of
 * the target itself have no separate context.)
 */
export class Roles {
  private readonly roles = new Map<number, ContextRole>()
  private latest: TokenEvent | undefined

  /** Adds a call; calls must come in the order in which they were made. */
  add(event: TokenEvent): void {
    const { latest } = this
    this.latest = event
    if (!isVerification(event)) return
    const context = event.batch!.context
    const before = latest?.batch?.context ?? 0
    // The address of a freed context may be in use again.
    if (this.of(context) === 'draft') this.roles.set(context, 'target')
    if (before === 0 || before === context || this.of(before) !== undefined || !drafted(latest!, event)) return
    this.roles.set(before, 'draft')
    this.roles.set(context, 'target')
  }

  /** No drafts so far. */
  get areNone(): boolean {
    return this.roles.size === 0
  }

  /** Role of a context; undefined without drafts so far. */
  of(context: number): ContextRole | undefined {
    return this.roles.get(context)
  }
}

/** Is a call at a position that the next one verifies? (Each context numbers sequences separately.) */
function drafted({ tid, batch }: TokenEvent, verification: TokenEvent): boolean {
  const { spans } = verification.batch!
  const isAmong = (position: number) =>
    spans.some((span) => position >= span.position && position < span.position + span.tokens)
  return tid === verification.tid && batch!.spans.some(({ position }) => isAmong(position))
}
