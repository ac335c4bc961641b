import type { Summary } from '../analyze/summary/figures.ts'
import { asDrawn } from '../analyze/summary/nothing-drawn.ts'
import { SummaryPass } from '../analyze/summary/summary.ts'
import { Names } from '../model/names.ts'
import type { Writer } from '../sink/writer.ts'
import { Drawing } from '../timeline/drawing.ts'
import { createWriter } from '../write/index.ts'
import { ZipWriter } from '../write/zip.ts'
import { joinOf, readAccesses } from './accesses.ts'
import { attributesOf } from './attributes.ts'
import { Budget } from './budget/budget.ts'
import { Bundle, memberName } from './bundle/bundle.ts'
import { type Placed, Placing } from './clocks/placing.ts'
import { Companions } from './companions.ts'
import { FindingsPass } from './findings-pass.ts'
import { beginLogs, closeAll, eventsOf, type Input, type Log, openInputs, type ReadingOptions } from './inputs.ts'
import { type ConvertOptions, checkOptions } from './options.ts'

/** Bytes are passed on in pieces of about this size. */
const PIECE_BYTES = 1 << 18

/**
 * Converts logs to one trace: bytes → reader → events → timeline → writer → bytes. Yields the trace in pieces and returns a
 * summary of each input, in their order; the summary of a bundled file is the last one. Memory does not grow with the length
 * of the logs. Several inputs share one timeline, on the first log's clock, if they run on it or their relation to it is known.
 * Companions (definitions of buffers, weights, graphs) complete a log; the order of inputs does not matter.
 *
 * Throws FormatError (the rest of an input is not readable; or `strict`) and UsageError (unknown format or option, clocks
 * without a known relation).
 */
export async function* convert(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  const all = [inputs].flat() as readonly Input[]
  checkOptions(all, options)
  const names = new Names()
  const writer = createWriter(options.to ?? 'perfetto', names)
  if (!options.bundle) return yield* traceOf(all, options, names, writer)
  const trace = `${memberName(all[0]!.name).replace(/(?<=.)\.gz$/, '')}.pftrace`
  const bundle = await Bundle.open(options.bundle, trace)
  try {
    const zip = new ZipWriter()
    const summaries = yield* zip.add(trace, traceOf(all, options, names, writer, bundle))
    yield* zip.add(bundle.path, bundle.content())
    yield* zip.add('perfetto_manifest.json', bundle.manifest())
    yield* zip.finish()
    return [...summaries, bundle.summary]
  } finally {
    await bundle.close()
  }
}

/** Puts one input after the other on the trace's clock and passes each batch to the timeline and the input's summary. */
export async function* traceOf(
  inputs: readonly Input[],
  options: ConvertOptions,
  names: Names,
  writer: Writer,
  bundle?: Bundle,
): AsyncGenerator<Uint8Array, Summary[]> {
  const opened = await openInputs(inputs, names, { ...options, everything: options.detail === 'full' })
  try {
    const companions = await Companions.read(opened, names)
    const logs = await beginLogs(companions.logs, companions.definitions)
    bundle?.checkSwitches(logs)
    if (logs.length === 1 && !bundle) writer.countFrom?.(logs[0]!.leadNs)
    const { definitions } = companions
    const budget = await Budget.of(logs, { inputs, opened, definitions, names }, options)
    const accesses = await readAccesses(logs, { inputs, opened, names }, options)
    const placing = new Placing(options.clocks ?? {}, logs, bundle)
    const hasSwitches = logs.some((log) => log.hasSwitches)
    const drawing = new Drawing(writer, names, options, hasSwitches)
    const summaries = new Map(companions.summaries)
    const found = new Map<Log, FindingsPass>()
    let bytes = 0
    for (const log of logs) {
      const before = bytes + writer.size
      const thinning = budget?.thinning(log, () => bytes + writer.size - before)
      const placed = await placing.place(log)
      const findings = options.findings && !log.isOfScheduler ? findingsOf(names, placed, drawing) : undefined
      const how = { isOfScheduler: log.isOfScheduler, isSummed: thinning?.isPlanned, waited: findings?.waited }
      const [timeline, summary] = [drawing.begin(how), new SummaryPass(names, findings?.timed)]
      const join = joinOf(accesses, log, names)
      for await (const batch of placed.batches) {
        join?.take(batch)
        if (findings) findings.take(batch, summary)
        else summary.take(batch)
        timeline.take(placed.take(thinning ? thinning.take(batch) : batch))
        if (batch[0]!.kind === 'input') timeline.take(placed.take(companions.take(batch[0]!)))
        if (writer.size < PIECE_BYTES) continue
        bytes += writer.size
        yield writer.take()
      }
      if (thinning) {
        timeline.take(placed.take(thinning.finish()))
        summary.take(thinning.leftOutEvents())
      }
      const issues = placed.issues(summary)
      for (const pass of [timeline, summary]) pass.take(issues)
      if (join) timeline.accesses(join.finish(), (ns) => placed.timeOf(ns))
      timeline.finish()
      if (!log.isOfScheduler && summary.lastNs > summary.firstNs) drawing.scheduler.lived(placed.timeOf(summary.lastNs))
      const thinned = thinning?.thinned
      summaries.set(log.input, {
        ...placed.described(summary.finish(accesses !== undefined)),
        ...(thinned && { thinned }),
      })
      if (findings) found.set(log, findings)
    }
    const late = drawing.finish()
    // A recording of the scheduler comes after the logs, and shows who took the CPUs of their workers.
    for (const [{ input, name }, findings] of found) {
      const summary = summaries.get(input)!
      summaries.set(input, { ...summary, ...findings.of(summary, name) })
    }
    writer.attributes(attributesOf(companions, summaries, { late, bundle: bundle?.path }))
    writer.finish()
    yield writer.take()
    return opened.map((input) => asDrawn(summaries.get(input)!, drawing.isEmpty))
  } finally {
    await closeAll(opened)
  }
}

/** Finds what made the run of a log slow. */
function findingsOf(names: Names, placed: Placed, { scheduler }: Drawing): FindingsPass {
  return new FindingsPass(
    names,
    (ns) => placed.timeOf(ns),
    (tid) => scheduler.isTraced(tid),
  )
}

/** Reads an input and returns its summary. Throws as {@link convert} does. */
export async function summarize(
  input: Input,
  options: ReadingOptions & Pick<ConvertOptions, 'findings'> = {},
): Promise<Summary> {
  const names = new Names()
  const findings = options.findings ? new FindingsPass(names) : undefined
  const summary = new SummaryPass(names, findings?.timed)
  for await (const batch of eventsOf(input, names, options)) {
    if (findings) findings.take(batch, summary)
    else summary.take(batch)
  }
  const finished = summary.finish()
  return findings ? { ...finished, ...findings.of(finished, input.name) } : finished
}
