import type { TokenEvent } from '../../model/events.ts'

/**
 * The lengths of the context of a llama_context's calls, which come in order: tokens before the call, of several sequences their
 * mean. Where the log has no positions, tokens are counted from its first call on, up to the first prompt after a decode call:
 * it may begin another text.
 */
export class ContextLength {
  /** A length was counted. */
  isCounted = false
  private counted = 0
  private hasDecoded = false
  private isCountable = true

  /** The length before a call; undefined where it is not known. */
  take(event: TokenEvent): number | undefined {
    const recorded = recordedLength(event)
    const counted = this.count(event)
    if (recorded !== undefined) return recorded
    if (event.tokens === 1 && counted !== undefined) this.isCounted = true
    return event.tokens === 1 ? counted : undefined
  }

  private count({ phase, tokens }: TokenEvent): number | undefined {
    if (phase === 'encode' || phase === 'compute') return undefined
    if (phase === 'decode') this.hasDecoded = true
    if (tokens < 0 || (phase !== 'decode' && this.hasDecoded)) this.isCountable = false
    const before = this.counted
    this.counted += tokens
    return this.isCountable ? before : undefined
  }
}

/** The mean position of the first tokens of the sequences of a call; undefined where not all are recorded. */
export function recordedLength({ tokens, batch }: TokenEvent): number | undefined {
  const spans = batch?.spans ?? []
  let [positions, listed] = [0, 0]
  const sequences = new Set<number>()
  for (const { sequence, position, tokens } of spans) {
    if (position < 0) return undefined
    listed += tokens
    if (sequences.has(sequence)) continue
    sequences.add(sequence)
    positions += position
  }
  return listed < Math.max(tokens, 1) ? undefined : positions / sequences.size
}
