import type { AccessJoin } from '../analyze/graph/accesses/join.ts'
import type { PowerPass } from '../analyze/power/power-pass.ts'
import type { Summary } from '../analyze/summary/figures.ts'
import { asDrawn } from '../analyze/summary/nothing-drawn.ts'
import { checkNames } from '../errors.ts'
import { CONVERT_OPTIONS, SUMMARIZE_OPTIONS } from '../generated/option-names.ts'
import type { TraceEvent } from '../model/events.ts'
import { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import { Drawing } from '../timeline/drawing.ts'
import type { Timeline } from '../timeline/timeline.ts'
import { writerOf } from '../write/index.ts'
import { type Accesses, joinOf, readAccesses } from './accesses.ts'
import { attributesOf } from './attributes.ts'
import type { Budget } from './budget/budget.ts'
import { neededBudget } from './budget/needed.ts'
import type { Thinning } from './budget/thinning.ts'
import type { Bundle } from './bundle/bundle.ts'
import type { Placed } from './clocks/placing.ts'
import type { FindingsPass, ReadLog } from './findings-pass.ts'
import { type Input, type Log, leadOf, type Reading, type ReadingOptions, readEvents } from './inputs.ts'
import { type ConvertOptions, checkOptions } from './options.ts'
import { ProgressCount } from './progress.ts'
import { type LogPass, LogReading, RunInputs } from './run-inputs.ts'
import { stoppable } from './turns.ts'

/** Bytes are passed on in pieces of about this size. */
const PIECE_BYTES = 1 << 18

/**
 * Converts logs to one trace: bytes → reader → events → timeline → writer → bytes. Yields the trace in pieces and returns a
 * summary of each input, in their order; the summary of a bundled file is the last one. Memory does not grow with the length
 * of the logs. Several inputs share one timeline, on the first log's clock, if they run on it or their relation to it is known.
 * Companions (definitions of buffers, weights, graphs) complete a log; the order of inputs does not matter. Only the formats that the
 * options contain are known.
 *
 * Throws FormatError (the rest of an input is not readable; or `strict`) and UsageError (unknown format or option, clocks
 * without a known relation).
 */
export function convert(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  checkNames('convert', options, [...CONVERT_OPTIONS, 'known'])
  return stoppable((signal) => converted([inputs].flat() as readonly Input[], { ...options, signal }), options.signal)
}

async function* converted(all: readonly Input[], given: ConvertOptions): AsyncGenerator<Uint8Array, Summary[]> {
  checkOptions(all, given)
  const options: ConvertOptions & Reading = { ...given, progress: await ProgressCount.of(all, given.onProgress) }
  const names = new Names()
  const writer = new (await writerOf(options.to))(names)
  if (!options.bundle) return yield* traceOf(all, options, names, writer)
  const [{ Bundle, memberName }, { ZipWriter }] = await Promise.all([
    import('./bundle/bundle.ts'),
    import('../write/zip.ts'),
  ])
  const run = await RunInputs.open(all, names, readingOf(options))
  let bundle: Bundle | undefined
  try {
    const trace = `${memberName(run.main.name).replace(/(?<=.)\.gz$/, '')}.pftrace`
    bundle = await Bundle.open(options.bundle, trace, options.formats)
    const zip = new ZipWriter()
    const summaries = yield* zip.add(trace, drawn(run, all, options, names, writer, bundle))
    yield* zip.add(bundle.path, bundle.content())
    yield* zip.add('perfetto_manifest.json', bundle.manifest())
    yield* zip.finish()
    return [...summaries, bundle.summary]
  } finally {
    await bundle?.close()
    await run.close()
  }
}

/** Draws a run by a writer. Yields and returns what {@link convert} does. */
export async function* traceOf(
  inputs: readonly Input[],
  options: ConvertOptions,
  names: Names,
  writer: Writer,
): AsyncGenerator<Uint8Array, Summary[]> {
  const run = await RunInputs.open(inputs, names, readingOf(options))
  try {
    return yield* drawn(run, inputs, options, names, writer)
  } finally {
    await run.close()
  }
}

const readingOf = (options: ConvertOptions) => ({ ...options, everything: options.detail === 'full' })

async function* drawn(
  run: RunInputs,
  inputs: readonly Input[],
  options: ConvertOptions,
  names: Names,
  writer: Writer,
  bundle?: Bundle,
): AsyncGenerator<Uint8Array, Summary[]> {
  const { logs, companions } = run
  bundle?.checkSwitches(logs)
  if (!bundle) writer.countFrom?.(leadOf(logs))
  let bytes = 0
  const Findings = await findingsPass(options)
  const shared = {
    ...{ names, options, Findings, power: Findings && new Findings.PowerPass(names) },
    written: () => bytes + writer.size,
    drawing: new Drawing(
      writer,
      names,
      options,
      run.hasSwitches,
      writer.gpu !== undefined && run.hasGroups && !options.grouped,
    ),
    budget: await budgetOf(run, inputs, names, options),
    accesses: await readAccesses(run, names, options),
  }
  const { drawing } = shared
  const logsInTurn = run.inTurn(run.placing(options, bundle), (log, placed) => new DrawnLog(log, placed, shared))
  let next = await logsInTurn.next()
  for (; !next.done; next = await logsInTurn.next()) {
    if (writer.size < PIECE_BYTES) continue
    bytes += writer.size
    yield writer.take()
  }
  const late = drawing.finish()
  // A recording of the scheduler comes after the logs, and shows who took the CPUs of their workers.
  const summaries = new Map(companions.summaries)
  const read = next.value.map((log) => log.read())
  const findings = shared.Findings?.findingsOf(read) ?? []
  next.value.forEach((log, i) => {
    const summary = { ...read[i]!.summary, ...findings[i] }
    log.explain(summary)
    summaries.set(log.log.input, summary)
  })
  writer.attributes(attributesOf(run, summaries, { late, bundle: bundle?.path }))
  writer.finish()
  yield writer.take()
  return run.inOrder(inputs, summaries).map((summary) => asDrawn(summary, drawing.isEmpty))
}

/** What plans a trace is loaded where one may be too large. Throws as {@link Budget.of} does. */
async function budgetOf(
  run: RunInputs,
  inputs: readonly Input[],
  names: Names,
  options: ConvertOptions & ReadingOptions,
): Promise<Budget | undefined> {
  const needed = await neededBudget(run.logs, options)
  return needed && (await import('./budget/budget.ts')).Budget.of(run, inputs, names, options, needed)
}

/** What the logs of a trace share. */
interface Shared {
  readonly names: Names
  readonly options: ConvertOptions
  /** Bytes of the trace so far. */
  readonly written: () => number
  readonly drawing: Drawing
  readonly budget: Budget | undefined
  readonly accesses: Accesses | undefined
  readonly Findings: typeof import('./findings-pass.ts') | undefined
  /** Of all logs, for findings. */
  readonly power: PowerPass | undefined
}

/** Most programs do not ask for findings: what finds them is loaded for those that do. */
async function findingsPass({ findings }: Pick<ConvertOptions, 'findings'>): Promise<Shared['Findings']> {
  return findings ? import('./findings-pass.ts') : undefined
}

/** A log that is drawn. */
class DrawnLog implements LogPass {
  private readonly timeline: Timeline
  private readonly findings: FindingsPass | undefined
  private readonly reading: LogReading
  private readonly thinning: Thinning | undefined
  private readonly join: AccessJoin | undefined
  private summary!: Summary
  /** From its first event to its last, on the trace's clock. */
  private span = { startNs: 0, endNs: 0 }

  constructor(
    readonly log: Log,
    readonly placed: Placed,
    private readonly shared: Shared,
  ) {
    const { names, Findings, power, written, drawing, budget, accesses } = shared
    const { isOfScheduler } = log
    const before = written()
    this.thinning = budget?.thinning(log, () => written() - before)
    const [timeOf, isOwn] = [
      (ns: number) => placed.timeOf(ns),
      (tid: number) => drawing.scheduler.threads.traced.has(tid),
    ]
    this.findings = Findings && new Findings.FindingsPass(names, timeOf, isOwn, isOfScheduler, power, log.name)
    this.timeline = drawing.begin({ isOfScheduler, isSummed: this.thinning?.isPlanned, waited: this.findings?.waited })
    this.reading = new LogReading(names, this.findings)
    this.join = joinOf(accesses, log, names)
  }

  take(batch: TraceEvent[]): void {
    this.join?.take(batch)
    this.reading.take(batch)
    this.complete(this.thinning ? this.thinning.take(batch) : batch)
  }

  complete(batch: TraceEvent[]): void {
    this.timeline.take(this.placed.take(batch))
  }

  get isWaiting(): boolean {
    return this.timeline.isWaiting
  }

  load(): Promise<void> {
    return this.timeline.load()
  }

  finish(): void {
    const { log, placed, timeline, thinning, join, reading, shared } = this
    const { summary } = reading
    if (thinning) {
      this.complete(thinning.finish())
      summary.take(thinning.leftOutEvents())
    }
    const issues = placed.issues(summary)
    for (const pass of [timeline, summary]) pass.take(issues)
    if (join) timeline.accesses(join.finish(), (ns) => placed.timeOf(ns))
    timeline.finish()
    summary.take(timeline.leftOut)
    if (summary.lastNs > summary.firstNs)
      this.span = { startNs: placed.timeOf(summary.firstNs), endNs: placed.timeOf(summary.lastNs) }
    if (!log.isOfScheduler && this.span.endNs > this.span.startNs) shared.drawing.scheduler.lived(this.span.endNs)
    this.summary = placed.described(summary.finish(shared.accesses !== undefined))
  }

  /** After all logs were read. */
  read(): ReadLog {
    const { summary, findings, thinning, log } = this
    const thinned = thinning?.thinned
    return { name: log.name, summary: { ...summary, ...(thinned && { thinned }) }, pass: findings }
  }

  /** Draws what made the run slow. */
  explain({ findings, verdict }: Summary): void {
    if (!findings || this.span.endNs <= this.span.startNs) return
    this.timeline.findings(verdict?.sentence, findings, this.span)
  }
}

/** Reads an input and returns its summary. Throws as {@link convert} does. */
export async function summarize(
  input: Input,
  options: ReadingOptions & Pick<ConvertOptions, 'findings'> = {},
): Promise<Summary> {
  checkNames('summarize', options, [...SUMMARIZE_OPTIONS, 'known'])
  const names = new Names()
  const Findings = await findingsPass(options)
  const findings = Findings && new Findings.FindingsPass(names)
  const reading = new LogReading(names, findings)
  const progress = await ProgressCount.of([input], options.onProgress)
  for await (const batch of readEvents(input, names, { ...options, progress })) reading.take(batch)
  const summary = reading.summary.finish()
  return { ...summary, ...Findings?.findingsOf([{ name: input.name, summary, pass: findings }])[0] }
}
