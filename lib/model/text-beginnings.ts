import { decodingIn, isFailed, isVerification } from './calls.ts'
import type { Change } from './changes-between-calls.ts'
import type { SequenceSpan, TokenEvent } from './events.ts'

/** Does a change remove tokens of the sequence? */
export const isRemoval = ({ what, sequence }: Change, span: SequenceSpan) =>
  what === 'remove' && (sequence === span.sequence || sequence < 0)

/**
 * Finds calls that decode the first token of each of their texts: they waited for no call, as a server may have had no request before them. A benchmark's
 * first token is at position 0; a server processes the last token of a prompt that its cache contains whole.
 */
export class TextBeginnings {
  /** The latest call that succeeded, by context. */
  private readonly calls = new Map<number, TokenEvent>()

  /** Does a call begin texts? Calls must come in order, without warm-ups; `changes`: those of its context since the call before. */
  begin(event: TokenEvent, changes: readonly Change[], isDraft: boolean): boolean {
    const context = event.batch?.context ?? 0
    if (changes.some(({ what }) => what === 'clear')) this.calls.delete(context)
    if (isFailed(event)) return false
    const before = this.calls.get(context)
    this.calls.set(context, event)
    return !isDraft && (isFirst(event, before) || areCutBack(event, before, changes))
  }

  /** Calls are missing here. */
  interrupt(): void {
    this.calls.clear()
  }
}

/** Is it the first token of a text that has no prompt? */
function isFirst({ phase, batch }: TokenEvent, before: TokenEvent | undefined): boolean {
  return before === undefined && phase === 'decode' && batch?.spans[0]?.position === 0
}

/**
 * Was each sequence that a call decodes cut before it, and further back than where the call before left it? Rejected drafts are cut after the first
 * token of the call that verified them.
 */
function areCutBack(event: TokenEvent, before: TokenEvent | undefined, changes: readonly Change[]): boolean {
  const spans = event.batch?.spans ?? []
  const decoding = event.phase === 'decode' ? spans : event.phase === 'mixed' ? decodingIn(spans) : []
  const kept = before && isVerification(before) ? () => 1 : ({ tokens }: SequenceSpan) => tokens
  const isCutBack = (span: SequenceSpan) => {
    const last = before?.batch?.spans.find(({ sequence }) => sequence === span.sequence)
    const isCut = changes.some((change) => isRemoval(change, span) && change.from <= span.position)
    return isCut && (last === undefined || span.position < last.position + kept(last))
  }
  return decoding.length > 0 && decoding.every(isCutBack)
}
