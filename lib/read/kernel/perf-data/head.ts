import { FormatError, isFormatError } from '../../../errors.ts'
import type { ByteRanges } from '../../../input/byte-ranges.ts'
import { END_OF_INPUT, type FieldReader, fieldsIn, fieldsOf, type ReadAt, viewOf } from '../../../input/field-reader.ts'
import type { Clock } from '../../../model/events.ts'
import { CPU_MAX } from '../../../model/limits.ts'
import { readTables } from '../tracepoints/event-formats.ts'
import { clockOf, type PerfAttr, parseAttr } from './attr.ts'

/** The contents of a recording except its records. */
export interface PerfFacts {
  /** The recorded events. */
  readonly attrs: { readonly attr: PerfAttr; readonly ids: readonly number[] }[]
  readonly formats: string[]
  readonly attributes: Record<string, string | number>
  clocks: { readonly clock: Clock; readonly ns: bigint }[]
  /** Names of the recorded events, in their order; empty where the file does not contain them. */
  names: readonly string[]
  /** NUMA node by CPU. */
  readonly nodeOf: Map<number, number>
  /** Why some of it is missing. */
  cut: FormatError | undefined
}

/** Place of the records in the file. */
export interface PerfData {
  readonly offset: number
  readonly bytes: number
}

const Feature = { tracingData: 1, osRelease: 4, version: 5, cpus: 7, eventNames: 12, nodes: 14, clockData: 29 } as const
const FEATURES_MAX = 256
const ATTR_BYTES_MIN = 64
const ATTR_BYTES_MAX = 4096
const ATTRS_MAX = 1 << 16

/** No facts yet. */
export const noFacts = (): PerfFacts => {
  return { attrs: [], formats: [], attributes: {}, clocks: [], names: [], nodeOf: new Map(), cut: undefined }
}

/**
 * Reads the header of a perf.data file, and the features after its records. Throws FormatError where that is impossible.
 * Returns undefined for a pipe's header, which has no contents.
 */
export async function readPerfHead(
  ranges: ByteRanges,
  format: string,
  facts: PerfFacts,
): Promise<PerfData | undefined> {
  const readAt = fieldsIn(ranges, format)
  return readAt(0, async (from) => {
    const magic = await from.text(8, 'the magic')
    if (magic !== 'PERFILE2') {
      const hint = 'convert it where it was recorded: `perf script --ns -F comm,pid,tid,cpu,time,event,trace`'
      from.fail('"PERFILE2"', JSON.stringify(magic), hint)
    }
    const headBytes = await from.u64('the size of the head')
    if (headBytes === PIPE_HEAD_BYTES) return undefined
    const attrBytes = await from.u64('the size of an event')
    const attrs = await section(from)
    const data = await section(from)
    await section(from)
    const bits = await from.bytes(FEATURES_MAX / 8, 'the features')
    await readAttrs(readAt, attrs, attrBytes, facts)
    if (data.bytes === 0) {
      facts.cut = new FormatError(format, { byte: DATA_SIZE_AT }, 'records', 'none', KILLED)
      if (!needsNoFeatures(facts) || !(await readAt(data.offset, (there) => there.has(1)))) throw facts.cut
      return { offset: data.offset, bytes: Infinity }
    }
    await readFeatures(readAt, data.offset + data.bytes, bits, facts).catch((error) => orCut(error, facts))
    return data
  })
}

/** Place of the size of the records, which perf writes last. */
const DATA_SIZE_AT = 48
const KILLED = 'perf was killed before it had written the file; let it end by Ctrl-C, or use a pipe'

/** A pipe's header: magic and its size. */
export const PIPE_HEAD_BYTES = 16

async function section(from: FieldReader): Promise<PerfData> {
  return { offset: await from.u64("a part's place"), bytes: await from.u64("a part's size") }
}

/** Records of switches and samples of addresses can be read without the features after the records; tracepoints cannot. */
const needsNoFeatures = ({ attrs }: PerfFacts): boolean =>
  attrs.some(({ attr }) => attr.recordsSwitches || attr.accesses !== undefined)

function orCut(error: unknown, facts: PerfFacts): void {
  if (!isFormatError(error) || !error.found.startsWith(END_OF_INPUT)) throw error
  facts.cut = error
  if (needsNoFeatures(facts)) return
  const hint =
    'the file was cut: perf writes the formats of tracepoints after its records; the output of a pipe ' +
    '(`perf record -o -`) can be read up to the cut'
  const { at, expected, found } = error
  throw new FormatError(error.format, at, expected, found, hint)
}

function readAttrs(readAt: ReadAt, { offset, bytes }: PerfData, each: number, facts: PerfFacts): Promise<void> {
  return readAt(offset, async (from) => {
    const size = each - 16
    if (size < ATTR_BYTES_MIN || each > ATTR_BYTES_MAX) from.fail('events of 80 to 4096 bytes', `${each}`)
    if (bytes / each > ATTRS_MAX) from.fail(`at most ${ATTRS_MAX} events`, `${bytes / each}`)
    for (let i = 0; i < Math.floor(bytes / each); i++) {
      const attr = parseAttr(viewOf(await from.bytes(size, 'an event')), 0, size)
      const place = await section(from)
      const ids = await readAt(place.offset, (there) => there.bytes(place.bytes, 'ids of an event'))
      facts.attrs.push({ attr, ids: idsIn(ids) })
    }
  })
}

function idsIn(bytes: Uint8Array): number[] {
  const view = viewOf(bytes)
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, i) => view.getUint32(8 * i, true))
}

function readFeatures(readAt: ReadAt, offset: number, bits: Uint8Array, facts: PerfFacts): Promise<void> {
  return readAt(offset, async (table) => {
    for (let feature = 0; feature < FEATURES_MAX; feature++) {
      if ((bits[feature >> 3]! & (1 << (feature & 7))) === 0) continue
      const place = await section(table)
      await readAt(place.offset, (from) => readFeature(from, feature, place.bytes, facts))
    }
  })
}

/** Reads one feature; ignores those that are not needed. */
async function readFeature(from: FieldReader, feature: number, bytes: number, facts: PerfFacts): Promise<void> {
  if (feature === Feature.tracingData) return readTracingData(from, facts)
  if (feature === Feature.osRelease) facts.attributes['kernel_release'] = await readString(from)
  else if (feature === Feature.version) facts.attributes['perf_version'] = await readString(from)
  else if (feature === Feature.cpus) {
    await from.u32('the number of CPUs')
    facts.attributes['cpus'] = await from.u32('the number of CPUs that are online')
  } else if (feature === Feature.eventNames) facts.names = await readEventNames(from)
  else if (feature === Feature.nodes) await readNodes(from, facts)
  else if (feature === Feature.clockData && bytes >= CLOCK_DATA_BYTES) {
    const view = viewOf(await from.bytes(CLOCK_DATA_BYTES, 'the clocks'))
    const clock = clockOf(view.getInt32(4, true))
    if (clock === undefined || clock === 'REALTIME') return
    facts.clocks = [
      { clock, ns: view.getBigUint64(16, true) },
      { clock: 'REALTIME', ns: view.getBigUint64(8, true) },
    ]
  }
}

/** u32 number of events, u32 size of a description; of each: description, u32 number of ids, name, ids. */
async function readEventNames(from: FieldReader): Promise<string[]> {
  const count = await from.u32('the number of events')
  const size = await from.u32('the size of an event')
  const names: string[] = []
  if (count > ATTRS_MAX || size > ATTR_BYTES_MAX) return names
  for (let i = 0; i < count; i++) {
    await from.skip(size)
    const ids = await from.u32('the number of ids')
    names.push(await readString(from))
    await from.skip(8 * ids)
  }
  return names
}

/** u32 number of nodes; of each: u32 node, u64 bytes of its memory, u64 bytes that are free, its CPUs as a text. */
async function readNodes(from: FieldReader, { nodeOf }: PerfFacts): Promise<void> {
  const count = await from.u32('the number of NUMA nodes')
  let cpus = 0
  for (let i = 0; i < Math.min(count, NODES_MAX); i++) {
    const node = await from.u32('a NUMA node')
    await from.skip(16)
    for (const range of (await readString(from)).split(',')) {
      const [first = Number.NaN, last = first] = range.split('-').map(Number)
      for (let cpu = first; cpu <= last && cpus < CPU_MAX; cpu++, cpus++) nodeOf.set(cpu, node)
    }
  }
}

/** The kernel's own limit is 1024 (NODES_SHIFT). */
const NODES_MAX = 1024

/** u32 version, u32 clock id, u64 wall clock, u64 that clock. */
const CLOCK_DATA_BYTES = 24

async function readString(from: FieldReader): Promise<string> {
  const length = await from.u32('the length of a text')
  const text = await from.text(Math.min(length, 4096), 'a text')
  return text.replace(/\0.*$/s, '')
}

/** Reads `perf record`'s copy of tracefs, which begins like a trace.dat of another version. */
async function readTracingData(from: FieldReader, { formats }: PerfFacts): Promise<void> {
  await from.skip(TRACING_MAGIC_BYTES)
  await from.textZ('the version of the event formats', 16)
  await from.skip(2)
  await from.u32('the size of a page')
  await readTables(from, { formats, headerPage: undefined })
}

const TRACING_MAGIC_BYTES = 10

/** Reads a record of a pipe that is part of the header in a file: an event, a feature, the event formats. */
export async function readPipeFact(
  type: 'attr' | 'feature' | 'formats',
  bytes: Uint8Array,
  format: string,
  facts: PerfFacts,
): Promise<void> {
  const view = viewOf(bytes)
  if (type === 'attr') {
    const size = bytes.length >= 8 ? view.getUint32(4, true) : 0
    if (size < ATTR_BYTES_MIN || size > bytes.length) return
    facts.attrs.push({ attr: parseAttr(view, 0, size), ids: idsIn(bytes.subarray(size)) })
    return
  }
  const from = fieldsOf(bytes, format)
  if (type === 'formats') return readTracingData(from, facts)
  await readFeature(from, await from.u64('a feature'), bytes.length - 8, facts)
}
