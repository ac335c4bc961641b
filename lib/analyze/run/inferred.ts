import { Inferred } from '../../model/events.ts'
import type { Undetermined } from '../common/figures.ts'

const OF_OPERATORS: readonly (readonly [Inferred, string, string])[] = [
  [
    Inferred.End,
    'operators.operator_time_ns',
    'ends of operators were not recorded: each lasts until the next record of its thread, and contains the gap',
  ],
  [
    Inferred.NoEnd,
    'operators.operator_time_ns',
    'ends of some operators were not recorded and cannot be inferred: they count with a duration of 0',
  ],
  [
    Inferred.Wait,
    'operators.wait_ns',
    'waits are the gaps to the next operator of the thread: they may contain operators that were not recorded',
  ],
  [
    Inferred.Worker,
    'operators.workers',
    'the workers are inferred from the thread that runs the graph, and the threads active at the same time',
  ],
  [Inferred.OpName, 'operators.op', 'names of ops are inferred: the log contains numbers'],
  [Inferred.Counts, 'operators.counters', 'the processor counted for a part of the time only: counts are extrapolated'],
]

const OF_CALLS: readonly (readonly [Inferred, string, string])[] = [
  [Inferred.Call, 'calls', 'borders of calls are inferred from repeating graphs and phases'],
  [Inferred.Phase, 'calls.by_phase', 'phases are inferred from the number of tokens'],
  [
    Inferred.TokenCount,
    'calls.by_phase.tokens',
    'numbers of tokens are inferred from the size of the embedding lookup',
  ],
]

/** Figures that were not recorded but inferred, with how; of the {@link Inferred} bits of operators and of calls. */
export function inferredFigures(ofOperators: number, ofCalls: number): Undetermined[] {
  const reasonsOf = (bits: number, table: typeof OF_CALLS) =>
    table.filter(([bit]) => (bits & bit) !== 0).map(([, what, why]) => ({ what, why: `inferred: ${why}` }))
  return [...reasonsOf(ofOperators, OF_OPERATORS), ...reasonsOf(ofCalls, OF_CALLS)]
}
