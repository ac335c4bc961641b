import type { SequenceSpan, TokenEvent } from '../../model/events.ts'
import type { DraftFigures } from '../requests/figures.ts'
import type { Change } from './changes.ts'

/** Finds how many tokens of verified drafts were accepted. */
export class Acceptance {
  private drafted = 0
  private accepted = 0

  /** Drafts whose number of accepted tokens is known; null without any. */
  get figures(): DraftFigures | null {
    const { drafted, accepted } = this
    if (drafted === 0) return null
    return { drafted_tokens: drafted, accepted_tokens: accepted, acceptance_share: accepted / drafted }
  }

  /**
   * The tokens that a verification made, by what the program did after it: rejected tokens are removed from the memory, and the next call
   * begins after the last accepted one. Where neither is recorded, all are taken for accepted.
   */
  of({ batch }: TokenEvent, changes: readonly Change[], next?: TokenEvent): { made: number; isAssumed: boolean } {
    let [made, isAssumed] = [0, false]
    for (const span of batch!.spans) {
      const end = removedFrom(span, changes) ?? continuedAt(span, next)
      made += end === undefined ? span.tokens : end - span.position
      if (span.tokens === 1) continue
      if (end === undefined) isAssumed = true
      else {
        this.drafted += span.tokens - 1
        this.accepted += end - span.position - 1
      }
    }
    return { made, isAssumed }
  }
}

/** Is a position right after one of the tokens? */
const isAfter = ({ position, tokens }: SequenceSpan, at: number) => at > position && at <= position + tokens

function removedFrom(span: SequenceSpan, changes: readonly Change[]): number | undefined {
  const isOfSpan = ({ what, sequence, from }: Change) =>
    what === 'remove' && (sequence === span.sequence || sequence < 0) && isAfter(span, from)
  return changes.find(isOfSpan)?.from
}

function continuedAt(span: SequenceSpan, next: TokenEvent | undefined): number | undefined {
  const position = next?.batch?.spans.find(({ sequence }) => sequence === span.sequence)?.position ?? -1
  return isAfter(span, position) ? position : undefined
}
