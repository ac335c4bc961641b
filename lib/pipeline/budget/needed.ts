import type { Log } from '../inputs.ts'
import type { ConvertOptions } from '../options.ts'
import { type Rereadable, rereadable } from './sizes.ts'

/**
 * The largest traces that are written by default: the viewer opens them in some 10 s. Perfetto: trace_processor's WASM takes 0.1 s of a
 * CPU for a MiB (measured with operators, their arguments and counters: scripts/bench/executions.mjs). JSON takes 0.02 s for a MiB;
 * chrome://tracing reads it as one text, which in V8 has at most 2^29 characters.
 */
const BUDGET_BYTES = { perfetto: 96 * 2 ** 20, json: 480 * 2 ** 20 } as const

/** Bytes of the trace for a byte of the log, by detail: twice as many as the most that was measured, of a log with the shortest records. */
const EXPANSIONS = { ggtrace: { names: 9, shapes: 15, full: 30 }, others: { names: 1, shapes: 2, full: 3 } } as const
/** The same for JSON, compared with Perfetto. */
const JSON_EXPANSION = 4
/** The same for recordings of the scheduler: the most that was measured. */
const SCHEDULER_EXPANSION = { perfetto: 0.16, json: 1.6 } as const
/**
 * By default, logs whose trace may be this much larger than the budget, though none was that was measured, are not read twice: that costs a
 * third more time.
 */
const UNREAD_MAX = 1.5

/** A log and what is known about its size. */
export interface Sized {
  readonly log: Log
  readonly again: Rereadable | undefined
  /** Of its trace, at most; Infinity: not known. */
  readonly bytes: number
}

/** A budget that a trace may exceed. */
export interface Needed {
  /** The size that it should not exceed. */
  readonly bytes: number
  readonly sized: readonly Sized[]
}

/** The budget of a trace; undefined where its logs are so small that all of them fits. */
export async function neededBudget(logs: readonly Log[], options: ConvertOptions): Promise<Needed | undefined> {
  if (options.all || logs.every(({ first }) => first.capabilities?.operators === false)) return undefined
  const bytes = options.budget ?? BUDGET_BYTES[options.to ?? 'perfetto']
  const sized = await Promise.all(
    logs.map(async (log): Promise<Sized> => {
      const again = await rereadable(log.input.given)
      return { log, again, bytes: (again?.bytes ?? Infinity) * expansionOf(log, options) }
    }),
  )
  const most = bytes * (options.budget === undefined ? UNREAD_MAX : 1)
  return sum(sized.map((one) => one.bytes)) <= most ? undefined : { bytes, sized }
}

/** The sum of numbers. */
export const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)

function expansionOf({ isOfScheduler, first }: Log, { to = 'perfetto', detail = 'shapes' }: ConvertOptions): number {
  if (isOfScheduler) return SCHEDULER_EXPANSION[to]
  const perfetto = EXPANSIONS[first.format === 'ggtrace' ? 'ggtrace' : 'others'][detail]
  return to === 'json' ? JSON_EXPANSION * perfetto : perfetto
}
