import { isFailed } from '../../model/calls.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { SequenceEvent, TokenEvent } from '../../model/events.ts'
import { Cache } from '../../model/requests/cache.ts'
import type { TrackContext } from '../context.ts'
import { CounterLine } from '../counter-line.ts'

/** Sequences of a context with a counter. */
const SEQUENCES_MAX = 64

/** Counters of the tokens of each sequence in the KV cache, where the log records what is removed from it. */
export class CacheCounters {
  private count = 0
  private readonly contexts = new DefaultMap<number, { readonly nth: number; readonly cache: Cache }>(() => ({
    nth: this.count++,
    cache: new Cache(),
  }))
  private readonly rows = new Map<string, CounterLine>()
  private isRecorded = false

  constructor(private readonly context: TrackContext) {}

  change(event: SequenceEvent): void {
    this.isRecorded = true
    if (!event.isDone || event.sequence >= SEQUENCES_MAX) return
    const { nth, cache } = this.contexts.of(event.context)
    cache.change(event)
    for (const [sequence, { next }] of cache.all) this.sample(nth, sequence, event.atNs, next)
  }

  call(event: TokenEvent): void {
    const { batch, endNs } = event
    if (!this.isRecorded || !batch || isFailed(event) || event.phase === 'warm-up') return
    const { nth, cache } = this.contexts.of(batch.context)
    for (const { sequence, position, tokens } of batch.spans) {
      if (sequence >= SEQUENCES_MAX) continue
      const cachedSequence = cache.of(sequence)
      cachedSequence.next = Math.max(position < 0 ? cachedSequence.next : position, 0) + tokens
      this.sample(nth, sequence, endNs, cachedSequence.next)
    }
  }

  private sample(context: number, sequence: number, atNs: number, tokens: number): void {
    const { tracks, writer } = this.context
    const key = `${context} ${sequence}`
    if (tokens === 0 && !this.rows.has(key)) return
    const add = () => new CounterLine(writer, tracks.add('cachedTokens', { context, sequence }), 'full')
    getOrMake(this.rows, key, add).sample(atNs, tokens)
  }
}
