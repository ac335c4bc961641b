import type { Names } from '../../model/names.ts'
import type { Input, Log, ReadingOptions } from '../inputs.ts'
import type { ConvertOptions } from '../options.ts'
import type { RunInputs } from '../run-inputs.ts'
import { CallPlan } from './plan.ts'
import { eventsAgain, type Rereadable, rereadable } from './sizes.ts'
import { StreamThinning } from './stream.ts'
import { type Survey, SurveyPass } from './survey.ts'
import { Thinner } from './thinner.ts'
import { type AboutBudget, Thinning } from './thinning.ts'

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
interface Sized {
  readonly log: Log
  readonly again: Rereadable | undefined
}

/** The size that a trace should not exceed, and which calls of its logs are therefore in it in full. */
export class Budget {
  private readonly about: AboutBudget

  private constructor(
    private readonly options: ConvertOptions,
    private readonly names: Names,
    private readonly bytes: number,
    private readonly schedulerBytes: number,
    private readonly surveys: ReadonlyMap<Log, Survey>,
    /** Estimated size of the traces of logs that can be read twice. */
    private readonly allBytes: number,
    /** The logs that can be read twice. */
    private readonly readable: ReadonlySet<Log>,
    isAllKnown: boolean,
  ) {
    const all = isAllKnown ? allBytes + schedulerBytes : null
    this.about = { budget_bytes: bytes, all_bytes: all, scheduler_bytes: schedulerBytes }
  }

  /**
   * Reads logs whose trace may exceed the budget a first time, if they can be read again; undefined where all of them is in the trace.
   * Throws as the reading of the logs does.
   */
  static async of(
    run: RunInputs,
    inputs: readonly Input[],
    names: Names,
    options: ConvertOptions & ReadingOptions,
  ): Promise<Budget | undefined> {
    const { logs } = run
    if (options.all || logs.every(({ first }) => first.capabilities?.operators === false)) return undefined
    const bytes = options.budget ?? BUDGET_BYTES[options.to ?? 'perfetto']
    const sized = await Promise.all(
      logs.map(async (log): Promise<Sized> => ({ log, again: await rereadable(log.input.given) })),
    )
    const expected = sized.map(({ log, again }) => (again?.bytes ?? Infinity) * expansionOf(log, options))
    const sum = (from: readonly number[]) => from.reduce((a, b) => a + b, 0)
    if (sum(expected) <= bytes * (options.budget === undefined ? UNREAD_MAX : 1)) return undefined
    const known = expected.filter(Number.isFinite)
    const schedulerBytes = sum(expected.filter((bytes, i) => logs[i]!.isOfScheduler && Number.isFinite(bytes)))
    // Next to a stream, logs that fit anyway are not read twice.
    const isSmall = known.length < logs.length && sum(known) <= bytes
    const twice = isSmall ? [] : sized.filter(({ log }) => !log.isOfScheduler)
    const surveys = await surveyed(twice, run, inputs, names, options)
    const allBytes = isSmall ? sum(known) - schedulerBytes : sum([...surveys.values()].map((survey) => survey.allBytes))
    const isAllKnown = sized.every(({ log, again }) => log.isOfScheduler || again)
    if (isAllKnown && allBytes + schedulerBytes <= bytes) return undefined
    const readable = new Set(sized.filter(({ again }) => again).map(({ log }) => log))
    return new Budget(options, names, bytes, schedulerBytes, surveys, allBytes, readable, isAllKnown)
  }

  /** What replaces details of a log; undefined for a log of which nothing can be replaced. `written`: bytes of its trace so far. */
  thinning(log: Log, written: () => number): Thinning | undefined {
    if (log.isOfScheduler) return undefined
    const { bytes, schedulerBytes, options, names } = this
    const free = Math.max(bytes - schedulerBytes, 0)
    const survey = this.surveys.get(log)
    if (!survey && this.readable.has(log)) return undefined
    if (!survey) {
      // Nothing is known about what is left: by default, only what exceeds the budget is summed up, and gets a quarter more.
      const share = Math.max(free - this.allBytes, free / 2)
      const [fromBytes, toBytes] = options.budget === undefined ? [share, 1.25 * share] : [share / 2, share]
      return new StreamThinning(names, {
        ...options,
        fromBytes,
        toBytes,
        written,
        about: this.about,
        isPlanned: options.budget !== undefined,
      })
    }
    if (this.allBytes <= free || survey.operators === survey.operatorsOutsideCalls) return undefined
    const plan = new CallPlan(survey, free * (survey.allBytes / this.allBytes), options, written)
    return new Thinning(new Thinner(names, plan, options.opName), this.about, true)
  }
}

function expansionOf({ isOfScheduler, first }: Log, { to = 'perfetto', detail = 'shapes' }: ConvertOptions): number {
  if (isOfScheduler) return SCHEDULER_EXPANSION[to]
  const perfetto = EXPANSIONS[first.format === 'ggtrace' ? 'ggtrace' : 'others'][detail]
  return to === 'json' ? JSON_EXPANSION * perfetto : perfetto
}

async function surveyed(
  logs: readonly Sized[],
  { companions }: RunInputs,
  inputs: readonly Input[],
  names: Names,
  options: ConvertOptions & ReadingOptions,
): Promise<Map<Log, Survey>> {
  const surveys = new Map<Log, Survey>()
  const twice = logs.filter(({ again }) => again)
  const indexes = twice.map(({ log }) => inputs.indexOf(log.input.given))
  if (indexes.length > 0) options.onFirstReading?.(indexes)
  if (indexes.length > 0) options.progress?.beginFirst(twice.map(({ log }) => log.input.given))
  for (const { log } of twice) {
    const survey = new SurveyPass(names, options)
    const reading = { ...options, everything: options.detail === 'full' }
    const batches = await eventsAgain(log.input.given, names, reading, companions.definitions)
    for await (const batch of batches!) survey.take(batch)
    surveys.set(log, survey.finish())
  }
  if (indexes.length > 0) options.onFirstReading?.(undefined)
  options.progress?.endFirst()
  return surveys
}
