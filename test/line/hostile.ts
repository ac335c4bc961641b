import { readFileSync } from 'node:fs'
import protobuf from 'protobufjs'
import { type ConvertOptions, convert, type Summary } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { differences, rowsOf } from './comparer.ts'
import { expectedOfAll } from './expected.ts'
import { cut, joined, randomOf } from './support.ts'

/** What tests with damaged logs share: a try, and a look at the trace that came of it with a decoder of another make. */

/** A damaged log ends in a trace, or in a message for a person. */
export type Outcome =
  | { readonly trace: Uint8Array; readonly summary: Summary }
  | { readonly trace?: undefined; readonly refusal: string }

/** Longer than any small log may take, in ms: of time, then (where others had the processor) of the processor alone. */
const CASE_MS_MAX = 3000

/** What the conversion of a log takes, in ms of a processor. */
async function processorMsOf(bytes: Uint8Array, options: ConvertOptions = {}): Promise<number> {
  const before = process.cpuUsage()
  await tryToConvert(bytes, 'intact', options)
  return process.cpuUsage(before).user / 1000
}

/**
 * Converts a damaged log. Anything but a sound trace or a proper refusal is an error that names `what` was done. `intact`: a log that is not small;
 * a damaged one may take a few times as long.
 */
export async function attempt(
  bytes: Uint8Array,
  what: string,
  options: ConvertOptions = {},
  intact?: () => Uint8Array,
): Promise<Outcome> {
  const started = performance.now()
  const outcome = await tryToConvert(bytes, what, options)
  if (performance.now() - started > CASE_MS_MAX) {
    const most = Math.max(CASE_MS_MAX, intact ? 4 * (await processorMsOf(intact(), options)) : 0)
    const took = await processorMsOf(bytes, options)
    if (took > most) throw new Error(`${what}: took ${took} ms of a processor`)
  }
  const faults = outcome.trace ? faultsOf(outcome.trace, outcome.summary) : faultsOfMessage(outcome.refusal)
  if (faults.length > 0) throw new Error(`${what}: ${faults.slice(0, 5).join('; ')}`)
  return outcome
}

async function tryToConvert(bytes: Uint8Array, what: string, options: ConvertOptions): Promise<Outcome> {
  const pieces: Uint8Array[] = []
  const conversion = convert({ name: 'log', source: bytes }, options)
  try {
    let next = await conversion.next()
    for (; !next.done; next = await conversion.next()) pieces.push(next.value)
    return { trace: Buffer.concat(pieces), summary: next.value[0]! }
  } catch (error) {
    const { name, message, stack } = error as Error
    if (name !== 'FormatError' && name !== 'UsageError') throw new Error(`${what}: ${stack}`, { cause: error })
    return { refusal: message }
  }
}

/** Fails unless the log gives the same when it comes in pieces of `size` bytes. */
export async function sameInPieces(bytes: Uint8Array, size: number, whole: Outcome, what: string): Promise<void> {
  let found: string | Buffer
  try {
    const pieces: Uint8Array[] = []
    for await (const piece of convert({ name: 'log', source: cut(bytes, size) })) pieces.push(piece)
    found = Buffer.concat(pieces)
  } catch (error) {
    found = (error as Error).message
  }
  const same = whole.trace ? typeof found !== 'string' && found.equals(whole.trace) : found === whole.refusal
  if (!same) throw new Error(`${what}: in pieces of ${size} bytes it gives something else`)
}

/** Tries a log that is cut at a place, or has eight bytes changed from there on, `count` times by turns; some of them in pieces, too. */
export async function tryDamaged(name: string, bytes: Uint8Array, seed: number, count: number): Promise<void> {
  const random = randomOf(seed)
  for (let i = 0; i < count; i++) {
    const at = Math.floor(random() * bytes.length)
    const damaged = bytes.slice(0, i % 2 === 0 ? at : undefined)
    if (i % 2 === 1) for (let j = 0; j < 8; j++) damaged[(at + j * 97) % damaged.length] = Math.floor(random() * 256)
    const what = `${name}, ${i % 2 === 0 ? 'cut' : 'changed'} at ${at}`
    const outcome = await attempt(damaged, what)
    if (i % 10 === 0) await sameInPieces(damaged, 1 + Math.floor(random() * 900), outcome, what)
  }
}

/** A message is a few lines of text, a list of formats at most, and shows neither stack nor raw bytes. */
function faultsOfMessage(message: string): string[] {
  const faults: string[] = []
  if (message.split('\n').length > 64) faults.push('a message of many lines')
  if (/\n\s+at |undefined|\[object|NaN/.test(message)) faults.push(`a message with innards: ${message}`)
  if (message.length > 6000) faults.push('a message without end')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what should not be there
  if (/[\0-\x09\x0b-\x1f]/.test(message)) faults.push(`control characters in a message: ${JSON.stringify(message)}`)
  return faults
}

const proto = readFileSync(new URL('../../proto/perfetto.proto', import.meta.url), 'utf8')
// Ids are small; as 32-bit numbers they are decoded without objects. Times, which are not looked at, get cut.
const narrow = proto.replace(/\bu?int64\b/g, 'uint32')
const Trace = protobuf.parse(narrow, { keepCase: true }).root.lookupType('Trace')

interface Entry {
  readonly iid: number
  readonly name?: string
}
interface Annotation {
  readonly name_iid: number
  readonly string_value_iid?: number
}
interface Packet {
  readonly trusted_packet_sequence_id: number
  readonly sequence_flags: number
  readonly track_descriptor?: {
    readonly uuid: number
    readonly parent_uuid: number
    readonly name: string
    description: string
    /** Who a thread or process of the system is: that is no track of ours. */
    readonly thread?: object | null
    readonly process?: object | null
  }
  readonly trace_packet_defaults?: { readonly track_event_defaults?: { readonly track_uuid: number } | null }
  readonly interned_data?: Readonly<Record<string, readonly Entry[]>>
  readonly track_event?: {
    readonly type: number
    readonly category_iids: readonly number[]
    readonly name_iid: number
    readonly name: string
    readonly debug_annotations: readonly Annotation[]
    readonly double_counter_value: number
    /** An end of an arrow, which is nothing else. */
    readonly legacy_event: { readonly phase: number; readonly unscoped_id: number } | null
  }
}

/** Phases of the ends of an arrow: `s` and `f`. */
const ARROW_PHASES = [115, 102]

const INTERNED = [
  'event_categories',
  'event_names',
  'debug_annotation_names',
  'debug_annotation_string_values',
] as const
type Interned = (typeof INTERNED)[number]

interface Sequence {
  readonly known: Readonly<Record<Interned, Set<number>>>
  depth: number
}

/** What is wrong with a trace's packets: ends and begins out of balance, references to what was not told. */
export function faultsOf(trace: Uint8Array, summary?: Summary): string[] {
  const faults: string[] = []
  const tracks = new Set<number>([0])
  const sequences = new Map<number, Sequence>()
  const issueIids = new Set<number>()
  let instants = 0
  for (const packet of (Trace.decode(trace) as unknown as { packet: Packet[] }).packet) {
    const { track_descriptor: track, track_event: event } = packet
    if (track) {
      const isOfSystem = Boolean(track.thread ?? track.process)
      if (!isOfSystem && (!track.name || !track.description)) faults.push('a track without name or description')
      if (!tracks.has(track.parent_uuid)) faults.push(`track ${track.name} below an unknown one`)
      tracks.add(track.uuid)
    }
    for (const { iid, name } of packet.interned_data?.['event_categories'] ?? [])
      if (name === 'issue') issueIids.add(iid)
    const sequence = sequenceOf(packet, sequences, tracks, faults)
    if (!event) continue
    if (!sequence) faults.push('an event on a sequence that was not begun')
    else checkEvent(event, sequence, faults)
    if (event.type === 3 && issueIids.has(event.category_iids[0]!)) instants++
  }
  for (const [id, { depth }] of sequences) if (depth !== 0) faults.push(`sequence ${id} ends at depth ${depth}`)
  const issues = summary?.issues.reduce((sum, { count }) => sum + count, 0) ?? instants
  if (instants !== Math.min(issues, 1001)) faults.push(`${issues} issues, but ${instants} in the trace`)
  return faults
}

function sequenceOf(
  packet: Packet,
  sequences: Map<number, Sequence>,
  tracks: ReadonlySet<number>,
  faults: string[],
): Sequence | undefined {
  const id = packet.trusted_packet_sequence_id
  if (packet.sequence_flags === 1) {
    const track = packet.trace_packet_defaults?.track_event_defaults?.track_uuid
    // GPU work, which is on no track of ours, has a sequence without one.
    if (track !== undefined && !tracks.has(track)) faults.push(`sequence ${id} is for a track that was not told`)
    if (sequences.has(id)) faults.push(`sequence ${id} begins twice`)
    const known = Object.fromEntries(INTERNED.map((kind) => [kind, new Set<number>()])) as Sequence['known']
    sequences.set(id, { known, depth: 0 })
  }
  const sequence = sequences.get(id)
  for (const kind of packet.interned_data && sequence ? INTERNED : []) {
    for (const { iid } of packet.interned_data![kind]!) sequence!.known[kind].add(iid)
  }
  return sequence
}

function checkEvent(event: NonNullable<Packet['track_event']>, sequence: Sequence, faults: string[]): void {
  const { known } = sequence
  const { type, debug_annotations: args } = event
  if (type === 2) {
    if (sequence.depth-- <= 0) faults.push('an end without a begin')
    return
  }
  if (type === 4) {
    if (!Number.isFinite(event.double_counter_value)) faults.push('a counter that is no number')
    return
  }
  if (event.legacy_event) {
    const { phase, unscoped_id: id } = event.legacy_event
    if (type !== 0 || !ARROW_PHASES.includes(phase) || !(id > 0)) faults.push(`an arrow's end of phase ${phase}`)
    return
  }
  if (type !== 1 && type !== 3) faults.push(`an event of type ${type}`)
  if (type === 1) sequence.depth++
  const categories = event.category_iids // events of Chrome JSON may have none
  if (categories.length > 1 || categories.some((iid) => !known.event_categories.has(iid))) faults.push('no category')
  if (!event.name && !known.event_names.has(event.name_iid)) faults.push('a slice without a name')
  for (const { name_iid: key, string_value_iid: text } of args) {
    if (!known.debug_annotation_names.has(key)) faults.push('an argument without a key')
    const iid = text ?? 0
    if (iid !== 0 && !known.debug_annotation_string_values.has(iid)) faults.push('an argument without its text')
  }
}

/** What trace_processor finds wrong with a trace, and slices that cannot be: most logs have none within others. */
export async function importFaults(trace: Uint8Array, isNested = false): Promise<string[]> {
  const open = await openTrace(trace)
  try {
    return importFaultsOf(open, isNested)
  } finally {
    open.close()
  }
}

function importFaultsOf(open: OpenTrace, isNested = false): string[] {
  const { rows } = open.query(`SELECT count(*) FROM slice WHERE dur < 0 OR ts < 0 OR ${isNested ? 0 : 'depth > 0'}`)
  const impossible = rows[0]![0] === 0 ? [] : [`${rows[0]![0]} slices that cannot be`]
  return [...impossible, ...open.problems().map(({ name, value }) => `${name}: ${value}`)]
}

/** Fails unless the trace of some logs, of one clock, contains exactly what the reader yields, and loads without complaint. */
export async function expectFaithful(logs: readonly Uint8Array[], from?: string): Promise<void> {
  const options = { detail: 'full', ...(from !== undefined && { from }) } as const
  const inputs = logs.map((source, i) => ({ name: `log ${i}`, source }))
  const open = await openTrace(await joined(convert(inputs, options)))
  try {
    const faults = [...importFaultsOf(open), ...differences(await expectedOfAll(logs, options), rowsOf(open))]
    if (faults.length > 0) throw new Error(`the trace is not what was read:\n${faults.slice(0, 5).join('\n')}`)
  } finally {
    open.close()
  }
}

/** Every n-th of some things, at most `most` of them. */
export const spread = <T>(all: readonly T[], most: number): T[] => {
  const step = Math.max(1, all.length / most)
  return Array.from({ length: Math.min(most, all.length) }, (_, i) => all[Math.floor(i * step)]!)
}
