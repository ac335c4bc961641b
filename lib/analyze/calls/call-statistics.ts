import { decodingIn } from '../../model/calls.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { SequenceSpan, TokenEvent } from '../../model/events.ts'
import type { FunctionEvent, SequenceEvent } from '../../model/request-events.ts'
import type { CallSample } from '../common/sampled-calls.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { CallRows } from './call-rows.ts'
import { CallTimes } from './call-times.ts'
import { ContextSlopes } from './context-slopes.ts'
import type { CallFigures, CallSeries, CallSummary, ContextFigures, ContextSlope, SequenceFigures } from './figures.ts'
import type { RoleTable } from './roles.ts'
import { Spread } from './spread.ts'
import type { TimedDecode } from './times.ts'

/** Sequences with separate figures, of all contexts. */
const SEQUENCES_MAX = 256

/** Figures that calls add to those of the {@link Summary}. */
export type CallsOfInput = Omit<CallFigures, keyof CallSummary | 'slope'>

/** The tokens of a sequence. */
class OfSequence {
  readonly spread = new Spread()
  /** Its positions in the latest call. */
  latest: SequenceSpan | undefined
}

/** The tokens of a llama_context. */
class OfContext {
  readonly spread = new Spread()
  readonly sequences = new Map<number, OfSequence>()
  readonly further = new Set<number>()
  hasTimed = false
}

/** Distributions of TPOT by context and sequence, and its growth with the context. */
export class CallStatistics implements Statistic<object, 'token' | 'function' | 'sequence'> {
  readonly kinds: readonly ('token' | 'function' | 'sequence')[]
  private readonly times = new CallTimes((scope, event, timed) => this.take(scope, event, timed))
  private readonly all = new Spread()
  private readonly contexts = new Map<number, OfContext>()
  private readonly slopes: ContextSlopes
  private sequences = 0

  /**
   * `rows`: the table of calls, if it was asked for. `sample`: the calls whose operators are passed, where these are not all; calls are then
   * passed to {@link timed}, with their times.
   */
  constructor(
    roles: RoleTable,
    private readonly rows: CallRows | undefined,
    sample: CallSample | undefined,
  ) {
    this.kinds = sample ? [] : ['token', 'function', 'sequence']
    this.slopes = new ContextSlopes(roles, (call) => !sample || sample.weightOf(call) > 0)
  }

  /** A call, in any order; a function, or a change of a memory, around calls. */
  event(event: TokenEvent | FunctionEvent | SequenceEvent): void {
    if (event.kind !== 'token') return this.times.around(event)
    this.rows?.call(event)
    this.times.add(event)
  }

  /** Adds a call that is timed already, in order: to the slope only. */
  timed(event: TokenEvent, timed: TimedDecode | undefined): void {
    this.slopes.call(event, timed)
  }

  call({ operators, off }: CallParts): void {
    if (!operators.event) return
    this.slopes.operators(operators.event, operators)
    this.rows?.operators(operators.event, operators, off)
  }

  private take(scope: 'all' | 'context', event: TokenEvent, timed: TimedDecode | undefined): void {
    if (scope === 'context') {
      this.rows?.timed(event, timed, undefined)
      return this.takeOfContext(event, timed)
    }
    if (timed) this.all.add(timed.tokens, timed.timeNs * timed.sequences, false)
    const contextTokens = this.slopes.call(event, timed)
    this.rows?.timed(event, timed, contextTokens)
  }

  private takeOfContext(event: TokenEvent, timed: TimedDecode | undefined): void {
    const context = event.batch?.context ?? 0
    const ofContext = getOrMake(this.contexts, context, () => new OfContext())
    if (!timed) return
    const spentNs = timed.timeNs * timed.sequences
    ofContext.spread.add(timed.tokens, spentNs, ofContext.hasTimed)
    ofContext.hasTimed = true
    const spans = event.batch?.spans ?? []
    const decoding = event.phase === 'mixed' ? decodingIn(spans) : spans
    // The accepted tokens of each of several sequences are not known: they have the mean of the call.
    for (const span of decoding) this.takeOfSequence(ofContext, span, timed.tokens / timed.sequences, timed.timeNs)
  }

  private takeOfSequence(context: OfContext, span: SequenceSpan, tokens: number, timeNs: number): void {
    let sequence = context.sequences.get(span.sequence)
    if (!sequence) {
      if (this.sequences === SEQUENCES_MAX) {
        if (context.further.size < SEQUENCES_MAX) context.further.add(span.sequence)
        return
      }
      sequence = new OfSequence()
      this.sequences++
      context.sequences.set(span.sequence, sequence)
    }
    const { latest } = sequence
    sequence.spread.add(tokens, timeNs, latest !== undefined && isSuccessor(latest, span))
    sequence.latest = span
  }

  lastEvent(): void {
    this.times.finish()
  }

  /** Tokens of the calls whose TPOT is known; null: none. */
  get decodedTokens(): number | null {
    return this.all.distribution?.count ?? null
  }

  finish(firstNs: number): {
    readonly calls: CallsOfInput
    readonly slopes: readonly ContextSlope[]
    readonly callSeries: CallSeries | undefined
  } {
    return { calls: this.figures(), slopes: this.slopes.finish(), callSeries: this.rows?.finish(firstNs) }
  }

  private figures(): CallsOfInput {
    const { contexts, drafts, runs } = this.times
    return {
      tpot: this.all.distribution,
      contexts: contexts.map(
        ({ context, role, calls, calls_ns, ttft_ns, prefill_tokens_per_s, decode_tokens_per_s }): ContextFigures => {
          const ofContext = this.contexts.get(context)!
          const { distribution: tpot, jitter } = ofContext.spread
          return {
            context,
            role,
            calls,
            calls_ns,
            ttft_ns,
            prefill_tokens_per_s,
            decode_tokens_per_s,
            tpot,
            jitter: tpot && jitter,
            by_sequence: [...ofContext.sequences].map(
              ([sequence, { spread }]): SequenceFigures => ({
                sequence,
                tpot: spread.distribution!,
                jitter: spread.jitter,
              }),
            ),
            further_sequences: ofContext.further.size,
          }
        },
      ),
      drafts,
      runs: runs.runs,
      further_runs: runs.further,
    }
  }
}

/** Does a span continue the text of the one before? Where positions are not recorded, it is assumed. */
function isSuccessor(before: SequenceSpan, { position }: SequenceSpan): boolean {
  if (before.position < 0 || position < 0) return true
  return position > before.position && position <= before.position + before.tokens
}
