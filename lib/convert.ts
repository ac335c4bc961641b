import { Summarizer, type Summary } from './analyze/summary.ts'
import { Companions } from './companions.ts'
import { UsageError } from './errors.ts'
import { closeAll, eventsOf, type Input, type InputOptions, openInputs, type ReadingOptions } from './inputs.ts'
import type { TraceEvent } from './model/events.ts'
import { Names } from './model/names.ts'
import { ArgMaker, DETAILS, type Detail } from './timeline/labels.ts'
import { MEMORY_ROWS, type MemoryRows } from './timeline/memory.ts'
import { OP_NAMINGS, type OpNaming } from './timeline/operators.ts'
import { Timeline } from './timeline/timeline.ts'
import { TrackTree } from './timeline/tracks.ts'
import { createWriter, TRACE_KINDS, type TraceKind } from './write/index.ts'

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
  /**
   * Of compute buffers `counters` only (default), such as the live bytes; or `lifetimes`: each tensor's life, from first
   * write to last read, as a slice of its own.
   */
  readonly memory?: MemoryRows | undefined
  /** Draw the data flow of one call (the prefill is 0) as arrows, from each operator to those that read its result. */
  readonly flows?: { readonly token: number } | undefined
  /** Stop at the first issue: throws FormatError. */
  readonly strict?: boolean | undefined
}

/** Bytes are handed on in pieces of about this size. */
const PIECE_BYTES = 1 << 18

/**
 * Converts logs to one trace: bytes → reader → events → timeline → writer → bytes. Yields the trace in pieces
 * and returns what was in the logs, in order of the inputs. Memory does not grow with the length of the logs. Several
 * inputs share one timeline if they run on the same clock; companions of a log (what its buffers, weights, graphs are)
 * complete it, in whatever order they are given.
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
  const make = new ArgMaker(names)
  const { detail = 'shapes', opName: opNaming = 'role', tokens, memory = 'counters', flows } = options
  const drawn = { detail, opNaming, tokens, memory, flowsOf: flows?.token }
  const opened = await openInputs([inputs].flat() as Input[], names, options)
  const companions = new Companions(names)
  const summaries = new Map<(typeof opened)[number], Summary>()
  try {
    for (const input of companionsOf(opened)) {
      const summarizer = new Summarizer(names)
      await companions.add(input.name, summarizer.pass(input.read()))
      summaries.set(input, summarizer.result())
    }
    const attributes = companionAttributes([...summaries.values()])
    const logs = opened.filter((input) => !summaries.has(input))
    let clock: string | undefined
    for (const [i, input] of logs.entries()) {
      const timeline = new Timeline(tree, make, drawn, i)
      const summarizer = new Summarizer(names)
      for await (const batch of summarizer.pass(input.read(companions.definitions))) {
        clock = checkClock(clock, batch[0]!, input.name)
        timeline.add(batch)
        if (batch[0]!.kind === 'input') timeline.add(companions.take(batch[0]!))
        if (writer.size >= PIECE_BYTES) yield writer.take()
      }
      timeline.finish()
      summaries.set(input, summarizer.result())
      yield writer.take()
    }
    writer.attributes({ ...attributesOf(logs.map((input) => summaries.get(input)!)), ...attributes })
  } finally {
    await closeAll(opened)
  }
  writer.finish()
  yield writer.take()
  return opened.map((input) => summaries.get(input)!)
}

/** Inputs that go with a log, if there is one. */
function companionsOf<T extends { readonly isCompanion: boolean }>(inputs: readonly T[]): readonly T[] {
  return inputs.every(({ isCompanion }) => isCompanion) ? [] : inputs.filter(({ isCompanion }) => isCompanion)
}

function checkOptions(
  inputs: Input | readonly Input[],
  { to, detail, opName, tokens, memory, flows }: ConvertOptions,
): void {
  const oneOf = (option: string, value: string | undefined, allowed: readonly string[]) => {
    if (value === undefined || allowed.includes(value)) return
    throw new UsageError(`${option}: expected one of ${allowed.join(', ')}, found "${value}"`)
  }
  oneOf('to', to, TRACE_KINDS)
  oneOf('detail', detail, DETAILS)
  oneOf('opName', opName, OP_NAMINGS)
  oneOf('memory', memory, MEMORY_ROWS)
  if (flows && !(Number.isInteger(flows.token) && flows.token >= 0)) {
    throw new UsageError(`flows: expected the number of a call, 0 or more, found ${flows.token}`)
  }
  if (tokens && !(tokens[0] >= 0 && tokens[0] <= tokens[1])) {
    throw new UsageError(`tokens: expected [first, last], 0 or more, found [${tokens.join(', ')}]`)
  }
  if ([inputs].flat().length === 0) throw new UsageError('no input: there is nothing to convert')
}

/** Reads an input and tells what is in it. Throws as {@link convert} does. */
export async function summarize(input: Input, options: ReadingOptions = {}): Promise<Summary> {
  const names = new Names()
  const summarizer = new Summarizer(names)
  for await (const batch of eventsOf(input, names, options)) summarizer.add(batch)
  return summarizer.result()
}

/**
 * Inputs go on one timeline only if their clocks are the same; another relation is not guessed. Returns that clock, once
 * an input event has told it.
 */
function checkClock(first: string | undefined, event: TraceEvent, input: string): string | undefined {
  if (event.kind !== 'input') return first
  if (event.clock === 'none') {
    throw new UsageError(`${input}: has nothing to draw, ${event.format} goes with a log\nhint: give the log, too`)
  }
  if (event.clock === 'unknown') {
    throw new UsageError(`${input}: does not tell on which clock it runs`)
  }
  if (first === undefined || event.clock === first) return event.clock
  throw new UsageError(
    `${input}: runs on CLOCK_${event.clock}, the first input on CLOCK_${first}: no known relation\n` +
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

/** Facts on companions, by their formats. */
function companionAttributes(summaries: readonly Summary[]): Record<string, string | number> {
  const facts = summaries.flatMap(({ format, attributes, issues }) =>
    Object.entries({ ...attributes, issues: issues.reduce((sum, { count }) => sum + count, 0) }).map(
      ([key, value]) => [`${format}.${key}`, value] as const,
    ),
  )
  return Object.fromEntries(facts)
}
