import { checkNames, FormatError, isFormatError, UsageError } from '../errors.ts'
import { EVENTS_OF_OPTIONS } from '../generated/option-names.ts'
import { type ByteSource, besideOf, chunksOf, rangeOf } from '../input/byte-source.ts'
import { peek } from '../input/gunzip.ts'
import { Replay } from '../input/replay.ts'
import { PACKING_BYTES, type Packing, packingOf, unpack } from '../input/unpack.ts'
import { type Damage, Unpacked } from '../input/unpacked.ts'
import type { Definitions } from '../model/definitions.ts'
import { firstTimeOf, type InputEvent, lastTimeOf, type TraceEvent } from '../model/events.ts'
import { issueOf } from '../model/issues.ts'
import { PERFETTO_READS_IT } from '../model/left-out.ts'
import type { Names } from '../model/names.ts'
import { OP_TABLES, type OpTable } from '../model/op-tables.ts'
import { plural } from '../model/units.ts'
import { formatOf } from '../read/detect.ts'
import { type Format, HEAD_BYTES } from '../read/format.ts'
import { CallEndStage } from './call-ends.ts'
import { EventBounds } from './event-bounds.ts'
import type { EventCheck } from './event-check.ts'
import type { OnProgress, ProgressCount } from './progress.ts'
import { RequestStage } from './requests.ts'
import { inTurns, Turns, untilAborted } from './turns.ts'

/** A log, or events that a program creates. */
export type Input = LogInput | EventInput

/** A log: its bytes, and its name in error messages. */
export interface LogInput {
  readonly name: string
  readonly source: ByteSource
}

/**
 * Events that a program creates, or reads from a log by {@link eventsOf} and changes. Batches have any size; the first event is
 * the {@link InputEvent}. `names` interns the texts of events.
 */
export interface EventInput {
  readonly name: string
  events(names: Names): Iterable<TraceEvent[]> | AsyncIterable<TraceEvent[]>
}

/** How inputs are read. */
export interface InputOptions {
  /** Name of the input's format; by default detected. */
  readonly from?: string | undefined
  /** Custom formats: tried before the known ones; `from` may name them. */
  readonly formats?: readonly Format[] | undefined
  /** Op names by number: the name of a known table, or a list. By default inferred. */
  readonly opTable?: string | readonly string[] | undefined
  /** Also read the calls of operating system libraries that a profiler recorded. */
  readonly osRuntime?: boolean | undefined
  /** Stops: what runs throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Called as bytes are read. */
  readonly onProgress?: OnProgress | undefined
  /**
   * Check the events of programs: kinds, types of fields, and what they refer to; wrong ones are a UsageError. By default those of inputs with
   * `events` and of custom formats, unless `NODE_ENV` is `production`. `true`: those of all inputs.
   */
  readonly checkEvents?: boolean | undefined
}

/** How inputs are read, and whether an issue is an error. */
export type ReadingOptions = InputOptions & {
  readonly strict?: boolean | undefined
  /** Also read the arguments that profilers use only internally. */
  readonly everything?: boolean | undefined
}

/** The same, with what the functions that take them add. */
export interface Reading extends ReadingOptions {
  /** Counts for {@link InputOptions.onProgress}. */
  readonly progress?: ProgressCount | undefined
  /** Those of `formats` that are no custom ones. */
  readonly known?: readonly Format[] | undefined
}

/** An opened input. It must be read once, or closed. */
export interface OpenInput {
  readonly name: string
  /** As the caller gave it. */
  readonly given: Input
  /** Does it complete a log? See {@link Format.isCompanion}. */
  readonly isCompanion: boolean
  /** Its events; `definitions` are those of its companions. */
  read(definitions?: Definitions): AsyncIterable<TraceEvent[]>
  /** Closes an input that is not read. */
  close(): Promise<void>
}

/** An input whose first events are known. */
export interface BegunInput {
  readonly name: string
  readonly first: InputEvent
  /** Is it a recording of the scheduler? Its capabilities or its first event that is not about the input itself decide. */
  readonly isOfScheduler: boolean
  /** Does it contain switches of CPUs? Some recordings of the scheduler contain only states of threads. */
  readonly hasSwitches: boolean
  /** Do its first events contain GPU work, or processes, which Perfetto's UI draws in groups of its own? */
  readonly hasGroups: boolean
  /** Do its first events contain readings of several clocks? */
  readonly hasReadings: boolean
  /** Do its first events contain messages from clients, which its process serves? */
  readonly isServer: boolean
  /** Events may be this long before its origin, in ns. */
  readonly leadNs: number
  /** All events; readable once. */
  readonly batches: Replay<TraceEvent[]>
}

/** An input that is no companion. */
export type Log = BegunInput & { readonly input: OpenInput }

/** Kinds of events about the input itself. */
const COMMON: ReadonlySet<string> = new Set(['input', 'facts', 'clocks', 'issue', 'left-out'])
const OF_GPU: ReadonlySet<string> = new Set(['gpu', 'gpu-sync', 'api'])
const OF_SCHEDULER: ReadonlySet<string> = new Set(['switch', 'waking', 'thread', 'access', 'mapping'])
/** Allocations before a recording began, or unsorted rows, may be this long before the first events. */
const LEAD_NS = 10e9
/** The same for inputs without an order of time, such as one CPU after the other. The largest lead of all: one day. */
const LEAD_NS_MAX = 86_400e9
/** Batches that are read at most to find out whether an input is a recording of the scheduler. */
const BEGINNING_MAX = 16

/** Reads an input until its first events show whether it is a recording of the scheduler. */
export async function begin(name: string, events: AsyncIterable<TraceEvent[]>): Promise<BegunInput> {
  const batches = new Replay(events)
  const kinds = new Set<TraceEvent['kind']>()
  let first: InputEvent | undefined
  let seen = 0
  let earliestNs = 0
  let hasReadings = false
  let isServer = false
  let hasGroups = false
  let isKnown = false
  await batches.look((batch) => {
    first ??= batch[0] as InputEvent
    hasGroups ||= batch.some((event) => OF_GPU.has(event.kind) || (event.kind === 'own-track' && !!event.ofProcess))
    if (isKnown) return ++seen === BEGINNING_MAX || hasGroups
    for (const event of batch) {
      isServer ||= event.kind === 'rpc' && event.side === 'server'
      if (!COMMON.has(event.kind)) kinds.add(event.kind)
      hasReadings ||= event.kind === 'clocks'
      earliestNs = Math.min(earliestNs, firstTimeOf(event) ?? 0)
    }
    isKnown = [...kinds].some((kind) => kind !== 'thread')
    // Recordings of GPUs begin with calls that load weights.
    return ++seen === BEGINNING_MAX || (isKnown && (hasGroups || OF_SCHEDULER.has([...kinds][0]!)))
  })
  const [kind] = kinds
  const isOfScheduler = first!.capabilities?.scheduler ?? (kind !== undefined && OF_SCHEDULER.has(kind))
  const hasSwitches = isOfScheduler && !kinds.has('state') && first!.capabilities?.switches !== false
  const isOrdered = !isOfScheduler && first!.capabilities?.order !== false
  const leadNs = isOrdered ? Math.min(LEAD_NS - earliestNs, LEAD_NS_MAX) : LEAD_NS_MAX
  return { name, first: first!, isOfScheduler, hasSwitches, hasReadings, isServer, hasGroups, leadNs, batches }
}

/** How long before the trace's origin, the first log's, events may be. Others may begin earlier than it. */
export const leadOf = (logs: readonly Log[]): number => (logs.length === 1 ? logs[0]!.leadNs : LEAD_NS_MAX)

/** Opens inputs and detects their formats. Throws UsageError for an unknown format. */
export async function openInputs(inputs: readonly Input[], names: Names, options: Reading): Promise<OpenInput[]> {
  const opened: OpenInput[] = []
  try {
    for (const input of inputs) opened.push(await openInput(input, names, options))
    return opened
  } catch (error) {
    await closeAll(opened)
    throw error
  }
}

/** Closes the inputs that were not read. */
export async function closeAll(inputs: readonly OpenInput[]): Promise<void> {
  for (const input of inputs) await input.close()
}

/** Reads an input's events; `names` interns their texts, `definitions` are those of its companions. Throws as `convert` does. */
export async function* eventsOf(
  input: Input,
  names: Names,
  options: ReadingOptions = {},
  definitions?: Definitions,
): AsyncGenerator<TraceEvent[], void> {
  checkNames('eventsOf', options, [...EVENTS_OF_OPTIONS, 'known'])
  yield* readEvents(input, names, options, definitions)
}

/** As {@link eventsOf}, for functions that have other options, too. */
export async function* readEvents(
  input: Input,
  names: Names,
  options: Reading,
  definitions?: Definitions,
): AsyncGenerator<TraceEvent[], void> {
  const { read } = await openInput(input, names, options)
  yield* read(definitions)
}

async function openInput(input: Input, names: Names, options: Reading): Promise<OpenInput> {
  if (!('events' in input)) return openLog(input, names, options)
  const about = { name: input.name, given: input, isCompanion: false, check: await checkOf(input.name, options) }
  return opened(about, () => input.events(names), names, options)
}

/** What checks the events of an input, if they are a program's; it is loaded then. */
async function checkOf(
  input: string,
  { checkEvents, known }: Reading,
  format?: Format,
): Promise<EventCheck | undefined> {
  const areOurs = format !== undefined && (known?.includes(format) ?? true)
  if (!(checkEvents ?? (!areOurs && isDevelopment()))) return undefined
  return new (await import('./event-check.ts')).EventCheck(input)
}

declare const process: { readonly env: { readonly NODE_ENV?: string } }

/** Not in production: `NODE_ENV` is Node's, and what bundlers put in its place. */
function isDevelopment(): boolean {
  try {
    return process.env.NODE_ENV !== 'production'
  } catch {
    return true // neither
  }
}

/** An input whose events are those of `events`; `close` also closes what {@link OpenInput.read} did not read. */
function opened(
  { check, ...about }: Omit<OpenInput, 'read' | 'close'> & { readonly check: EventCheck | undefined },
  events: (definitions?: Definitions) => Iterable<TraceEvent[]> | AsyncIterable<TraceEvent[]>,
  names: Names,
  options: Reading,
  close?: () => Promise<unknown>,
): OpenInput {
  let reading: ReturnType<typeof profiled> | undefined
  return {
    ...about,
    read(definitions) {
      reading = profiled(checked(events(definitions), about.name, names, { ...options, check }), definitions)
      return reading
    },
    async close() {
      await reading?.return() // a reader may have opened the file once more
      await close?.()
    },
  }
}

/** The events, kernels with what a companion contains of them. */
async function* profiled(
  batches: AsyncGenerator<TraceEvent[], void>,
  definitions: Definitions | undefined,
): AsyncGenerator<TraceEvent[], void> {
  if (!definitions || definitions.profiles.length === 0) return yield* batches
  const { ProfileStage } = await import('./kernel-profiles.ts')
  const stage = new ProfileStage(definitions.profiles, definitions.names)
  for await (const batch of batches) yield stage.take(batch)
  const unfound = stage.finish()
  if (unfound.length > 0) yield unfound
}

/** Sections of a page of systrace that are not of the trace that is read. */
const OTHER_SECTIONS = { kind: 'left-out', what: 'other sections of the page', hint: PERFETTO_READS_IT } as const

/** Opens a log of any known format, packed or not. */
async function openLog(given: LogInput, names: Names, options: Reading): Promise<OpenInput> {
  const { name, source } = given
  const { from, formats, osRuntime, everything } = options
  const opTable = options.opTable === undefined ? undefined : findOpTable(options.opTable)
  const { signal, progress } = options
  const read = untilAborted(chunksOf(source, name), signal, (bytes) => progress?.add(bytes))
  const stored = await peek(read, PACKING_BYTES)
  const packing = packingOf(stored.head)
  const found = new Unpacked()
  const plain = unpack(stored.rest, found)
  const { head, rest } = await peek(inTurns(plain, signal), HEAD_BYTES)
  const whole = rangeOf(source)
  const again = whole && packing ? () => unpack(whole(0, Number.MAX_SAFE_INTEGER)) : undefined
  const places = packing ? { again } : { range: whole, beside: whole && besideOf(source) }
  const context = { names, opTable, osRuntime, everything, ...places }
  try {
    const format = formatOf(head, { from, formats, input: name, file: found.file })
    async function* eventsIn(definitions?: Definitions): AsyncGenerator<TraceEvent[], void> {
      let lastNs = 0
      try {
        for await (const batch of format.read(rest, { ...context, definitions })) {
          // The time of an issue is the last one that its reader knew.
          const last = batch.findLast((event) => event.kind !== 'issue' && lastTimeOf(event) !== undefined)
          if (last) lastNs = Math.max(lastNs, lastTimeOf(last)!)
          yield batch
        }
        yield* unpackedEvents(found, packing, lastNs)
      } finally {
        await rest.return()
      }
    }
    const about = { name, given, isCompanion: format.isCompanion === true, check: await checkOf(name, options, format) }
    return opened(about, eventsIn, names, options, () => rest.return())
  } catch (error) {
    await rest.return()
    throw found.broken && packing ? brokenPacking(packing, found.broken, name) : error
  }
}

/** What was found while an input was unpacked. */
function* unpackedEvents(
  { broken, file, otherFiles, otherSections }: Unpacked,
  packing: Packing | undefined,
  lastNs: number,
): Generator<TraceEvent[]> {
  if (otherSections > 0) yield [{ ...OTHER_SECTIONS, count: otherSections }]
  if (otherFiles > 0) {
    const detail = `${JSON.stringify(file)} is read, ${plural(otherFiles, 'other file')} not`
    yield [issueOf('other-files', detail, { byte: 0 }, lastNs)]
  }
  const code = packing === 'gzip' ? 'broken-gzip' : 'broken-archive'
  if (broken) yield [issueOf(code, broken.detail, { byte: broken.byte }, lastNs)]
}

/** A compressed stream or an archive is broken before enough bytes for detection are decompressed. */
function brokenPacking(packing: Packing, { detail, byte, hint }: Damage, input: string): FormatError {
  const why = hint ?? 'the file was cut or changed after it was compressed'
  return new FormatError(packing, { byte }, 'a log that can be decompressed', detail, why, input)
}

async function* checked(
  batches: Iterable<TraceEvent[]> | AsyncIterable<TraceEvent[]>,
  name: string,
  names: Names,
  { strict, signal, check }: Reading & { readonly check: EventCheck | undefined },
): AsyncGenerator<TraceEvent[], void> {
  try {
    let format: string | undefined
    const turns = new Turns(signal)
    const [bounds, ends, requests] = [new EventBounds(), new CallEndStage(names), new RequestStage()]
    for await (const unchecked of batches) {
      check?.take(unchecked)
      if (unchecked.length === 0) continue
      format ??= formatNamed(unchecked[0]!, name)
      const batch = bounds.check(unchecked)
      if (strict) stopAtIssue(batch, format)
      const known = await requests.take(ends.take(batch))
      if (known.length > 0) yield known // a batch of one call may be held
      if (turns.isDue(unchecked.length)) await turns.take()
    }
    for await (const batch of requests.finish(ends.finish())) {
      yield batch
      if (turns.isDue(batch.length)) await turns.take()
    }
    if (format === undefined) throw new UsageError(`${name}: expected an input event, found no events at all`)
  } catch (error) {
    throw isFormatError(error) && error.input === undefined ? error.inInput(name) : error
  }
}

/** Custom readers and programs may begin with another event. */
function formatNamed(first: TraceEvent, name: string): string {
  if (first.kind === 'input') return first.format
  throw new UsageError(`${name}: expected an event of the kind "input" first, found "${first.kind}"`)
}

function findOpTable(table: string | readonly string[]): OpTable {
  if (typeof table !== 'string') return { name: 'custom', about: 'a custom table', ops: table }
  const known = OP_TABLES.find((candidate) => candidate.name === table)
  if (known) return known
  const list = OP_TABLES.map(({ name, about }) => `  ${name}  ${about}`).join('\n')
  throw new UsageError(`no op table is called "${table}"; known ones:\n${list}`)
}

function stopAtIssue(batch: readonly TraceEvent[], format: string): void {
  for (const event of batch) {
    if (event.kind === 'issue') {
      const hint = `${event.detail}; without strict, reading continues`
      throw new FormatError(format, event.at, 'no issues (strict)', event.title, hint)
    }
  }
}
