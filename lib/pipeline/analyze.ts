import { accessParts } from '../analyze/accesses/accesses.ts'
import type { Analysis, SeriesName, Undetermined } from '../analyze/analysis.ts'
import { AnalysisPass } from '../analyze/analysis-pass.ts'
import { type AnalysedLog, assemble, LogPasses, type UnknownOf } from '../analyze/assemble.ts'
import { CACHE_SIZES_MAX, type ExpertCacheSize } from '../analyze/experts/caches.ts'
import type { AccessJoin } from '../analyze/graph/accesses/join.ts'
import { HostOperatorPass } from '../analyze/host-operators/host-operators.ts'
import { NO_FIGURES } from '../analyze/input-figures.ts'
import { kernelRooflines, ProfilePass } from '../analyze/kernels/profile-pass.ts'
import type { ModelOptions } from '../analyze/model/assemble-model.ts'
import { checkMachine } from '../analyze/model/assemble-model.ts'
import type { PeakFigures } from '../analyze/model/figures.ts'
import { checkCacheTypes } from '../analyze/model/static.ts'
import { PowerPass } from '../analyze/power/power-pass.ts'
import { isOfServer, refuseSeveral } from '../analyze/run/main-log.ts'
import { SummaryPass } from '../analyze/summary/summary.ts'
import { ThreadHistory } from '../analyze/threads/thread-history.ts'
import { unknownScheduling } from '../analyze/threads/undetermined.ts'
import { checkNames, UsageError } from '../errors.ts'
import { ANALYZE_OPTIONS } from '../generated/option-names.ts'
import { Definitions } from '../model/definitions.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import type { ModelShape } from '../model/model-shape.ts'
import { Names } from '../model/names.ts'
import { withKnown } from '../read/index.ts'
import { type Accesses, joinOf, readAccesses } from './accesses.ts'
import type { Placed, Placing } from './clocks/placing.ts'
import type { Input, Log } from './inputs.ts'
import type { PlacedLog } from './interleaved.ts'
import { splitModels } from './models.ts'
import { ProgressCount } from './progress.ts'
import { type LogPass, RunInputs, type RunOptions } from './run-inputs.ts'

/** What is analysed, and how inputs are read. */
export interface AnalyzeOptions extends RunOptions {
  /** Figures over time that are added as {@link Analysis.series}; by default none. `calls`: a table of calls. */
  readonly series?: readonly SeriesName[] | undefined
  /** Number of the call that the series `graph` and `memory` show; by default a decode call. */
  readonly call?: number | undefined
  /** What the machine can do: rooflines are compared with it. */
  readonly peaks?: PeakFigures | undefined
  /** For logs without operators: floating-point operations of a token. */
  readonly flopsPerToken?: number | undefined
  /** Sizes of simulated caches of experts, at most 8; by default some shares of all experts. */
  readonly expertCaches?: readonly ExpertCacheSize[] | undefined
  /** Types of the KV cache, such as `q8_0`; by default those that were recorded, or f16. */
  readonly cacheTypes?: { readonly k: string; readonly v: string } | undefined
}

/**
 * Analyses one log, or several of one run: bytes → reader → events → passes → Analysis. Memory grows with the number of distinct
 * tensors, not with the length of the logs. One input may be the model: its GGUF, or its `config.json` of Hugging Face; without a log
 * only the model is analysed. Throws as {@link convert} and {@link modelOf} do.
 */
export async function analyze(inputs: Input | readonly Input[], options: AnalyzeOptions = {}): Promise<Analysis> {
  checkNames('analyze', options, ANALYZE_OPTIONS)
  return await analysed(inputs, options, false)
}

/**
 * Analyses as {@link analyze}, but only what `whatIf` needs: facts of the run, figures of calls, the memory of weights, and series. All else is empty, as of a log
 * that does not contain it.
 */
export async function analyzeSteps(inputs: Input | readonly Input[], options: AnalyzeOptions = {}): Promise<Analysis> {
  return await analysed(inputs, options, true)
}

async function analysed(
  inputs: Input | readonly Input[],
  options: AnalyzeOptions,
  onlySteps: boolean,
): Promise<Analysis> {
  const all = [inputs].flat() as readonly Input[]
  if (all.length === 0) throw new UsageError('no input: there is nothing to analyse')
  checkCacheTypes(options)
  checkMachine(options)
  if (options.expertCaches && options.expertCaches.length > CACHE_SIZES_MAX)
    throw new UsageError(`${options.expertCaches.length} sizes of caches; expected at most ${CACHE_SIZES_MAX}`)
  const read = withKnown(options)
  const names = new Names()
  const { logs: inLogs, models } = await splitModels(all)
  if (models.length > 1) throw new UsageError(`${models.length} inputs are models; expected at most one`)
  const shape = models[0]
  if (inLogs.length === 0) return onlyModel(assemble([emptyLog(names)], () => [], { ...options, shape }))
  const progress = await ProgressCount.of(inLogs, options.onProgress)
  const run = await RunInputs.open(inLogs, names, { ...read, progress })
  try {
    if (run.isWithoutLogs) return await onlyProfiles(run, names, { ...options, shape })
    const { logs, companions } = run
    const { profiles } = companions.definitions
    const placing = run.placing(options)
    const { series, call, expertCaches } = options
    const { ahead, later } = await placeAll(placing, logs)
    const accesses = await readAccesses(run, names, read)
    const threads = new ThreadHistory(names, {
      pids: logs.flatMap(({ first, isOfScheduler }) => (isOfScheduler ? [] : pidOf(first))),
      hasSwitches: ahead.some(({ log }) => log.hasSwitches),
    })
    const [power, kernels] = [new PowerPass(names), new ProfilePass(names, profiles)]
    const hostOperators = new HostOperatorPass(names)
    const shared = {
      ...{ names, threads, power, accesses, kernels, hostOperators },
      ...{ series, call, expertCaches, onlySteps, model: shape },
    }
    const analysed = ahead.map(({ log, placed }) => new Analysed(log, placed, shared))
    const open = new Set(analysed.filter(({ log }) => !log.isOfScheduler))
    for await (const pass of run.together(analysed))
      if (open.has(pass)) threads.trim(Math.min(...[...open].map(({ neededFromNs }) => neededFromNs)))
    for (const log of later) {
      const unused = new ThreadHistory(names, { pids: [], hasSwitches: true }, 0)
      const pass = new Analysed(log, await placing.place(log), { ...shared, threads: unused })
      for await (const _ of run.together([pass]));
      analysed.push(pass)
    }
    analysed.sort((a, b) => logs.indexOf(a.log) - logs.indexOf(b.log))
    const unplaced = later.map(({ name }): Undetermined => ({ what: 'scheduling', why: `${name}: ${TOO_LATE}` }))
    const logsOf = analysed.map((pass) => pass.finish())
    refuseSeveral(logsOf.filter((log) => !isOfServer(log)))
    const unknown: UnknownOf = (summary, scheduling) => [
      ...unknownScheduling(summary, scheduling, threads),
      ...unplaced,
    ]
    const ofKernels = { profiles: kernels.finish(), rooflines: kernelRooflines(profiles, names, options.peaks) }
    const ofAll = { power: power.finish(), kernels: ofKernels, hostOperators: hostOperators.finish() }
    return assemble(logsOf, unknown, { ...options, shape, ...ofAll })
  } finally {
    await run.close()
  }
}

const TOO_LATE = 'the relation of its clock to the log is known only after both were read'

/** Places inputs before any is read, as far as their relations to the first one are known; the others are read later. */
async function placeAll(
  placing: Placing,
  logs: readonly Log[],
): Promise<{ readonly ahead: readonly PlacedLog[]; readonly later: readonly Log[] }> {
  const [ahead, later]: [PlacedLog[], Log[]] = [[], []]
  for (const log of logs) {
    try {
      ahead.push({ log, placed: await placing.placeAhead(log) })
    } catch (error) {
      if (ahead.length === 0 || (error as Error).name !== 'UsageError') throw error
      later.push(log)
    }
  }
  return { ahead, later }
}

function pidOf({ attributes }: InputEvent): number[] {
  const pid = Number(attributes['pid'])
  return Number.isInteger(pid) && pid > 0 ? [pid] : []
}

/** What the passes over all inputs share. */
interface Shared {
  readonly names: Names
  readonly threads: ThreadHistory
  readonly power: PowerPass
  readonly accesses: Accesses | undefined
  readonly hostOperators: HostOperatorPass
  readonly kernels: ProfilePass
  readonly series: AnalyzeOptions['series']
  readonly expertCaches: AnalyzeOptions['expertCaches']
  readonly model: ModelShape | undefined
  readonly call: AnalyzeOptions['call']
  readonly onlySteps: boolean
}

/** An input that is analysed. */
class Analysed implements LogPass {
  private readonly alone: LogPasses
  private readonly figures: AnalysisPass
  private readonly join: AccessJoin | undefined
  private lastNs = -Infinity

  constructor(
    readonly log: Log,
    readonly placed: Placed,
    private readonly shared: Shared,
  ) {
    const { names, threads, series, call, expertCaches, model, onlySteps } = shared
    this.join = joinOf(shared.accesses, log, names)
    this.alone = new LogPasses(names)
    const depth = { distributions: true, series, call, expertCaches, model, onlySteps }
    this.figures = new AnalysisPass(names, threads, depth)
  }

  /** States of threads before this time are no longer needed for it, on the trace's clock. */
  get neededFromNs(): number {
    return Math.min(this.figures.earliestNs ?? Infinity, this.lastNs)
  }

  take(batch: TraceEvent[]): void {
    const { alone, figures, placed } = this
    alone.take(batch)
    this.join?.take(batch)
    this.shared.kernels.take(batch)
    this.shared.hostOperators.take(batch, this)
    const onTrace = placed.take(batch)
    figures.take(onTrace)
    this.shared.power.take(onTrace, this.log.name)
    this.lastNs = placed.timeOf(alone.summary.lastNs)
  }

  complete(batch: TraceEvent[]): void {
    this.figures.take(this.placed.take(batch))
  }

  finish(): AnalysedLog {
    const { log, placed, alone, figures, join } = this
    const { summary } = alone
    summary.take(placed.issues(summary))
    const firstNs = placed.timeOf(summary.firstNs)
    return {
      name: log.name,
      ...alone.finish(),
      figures: figures.finish(firstNs),
      accesses: join && accessParts(join.finish()),
    }
  }
}

/** In place of logs, where only a model is analysed. */
function emptyLog(names: Names): AnalysedLog {
  return { name: '', ...new LogPasses(names).finish(), figures: NO_FIGURES }
}

/** Only profiles of kernels, without a log. Throws UsageError where the inputs contain none. */
async function onlyProfiles(run: RunInputs, names: Names, options: ModelOptions): Promise<Analysis> {
  const definitions = new Definitions(names)
  const logs: AnalysedLog[] = []
  for (const { name, batches } of run.logs) {
    const summary = new SummaryPass(names)
    for await (const batch of batches) {
      summary.take(batch)
      definitions.add(batch)
    }
    logs.push({ ...emptyLog(names), name, summary: summary.finish() })
  }
  const { profiles } = definitions
  const [first] = logs
  if (profiles.length === 0)
    throw new UsageError(
      `${first!.name}: ${first!.summary.format} adds to a log\nhint: give the log of the same run, too`,
    )
  const kernels = {
    profiles: new ProfilePass(names, profiles).finish(),
    rooflines: kernelRooflines(profiles, names, options.peaks),
  }
  return { ...assemble(logs, () => [], { ...options, kernels }), undetermined: [] }
}

/** Without a log there is nothing to say of a run. */
function onlyModel(analysis: Analysis): Analysis {
  const undetermined = analysis.undetermined.filter(({ what }) => what.startsWith('model'))
  return { ...analysis, inputs: [], undetermined }
}
