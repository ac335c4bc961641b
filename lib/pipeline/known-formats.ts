import type { Analysis } from '../analyze/analysis.ts'
import type { Summary } from '../analyze/summary/figures.ts'
import { checkNames } from '../errors.ts'
import { CONVERT_OPTIONS, EVENTS_OF_OPTIONS, SUMMARIZE_OPTIONS } from '../generated/option-names.ts'
import type { Definitions } from '../model/definitions.ts'
import type { TraceEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import { withKnown } from '../read/index.ts'
import type { AnalyzeOptions } from './analyze.ts'
import * as ofGiven from './convert.ts'
import * as inputs from './inputs.ts'
import type { ConvertOptions } from './options.ts'

/**
 * Converts logs of any known format to one trace. Yields the trace in pieces and returns a summary of each input, in their order; the summary
 * of a bundled file is the last one. Memory does not grow with the length of the logs. Several inputs share one timeline, on the first
 * log's clock, if they run on it or their relation to it is known. Companions (definitions of buffers, weights, graphs) complete a log;
 * the order of inputs does not matter.
 *
 * Throws FormatError (the rest of an input is not readable; or `strict`) and UsageError (unknown format or option, clocks
 * without a known relation).
 */
export function convert(
  from: inputs.Input | readonly inputs.Input[],
  options: ConvertOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  checkNames('convert', options, CONVERT_OPTIONS)
  return ofGiven.convert(from, withKnown(options))
}

/** Reads an input of any known format and returns its summary. Throws as {@link convert} does. */
export async function summarize(
  input: inputs.Input,
  options: inputs.ReadingOptions & Pick<ConvertOptions, 'findings'> = {},
): Promise<Summary> {
  checkNames('summarize', options, SUMMARIZE_OPTIONS)
  return ofGiven.summarize(input, withKnown(options))
}

/**
 * Reads the events of an input of any known format; `names` interns their texts, `definitions` are those of its companions. Throws as
 * {@link convert} does.
 */
export function eventsOf(
  input: inputs.Input,
  names: Names,
  options: inputs.ReadingOptions = {},
  definitions?: Definitions,
): AsyncGenerator<TraceEvent[], void> {
  checkNames('eventsOf', options, EVENTS_OF_OPTIONS)
  return inputs.eventsOf(input, names, withKnown(options), definitions)
}

/** Analyses one log, or several of one run, as `analyze` of `ggml2perfetto/analysis` does, which is loaded then. */
export async function analyze(
  from: inputs.Input | readonly inputs.Input[],
  options: AnalyzeOptions = {},
): Promise<Analysis> {
  return (await import('./analyze.ts')).analyze(from, options)
}
