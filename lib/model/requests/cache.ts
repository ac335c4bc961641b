import { IdMap } from '../id-map.ts'
import type { SequenceEvent } from '../request-events.ts'
import type { OpenRequest } from './open-request.ts'

/** Sequences that a context of llama.cpp has at most (LLAMA_MAX_SEQ). */
export const SEQUENCES_MAX = 256

/** What a context's memory has of one sequence, and the request that uses it. */
export interface CachedSequence {
  /** Position after the last token; -1 = not known. */
  next: number
  request: OpenRequest | undefined
  /** What was removed since the last call of the sequence. */
  cut: { position: number; tokens: number } | undefined
}

/** The sequences in the memory of one llama_context, as calls and changes of the memory leave them. */
export class Cache {
  /** Does a draft model use it? */
  isOfDrafts = false
  private readonly sequences = new IdMap<CachedSequence>()

  /** A sequence; of more than a context can have, the first is dropped. */
  of(sequence: number): CachedSequence {
    let cachedSequence = this.sequences.get(sequence)
    if (!cachedSequence) {
      cachedSequence = { next: 0, request: undefined, cut: undefined }
      this.sequences.set(sequence, cachedSequence)
      if (this.sequences.size > SEQUENCES_MAX) this.sequences.delete(this.sequences.first!)
    }
    return cachedSequence
  }

  /** All sequences that were used. */
  get all(): Iterable<[number, CachedSequence]> {
    return this.sequences
  }

  /** The sequences that a change is about: one, or all of them. */
  named(sequence: number): readonly CachedSequence[] {
    return sequence < 0 ? Array.from(this.sequences, ([, cached]) => cached) : [this.of(sequence)]
  }

  /** All sequences but one. */
  others(sequence: number): CachedSequence[] {
    return [...this.sequences].flatMap(([number, cachedSequence]) => (number === sequence ? [] : [cachedSequence]))
  }

  /** Follows a change that was done. */
  change({ what, sequence, to, from, end, delta }: SequenceEvent): void {
    if (what === 'copy') this.of(to).next = this.of(sequence).next
    else if (what === 'keep') for (const other of this.others(sequence)) other.next = 0
    else if (what === 'clear') for (const sequence of this.named(-1)) sequence.next = 0
    else
      for (const cachedSequence of this.named(sequence))
        if (cachedSequence.next >= 0) changeOne(cachedSequence, what, from, end, delta)
  }
}

function changeOne(sequence: CachedSequence, what: 'remove' | 'shift', from: number, end: number, delta: number): void {
  const first = Math.max(from, 0)
  if (first >= sequence.next) return
  if (what === 'shift') sequence.next = Math.max(0, sequence.next + delta)
  else if (end < 0 || end >= sequence.next) {
    sequence.cut = { position: first, tokens: sequence.next - first + (sequence.cut?.tokens ?? 0) }
    sequence.next = first
  }
}
