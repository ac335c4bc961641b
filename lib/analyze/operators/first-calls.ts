import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { ContextTimes } from '../calls/figures.ts'
import { mainContext } from '../calls/main-context.ts'
import { Median } from '../common/median.ts'
import type { CallParts, OffCpu, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { FirstCall } from './figures.ts'

type First = Omit<FirstCall, 'role'>

/** The first call of a phase of a llama_context, and the time per token of all others. */
interface OfPhase {
  first: Omit<First, 'typical_token_ns' | 'further_calls'> | undefined
  readonly others: Median
}

/** The calls of a llama_context, or of a scheduler. */
class ContextCalls {
  readonly phases = new DefaultMap<Phase, OfPhase>(() => ({ first: undefined, others: new Median() }))
  timeNs = 0
}

/** Contexts whose calls are compared. */
const CONTEXTS_MAX = 64

/** Those of the main context. Where the log contains no contexts, those of the scheduler with the most time, of each phase. */
export function firstCallsOf(all: readonly First[], contexts: readonly ContextTimes[]): FirstCall[] {
  const main = mainContext(contexts)
  const own = main
    ? all.filter(({ context }) => context === main.context)
    : all.filter(({ phase }, i) => all.findIndex((other) => other.phase === phase) === i)
  return own.map((first) => ({ ...first, context: first.context || null, role: main?.role ?? null }))
}

/** Compares the first call of each phase with those after it, of each llama_context: a token of another model takes another time. */
export class FirstCalls implements Statistic {
  private readonly contexts = new DefaultMap<number, ContextCalls>(() => new ContextCalls())

  constructor(private readonly defined: Defined) {}

  call({ operators, off, weight }: CallParts): void {
    const { event } = operators
    if (!event) return
    const { phase, tokens, startNs, endNs } = event
    if (tokens <= 0) return
    const context = event.batch?.context ?? 0
    if (!this.contexts.has(context) && this.contexts.size === CONTEXTS_MAX) return
    const calls = this.contexts.of(context)
    const ofPhase = calls.phases.of(phase)
    const timeNs = endNs - startNs
    // The operators of a very long call come in several parts.
    if (operators.isFurther) return
    calls.timeNs += timeNs * weight
    if (ofPhase.first) return ofPhase.others.add(timeNs / tokens)
    const { major_faults, ...slowest } = this.slowest(operators, off)
    const faults = major_faults ?? event.resources?.majorFaults ?? null
    const disk_bytes = event.resources?.bytesRead ?? null
    const what = { phase, context, call: event.call, tokens, time_ns: timeNs }
    ofPhase.first = { ...what, ...slowest, major_faults: faults, disk_bytes }
  }

  /** The layer with the most time of worker 0, barrier waits included, in comparison with the median layer; and page faults. */
  private slowest({ count, worker, last, startNs, waitEndNs, counts }: CallOperators, off: OffCpu | undefined) {
    const layers = new DefaultMap<number, { ns: number }>(() => ({ ns: 0 }))
    const faultsAt = this.defined.counterAt('major_faults')
    let faults = 0
    const blockedNs: number[] = []
    for (let i = 0; i < count; i++) {
      const by = worker[i]!
      if (off) blockedNs[by] = (blockedNs[by] ?? 0) + off.blockedNs[i]!
      if (faultsAt >= 0) faults += counts[i]?.[faultsAt] ?? 0
      if (by === 0) layers.of(this.defined.layerOf(last[i]!)).ns += waitEndNs[i]! - startNs[i]!
    }
    layers.delete(-1)
    const inOrder = [...layers].sort((a, b) => b[1].ns - a[1].ns)
    const [slowest, median] = [inOrder[0], inOrder[inOrder.length >> 1]]
    return {
      major_faults: faultsAt < 0 ? null : faults,
      blocked_ns: off ? Math.max(0, ...blockedNs.filter((ns) => ns > 0)) : null,
      slowest_layer: slowest?.[0] ?? null,
      slowest_layer_ns: slowest?.[1].ns ?? null,
      median_layer_ns: median?.[1].ns ?? null,
    }
  }

  /** Those of the context with the most time first. */
  finish() {
    const contexts = [...this.contexts.values()].sort((a, b) => b.timeNs - a.timeNs)
    const all = contexts.flatMap(({ phases }) => [...phases.values()])
    const first_calls = all.map(
      ({ first, others }): First => ({ ...first!, further_calls: others.count, typical_token_ns: others.value }),
    )
    return { first_calls }
  }
}
