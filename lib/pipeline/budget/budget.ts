import type { Names } from '../../model/names.ts'
import { allAreas } from '../../timeline/areas.ts'
import { writerOf } from '../../write/index.ts'
import type { Input, Log, Reading } from '../inputs.ts'
import type { ConvertOptions } from '../options.ts'
import type { RunInputs } from '../run-inputs.ts'
import { type Needed, type Sized, sum } from './needed.ts'
import { CallPlan } from './plan.ts'
import { eventsAgain } from './sizes.ts'
import { StreamThinning } from './stream.ts'
import { type Survey, SurveyPass } from './survey.ts'
import { Thinner } from './thinner.ts'
import { type AboutBudget, Thinning } from './thinning.ts'

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
    options: ConvertOptions & Reading,
    { bytes, sized }: Needed,
  ): Promise<Budget | undefined> {
    const { logs } = run
    const expected = sized.map((one) => one.bytes)
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
    if (this.allBytes <= free || survey.operators + survey.works === survey.operatorsOutsideCalls) return undefined
    const plan = new CallPlan(survey, free * (survey.allBytes / this.allBytes), options, written)
    return new Thinning(new Thinner(names, plan, options.opName), this.about, true)
  }
}

async function surveyed(
  logs: readonly Sized[],
  { companions }: RunInputs,
  inputs: readonly Input[],
  names: Names,
  options: ConvertOptions & Reading,
): Promise<Map<Log, Survey>> {
  const surveys = new Map<Log, Survey>()
  const twice = logs.filter(({ again }) => again)
  const indexes = twice.map(({ log }) => inputs.indexOf(log.input.given))
  if (indexes.length > 0) options.onFirstReading?.(indexes)
  if (indexes.length > 0) options.progress?.beginFirst(twice.map(({ log }) => log.input.given))
  const drawers = { Trace: await writerOf(options.to), areas: await allAreas() }
  for (const { log } of twice) {
    const survey = new SurveyPass(names, options, drawers)
    const reading = { ...options, everything: options.detail === 'full' }
    const batches = await eventsAgain(log.input.given, names, reading, companions.definitions)
    for await (const batch of batches!) survey.take(batch)
    surveys.set(log, survey.finish())
  }
  if (indexes.length > 0) options.onFirstReading?.(undefined)
  options.progress?.endFirst()
  return surveys
}
