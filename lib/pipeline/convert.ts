import { Summarizer, type Summary } from '../analyze/summary.ts'
import { UsageError } from '../errors.ts'
import type { Definitions } from '../model/definitions.ts'
import type { InputEvent, TraceEvent } from '../model/events.ts'
import { Names } from '../model/names.ts'
import { OP_NAMINGS, type OpNaming } from '../timeline/ggml/operators.ts'
import { Scheduler } from '../timeline/kernel/scheduler.ts'
import { ArgMaker, DETAILS, type Detail } from '../timeline/labels.ts'
import { MEMORY_ROWS, type MemoryRows } from '../timeline/memory/memory.ts'
import { Timeline } from '../timeline/timeline.ts'
import { TrackTree } from '../timeline/tracks.ts'
import { createWriter, TRACE_KINDS, type TraceKind } from '../write/index.ts'
import { ZipWriter } from '../write/zip.ts'
import { Bundle, memberName } from './bundle/bundle.ts'
import { Clocks, type Joined } from './clocks/clocks.ts'
import { type Relation, related, SAME, timeOf } from './clocks/relation.ts'
import { Spans } from './clocks/spans.ts'
import { Companions } from './companions.ts'
import {
  type BegunInput,
  begin,
  closeAll,
  eventsOf,
  type Input,
  type InputOptions,
  type LogInput,
  type OpenInput,
  openInputs,
  type ReadingOptions,
} from './inputs.ts'

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
  /**
   * Clocks of inputs, by name or file name: a clock (`mono`, `boot`, `mono_raw`, `real`) for one that does not tell, what to add
   * to its times to have the first input's (`+1.2ms`), or when it begins there (`@1444.4s`).
   */
  readonly clocks?: Readonly<Record<string, string>> | undefined
  /** Draw all that the scheduler did; by default what concerns the traced process, and who ran on its CPUs. */
  readonly allThreads?: boolean | undefined
  /**
   * A file that Perfetto reads itself, such as a perf.data with call stacks: what is written is a ZIP archive of the trace, this
   * file as it is, and a `perfetto_manifest`, all on one clock. It must be readable twice: bytes, a Blob, a file; no stream.
   */
  readonly bundle?: LogInput | undefined
  /** Stop at the first issue: throws FormatError. */
  readonly strict?: boolean | undefined
}

/** Kinds of events that the trace's attributes list as not drawn. */
const LEFT_OUT_LISTED_MAX = 20
/** Bytes are handed on in pieces of about this size. */
const PIECE_BYTES = 1 << 18

/**
 * Converts logs to one trace: bytes → reader → events → timeline → writer → bytes. Yields the trace in pieces
 * and returns what was in the logs, in order of the inputs. Memory does not grow with the length of the logs. Several
 * inputs share one timeline, on the first log's clock, if they run on it or a relation to it is known; companions of a log
 * (what its buffers, weights, graphs are) complete it, in whatever order they are given. Of a bundle, the bundled file's
 * summary comes last.
 *
 * Throws FormatError (input not readable any further; or `strict`) and UsageError (unknown format or option, clocks
 * that cannot be joined).
 */
export async function* convert(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
): AsyncGenerator<Uint8Array, Summary[]> {
  checkOptions(inputs, options)
  if (!options.bundle) return yield* traceOf(inputs, options)
  const trace = `${memberName([inputs].flat()[0]!.name).replace(/(?<=.)\.gz$/, '')}.pftrace`
  const bundle = await Bundle.open(options.bundle, trace)
  try {
    const zip = new ZipWriter()
    const summaries = yield* zip.add(trace, traceOf(inputs, options, bundle))
    yield* zip.add(bundle.path, bundle.content())
    yield* zip.add('perfetto_manifest.json', bundle.manifest())
    yield* zip.finish()
    return summaries
  } finally {
    await bundle.close()
  }
}

async function* traceOf(
  inputs: Input | readonly Input[],
  options: ConvertOptions,
  bundle?: Bundle,
): AsyncGenerator<Uint8Array, Summary[]> {
  const names = new Names()
  const writer = createWriter(options.to ?? 'perfetto', names)
  const tree = new TrackTree(writer)
  const make = new ArgMaker(names)
  const { detail = 'shapes', opName: opNaming = 'role', tokens, memory = 'counters', flows } = options
  const drawn = { detail, opNaming, tokens, memory, flowsOf: flows?.token }
  const opened = await openInputs([inputs].flat() as Input[], names, { ...options, everything: detail === 'full' })
  const companions = new Companions(names)
  const summaries = new Map<(typeof opened)[number], Summary>()
  try {
    for (const input of companionsOf(opened)) {
      const summarizer = new Summarizer(names)
      await companions.add(input.name, summarizer.pass(input.read()))
      summaries.set(input, summarizer.result())
    }
    const attributes = companionAttributes([...summaries.values()])
    const ofLogs = opened.filter((input) => !summaries.has(input))
    const logs = await beginAll(ofLogs, companions.definitions)
    bundle?.checkBeside(logs)
    const clocks = new Clocks(options.clocks ?? {}, namesOf(bundle ? [...logs, bundle] : logs))
    const scheduler = new Scheduler(tree, make, options.allThreads)
    const spans = new Spans()
    if (logs.some(({ tellsSwitches }) => tellsSwitches)) scheduler.expect()
    for (const [i, log] of logs.entries()) {
      const joined = await clocks.join(log)
      const { batches } = i === 0 && bundle ? await bundle.meet(clocks, joined) : joined
      const relation = bundle?.relation(joined.relation) ?? joined.relation
      const reference = bundle?.reference(clocks.reference) ?? clocks.reference
      const timeline = new Timeline(tree, make, drawn, i, scheduler)
      const summarizer = new Summarizer(names)
      const place = (batch: TraceEvent[]) => {
        const placed = related(batch, joined.relation, clocks.reference)
        if (logs.length > 1) clocks.note(batch, placed)
        timeline.add(bundle ? bundle.told(related(batch, relation, reference), log.first) : placed)
      }
      for await (const batch of summarizer.pass(batches)) {
        place(batch)
        if (batch[0]!.kind === 'input') place(companions.take(batch[0]!))
        if (writer.size >= PIECE_BYTES) yield writer.take()
      }
      const found = [...leftOutOf(scheduler), ...apart(spans, summarizer.result(), log, joined)]
      summarizer.add(found)
      timeline.add(found)
      timeline.finish()
      const isPlain = i === 0 && relation.how === SAME.how
      const summary = withRelation(summarizer.result(), isPlain ? undefined : relation, log.first, reference)
      summaries.set(log.input, summary)
      const lastNs = Number(summary.startNs - log.first.originNs) + summary.durationNs
      if (!log.isOfScheduler && summary.durationNs > 0) scheduler.lived(timeOf(relation, lastNs))
      yield writer.take()
    }
    const late = scheduler.finish()
    if (late > 0) attributes['state_changes_left_out'] = late
    writer.attributes({
      ...attributesOf(ofLogs.map((input) => summaries.get(input)!)),
      ...attributes,
      ...(bundle ? { bundle: bundle.path } : {}),
    })
    writer.finish()
    yield writer.take()
    return [...opened.map((input) => summaries.get(input)!), ...(bundle ? [bundle.summary] : [])]
  } finally {
    await closeAll(opened)
  }
}

const namesOf = (inputs: readonly { readonly name: string }[]): string[] => inputs.map(({ name }) => name)

type Log = BegunInput & { readonly input: OpenInput }

/**
 * Begins inputs, and puts those that tell of the scheduler behind the others, which tell what process is traced; behind them
 * those that tell less of it, for CPUs are drawn from the first that tells of them.
 */
async function beginAll(inputs: readonly OpenInput[], definitions: Definitions): Promise<Log[]> {
  const logs: Log[] = []
  for (const input of inputs) logs.push({ input, ...(await begin(input.name, input.read(definitions))) })
  const rank = ({ isOfScheduler, first }: Log) => (!isOfScheduler ? 0 : 'blocked_states' in first.attributes ? 2 : 1)
  return logs.sort((a, b) => rank(a) - rank(b))
}

/** Tells, as an issue, what of an input is not drawn because another tells of it. */
function leftOutOf({ leftOut }: Scheduler): TraceEvent[] {
  if (!leftOut) return []
  const { switches, wakings, cpus, atNs } = leftOut
  const which = cpus.map((cpu) => (cpu < 0 ? 'unknown' : cpu)).join(', ')
  const detail = `${switches} switches and ${wakings} wakings (CPU ${which}): another input tells of the same`
  return [{ kind: 'issue', title: 'left out, told twice', detail, at: { byte: 0 }, atNs }]
}

/** Tells, as an issue, that an input has no time in common with the others, where that is not how it should be. */
function apart(spans: Spans, summary: Summary, log: Log, { relation, trust }: Joined): TraceEvent[] {
  const { name, first, isOfScheduler } = log
  if (summary.durationNs === 0) return []
  const startNs = Number(summary.startNs - first.originNs)
  const [fromNs, toNs] = [timeOf(relation, startNs), timeOf(relation, startNs + summary.durationNs)]
  const issue = spans.add({ name, fromNs, toNs })
  const isMeant = trust === 'given' || (trust === 'checked' && !isOfScheduler) // runs of one boot, one after the other
  return issue && !isMeant ? [issue] : []
}

/** Inputs that go with a log, if there is one. */
function companionsOf<T extends { readonly isCompanion: boolean }>(inputs: readonly T[]): readonly T[] {
  return inputs.every(({ isCompanion }) => isCompanion) ? [] : inputs.filter(({ isCompanion }) => isCompanion)
}

function checkOptions(
  inputs: Input | readonly Input[],
  { to, detail, opName, tokens, memory, flows, bundle }: ConvertOptions,
): void {
  const oneOf = (option: string, value: string | undefined, allowed: readonly string[]) => {
    if (value === undefined || allowed.includes(value)) return
    throw new UsageError(`${option}: expected one of ${allowed.join(', ')}, found "${value}"`)
  }
  oneOf('to', to, TRACE_KINDS)
  oneOf('detail', detail, DETAILS)
  oneOf('opName', opName, OP_NAMINGS)
  oneOf('memory', memory, MEMORY_ROWS)
  if (bundle && to === 'json') throw new UsageError("bundle: goes with Perfetto's own kind of trace, not with json")
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

/** What is said of an input's clock, where it does not make the trace's. */
function withRelation(summary: Summary, relation: Relation | undefined, own: InputEvent, trace: InputEvent): Summary {
  if (!relation) return summary
  const { how, boundNs } = relation
  const offsetNs = trace.originNs + BigInt(timeOf(relation, 0)) - own.originNs
  return { ...summary, relation: { to: trace.clock, how, offsetNs, boundNs } }
}

/** Facts on the whole trace; Perfetto shows them on its overview page. */
function attributesOf(summaries: readonly Summary[]): Record<string, string | number> {
  const attributes: Record<string, string | number> = Object.create(null) // any text may be a key
  attributes['generator'] = 'ggml2perfetto'
  summaries.forEach((summary, i) => {
    const prefix = summaries.length > 1 ? `input_${i}.` : ''
    const { prefill, decode, warmUp, failed } = summary.calls
    const issues = summary.issues.reduce((sum, { count }) => sum + count, 0)
    const facts = {
      format: summary.format,
      ...summary.attributes,
      warmup_calls: warmUp.calls,
      prefill_calls: prefill.calls,
      prefill_tokens: prefill.tokens,
      decode_calls: decode.calls,
      ...(failed.calls > 0 && { failed_calls: failed.calls }),
      operators: summary.operators,
      workers: summary.workers,
      issues,
      ...(summary.leftOut.length > 0 && { not_drawn: listOf(summary.leftOut) }),
      ...clockFacts(summary),
    }
    for (const [key, value] of Object.entries(facts)) attributes[prefix + key] = value
  })
  return attributes
}

/** `1203 tracing_mark_write, 96 cpu_frequency`; of very many, those that are most. */
function listOf(leftOut: Summary['leftOut']): string {
  const most = leftOut.slice(0, LEFT_OUT_LISTED_MAX).map(({ what, count }) => `${count} ${what}`)
  const rest = leftOut.length - most.length
  return [...most, ...(rest > 0 ? [`${rest} more kinds`] : [])].join(', ')
}

function clockFacts({ relation, clock }: Summary): Record<string, string | number> {
  if (!relation) return {}
  const { how, offsetNs, boundNs } = relation
  return {
    clock,
    clock_relation: how,
    clock_offset_ns: String(offsetNs),
    ...(boundNs === undefined ? {} : { clock_error_ns: boundNs }),
  }
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
