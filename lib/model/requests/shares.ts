import type { SequenceSpan } from '../call-events.ts'
import type { Share } from './open-request.ts'

/** The tokens of each sequence in a batch. */
export function sharesOf(spans: readonly SequenceSpan[], all: number, isDrafted: boolean): Map<number, Share> {
  const shares = new Map<number, { -readonly [K in keyof Share]: Share[K] }>()
  for (const { sequence, position, tokens } of spans) {
    const share = shares.get(sequence)
    if (share) share.tokens += tokens
    else shares.set(sequence, { position, tokens, others: 0, othersTokens: 0, isDrafted })
  }
  for (const share of shares.values()) {
    share.others = shares.size - 1
    share.othersTokens = Math.max(all - share.tokens, 0)
  }
  return shares
}
