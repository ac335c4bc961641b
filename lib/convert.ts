import { Summarizer, type Summary } from './analyze/summary.ts'
import { FormatError, isFormatError, UsageError } from './errors.ts'
import { type ByteSource, chunksOf } from './input/byte-source.ts'
import type { TraceEvent } from './model/events.ts'
import { Names } from './model/names.ts'
import { OP_TABLES, type OpTable } from './model/op-tables.ts'
import type { Format } from './read/format.ts'
import { readEvents } from './read/index.ts'
import { ArgMaker, DETAILS, type Detail } from './timeline/labels.ts'
import { OP_NAMINGS, type OpNaming } from './timeline/operators.ts'
import { Timeline } from './timeline/timeline.ts'
import { TrackTree } from './timeline/tracks.ts'
import { createWriter, TRACE_KINDS, type TraceKind } from './write/index.ts'

/** A log, or events that a program makes itself. */
export type Input = LogInput | EventInput

/** A log: its bytes, and what it is called in errors. */
export interface LogInput {
  readonly name: string
  readonly source: ByteSource
}

/**
 * Events that a program makes itself, or changes on their way ({@link eventsOf} reads a log's): batches in any size, the
 * very first event being the {@link InputEvent}. `names` is where their texts are interned.
 */
export interface EventInput {
  readonly name: string
  events(names: Names): Iterable<TraceEvent[]> | AsyncIterable<TraceEvent[]>
}

/** How inputs are read. */
export interface InputOptions {
  /** Name of the input's format, instead of detecting it. */
  readonly from?: string | undefined
  /** Formats of your own; they are tried before the ones we know, and `from` names them, too. */
  readonly formats?: readonly Format[] | undefined
  /** Numbers of ggml ops: the name of a table we know, or the op names themselves. By default inferred. */
  readonly opTable?: string | readonly string[] | undefined
}

/** How a trace is written. */
export interface ConvertOptions extends InputOptions {
  /** What the trace is written as: `perfetto` (default, protobuf) or `json` (Chrome's Trace Event Format). */
  readonly to?: TraceKind | undefined
  /** Arguments on slices: `names` none, `shapes` (default) what was computed on what, `full` all that was recorded. */
  readonly detail?: Detail | undefined
  /** Operator slices are called `<role> <OP>` (default), by op alone, or by the tensor's full name. */
  readonly opName?: OpNaming | undefined
  /** Calls to convert, from … to inclusive; the prefill is 0. By default all, warm-up included. */
  readonly tokens?: readonly [number, number] | undefined
  /** Stop at the first issue: throws FormatError. */
  readonly strict?: boolean | undefined
}

/** Bytes are handed on in pieces of about this size. */
const PIECE_BYTES = 1 << 18

/**
 * Converts logs to one trace: bytes → reader → events → timeline → writer → bytes. Yields the trace in pieces
 * and returns what was in the logs, in order of the inputs. Memory does not grow with the length of the logs. Several
 * inputs share one timeline if they run on the same clock.
 *
 * Throws FormatError (input not readable any further; or `strict`) and UsageError (unknown format or option, clocks
 * that cannot be joined).
 */
export async function* convert(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  checkOptions(inputs, options)
  const names = new Names()
  const writer = createWriter(options.to ?? 'perfetto', names)
  const tree = new TrackTree(writer)
  const summaries: Summary[] = []
  const make = new ArgMaker(names)
  const drawn = {
    detail: options.detail ?? 'shapes',
    opNaming: options.opName ?? 'role',
    tokens: options.tokens,
  } as const
  for (const [i, input] of ([inputs].flat() as Input[]).entries()) {
    const timeline = new Timeline(tree, make, drawn, i)
    const summarizer = new Summarizer(names)
    for await (const batch of eventsOf(input, names, options)) {
      summarizer.add(batch)
      checkClock(summaries[0], batch[0], input.name)
      timeline.add(batch)
      if (writer.size >= PIECE_BYTES) yield writer.take()
    }
    timeline.finish()
    summaries.push(summarizer.result())
    yield writer.take()
  }
  writer.attributes(attributesOf(summaries))
  writer.finish()
  yield writer.take()
  return summaries
}

function checkOptions(inputs: Input | readonly Input[], { to, detail, opName, tokens }: ConvertOptions): void {
  const oneOf = (option: string, value: string | undefined, allowed: readonly string[]) => {
    if (value === undefined || allowed.includes(value)) return
    throw new UsageError(`${option}: expected one of ${allowed.join(', ')}, found "${value}"`)
  }
  oneOf('to', to, TRACE_KINDS)
  oneOf('detail', detail, DETAILS)
  oneOf('opName', opName, OP_NAMINGS)
  if (tokens && !(tokens[0] >= 0 && tokens[0] <= tokens[1])) {
    throw new UsageError(`tokens: expected [first, last], 0 or more, found [${tokens.join(', ')}]`)
  }
  if ([inputs].flat().length === 0) throw new UsageError('no input: there is nothing to convert')
}

/** Reads an input and tells what is in it. Throws as {@link convert} does. */
export async function summarize(input: Input, options: InputOptions & { strict?: boolean } = {}): Promise<Summary> {
  const names = new Names()
  const summarizer = new Summarizer(names)
  for await (const batch of eventsOf(input, names, options)) summarizer.add(batch)
  return summarizer.result()
}

/** Reads an input's events; `names` holds the texts that they refer to by number. Throws as {@link convert} does. */
export async function* eventsOf(
  input: Input,
  names: Names,
  options: InputOptions & { strict?: boolean | undefined } = {},
): AsyncGenerator<TraceEvent[], void> {
  const { name } = input
  try {
    let format: string | undefined
    for await (const batch of 'events' in input ? input.events(names) : readLog(input, names, options)) {
      if (batch.length === 0) continue
      format ??= formatOf(batch[0]!, name)
      if (options.strict) stopAtIssue(batch, format)
      yield batch
    }
    if (format === undefined) throw new UsageError(`${name}: expected an input event, found no events at all`)
  } catch (error) {
    throw isFormatError(error) && error.input === undefined ? error.inInput(name) : error
  }
}

function readLog({ name, source }: LogInput, names: Names, options: InputOptions): AsyncGenerator<TraceEvent[]> {
  const { from, formats } = options
  const opTable = options.opTable === undefined ? undefined : findOpTable(options.opTable)
  return readEvents(chunksOf(source, name), { names, from, formats, opTable, input: name })
}

/** A reader or a program that is not ours may get the first event wrong. */
function formatOf(first: TraceEvent, name: string): string {
  if (first.kind === 'input') return first.format
  throw new UsageError(`${name}: expected an event of the kind "input" first, found "${first.kind}"`)
}

function findOpTable(table: string | readonly string[]): OpTable {
  if (typeof table !== 'string') return { name: 'custom', about: 'a table of your own', ops: table }
  const known = OP_TABLES.find((candidate) => candidate.name === table)
  if (known) return known
  const list = OP_TABLES.map(({ name, about }) => `  ${name}  ${about}`).join('\n')
  throw new UsageError(`no op table is called "${table}"; known ones:\n${list}`)
}

function stopAtIssue(batch: readonly TraceEvent[], format: string): void {
  for (const event of batch) {
    if (event.kind === 'issue') {
      const hint = `${event.detail}; without strict, reading goes on`
      throw new FormatError(format, event.at, 'no issues (strict)', event.title, hint)
    }
  }
}

/** Inputs go on one timeline only if their clocks are the same; another relation is not guessed. */
function checkClock(first: Summary | undefined, event: TraceEvent | undefined, input: string): void {
  if (!first || event?.kind !== 'input' || event.clock === first.clock) return
  throw new UsageError(
    `${input}: runs on CLOCK_${event.clock}, the first input on CLOCK_${first.clock}: no known relation\n` +
      'hint: convert them one by one',
  )
}

/** Facts on the whole trace; Perfetto shows them on its overview page. */
function attributesOf(summaries: readonly Summary[]): Record<string, string | number> {
  const attributes: Record<string, string | number> = { generator: 'ggml2perfetto' }
  summaries.forEach((summary, i) => {
    const prefix = summaries.length > 1 ? `input_${i}.` : ''
    const { prefill, decode, warmUp } = summary.calls
    const issues = summary.issues.reduce((sum, { count }) => sum + count, 0)
    const facts = {
      format: summary.format,
      ...summary.attributes,
      warmup_calls: warmUp.calls,
      prefill_calls: prefill.calls,
      prefill_tokens: prefill.tokens,
      decode_calls: decode.calls,
      operators: summary.operators,
      workers: summary.workers,
      issues,
    }
    for (const [key, value] of Object.entries(facts)) attributes[prefix + key] = value
  })
  return attributes
}
