import type { ByteRanges } from '../../../input/byte-ranges.ts'
import { type FieldReader, fieldsIn, fieldsOf, type ReadAt, viewOf } from '../../../input/field-reader.ts'
import { type Inflate, inflateZlib, inflateZstd } from '../../../input/inflate.ts'
import { clockNamed } from '../../../model/clock-names.ts'
import type { Clock } from '../../../model/events.ts'
import {
  type FormatTables,
  readFtraceFormats,
  readHeaderTexts,
  readSystemFormats,
  readTables,
} from '../tracepoints/event-formats.ts'

/** A trace.dat without its pages. */
export interface TraceDat extends FormatTables {
  readonly version: number
  /** Decompresses chunks of pages; undefined: pages are not compressed. */
  readonly inflate: Inflate | undefined
  readonly facts: Facts
  /** In the order of the file. */
  readonly buffers: Iterable<TraceBuffer> | AsyncIterable<TraceBuffer>
}

/** Most CPUs of a kernel (CONFIG_NR_CPUS is at most 8192). */
const CPUS_MAX = 8192
const PAGE_BYTES_MAX = 16 << 20
const OPTIONS_MAX = 1 << 16

const COMPRESSIONS: Readonly<Record<string, Inflate | undefined>> = {
  none: undefined,
  zlib: inflateZlib,
  zstd: inflateZstd,
}

const Section = { headers: 16, ftrace: 17, events: 18 } as const

/** Reads the file without its pages. Throws FormatError where that is impossible. */
export async function readHead(ranges: ByteRanges, format: string): Promise<TraceDat> {
  const readAt = fieldsIn(ranges, format)
  return readAt(0, async (from) => {
    await from.skip(MAGIC_BYTES)
    const version = await from.textZ('the version of the file', 16)
    if (version !== '6' && version !== '7') {
      from.fail('version 6 or 7', `"${version}"`, 'record with trace-cmd 2 or 3')
    }
    if ((await from.u8('the byte order')) !== 0) {
      from.fail('a little-endian file', 'a big-endian one', 'give the text of `trace-cmd report -t` instead')
    }
    await from.u8('the size of a long')
    const pageBytes = pageSize(from, await from.u32('the size of a page'))
    return version === '6' ? readHead6(ranges, readAt, from, pageBytes) : readHead7(format, readAt, from)
  })
}

/** 17 08 44 "tracing". */
const MAGIC_BYTES = 10

function pageSize(from: FieldReader, bytes: number): number {
  if (bytes < 64 || bytes > PAGE_BYTES_MAX) from.fail(`pages of 64 bytes to ${PAGE_BYTES_MAX}`, `${bytes}`)
  return bytes
}

/** Version 6 has its parts in order: it can be read from a stream. */
async function readHead6(ranges: ByteRanges, readAt: ReadAt, from: FieldReader, pageBytes: number): Promise<TraceDat> {
  const tables: FormatTables = { formats: [], headerPage: undefined }
  await readTables(from, tables)
  ranges.release(from.offset)
  await from.skip(await from.u32('the size of the kernel symbols'))
  await from.skip(await from.u32('the size of the printk formats'))
  await from.skip(await from.u64('the size of the thread names'))
  ranges.release(from.offset)
  const cpus = await from.u32('the number of CPUs')
  if (cpus > CPUS_MAX) from.fail(`at most ${CPUS_MAX} CPUs`, `${cpus}`)
  const options = new TraceOptions()
  options.cpus = cpus
  let tag = await from.text(10, 'a tag')
  if (tag === 'options  \0') {
    await readOptions6(from, options)
    tag = await from.text(10, 'a tag')
  }
  if (tag !== 'flyrecord\0') {
    const hint = 'record with `trace-cmd record`: latency traces are texts'
    from.fail('"flyrecord"', JSON.stringify(tag.replace(/[^\x20-\x7e]/g, '')), hint)
  }
  const top = await readTable6(from, '', cpus, pageBytes)
  const facts = options.facts(top.clock)
  return { ...tables, version: 6, inflate: undefined, facts, buffers: buffers6(readAt, top, options, cpus) }
}

async function readOptions6(from: FieldReader, options: TraceOptions): Promise<void> {
  for (let i = 0; i < OPTIONS_MAX; i++) {
    const id = await from.u16('an option')
    if (id === 0) return
    options.read(id, await from.bytes(await from.u32('the size of an option'), 'an option'))
  }
  from.fail(`at most ${OPTIONS_MAX} options`, 'more')
}

async function readTable6(from: FieldReader, name: string, count: number, pageBytes: number): Promise<TraceBuffer> {
  const cpus: CpuPages[] = []
  for (let cpu = 0; cpu < count; cpu++) {
    cpus.push({ cpu, offset: await from.u64("a CPU's place"), bytes: await from.u64("the size of a CPU's pages") })
  }
  const length = await from.u64("the size of the clock's name")
  const clock = bare(await from.text(length, "the clock's name"))
  return { name, clock, pageBytes, cpus: inOrder(cpus) }
}

async function* buffers6(
  readAt: ReadAt,
  top: TraceBuffer,
  options: TraceOptions,
  cpus: number,
): AsyncGenerator<TraceBuffer> {
  yield top
  for (const { name, offset } of options.buffers6.sort((a, b) => a.offset - b.offset)) {
    yield await readAt(offset, async (from) => {
      const tag = await from.text(10, 'a tag')
      if (tag !== 'flyrecord\0') from.fail('"flyrecord"', 'something else')
      return readTable6(from, name, cpus, top.pageBytes)
    })
  }
}

/** Version 7 consists of sections; the options, at the file's end, contain their places. */
async function readHead7(format: string, readAt: ReadAt, from: FieldReader): Promise<TraceDat> {
  const compression = await from.textZ('the compression', 64)
  await from.textZ("the compression's version", 64)
  if (!Object.hasOwn(COMPRESSIONS, compression)) {
    const known = Object.keys(COMPRESSIONS).join(', ')
    from.fail(`one of the compressions ${known}`, JSON.stringify(compression), 'record with `--compression none`')
  }
  const inflate = COMPRESSIONS[compression]
  const options = new TraceOptions()
  const sections = new Sections(format, readAt, inflate)
  await sections.readOptions(await from.u64('the place of the options'), options)
  const tables: FormatTables = { formats: [], headerPage: undefined }
  const read = {
    [Section.headers]: readHeaderTexts,
    [Section.ftrace]: readFtraceFormats,
    [Section.events]: readSystemFormats,
  }
  for (const [id, readTable] of Object.entries(read)) {
    const offset = options.sections.get(Number(id))
    if (offset !== undefined) await sections.open(offset, Number(id), (part) => readTable(part, tables))
  }
  const buffers = options.buffers7.map(({ name, clock, pageBytes, cpus }) => {
    return { name, clock: bare(clock), pageBytes: pageSize(from, pageBytes), cpus: inOrder(cpus) }
  })
  const facts = options.facts(buffers[0]?.clock)
  return { ...tables, version: 7, inflate, facts, buffers }
}

/** The sections of version 7: u16 id, u16 flags (1: compressed), u32 name, u64 size, then the bytes. */
class Sections {
  constructor(
    private readonly format: string,
    private readonly readAt: ReadAt,
    private readonly inflate: Inflate | undefined,
  ) {}

  /** Calls `read` with the contents of the section at `offset`. */
  open(offset: number, id: number, read: (part: FieldReader, size: number) => Promise<void>): Promise<void> {
    return this.readAt(offset, async (from) => {
      const found = await from.u16('the id of a section')
      if (found !== id) from.fail(`section ${id}`, `section ${found}`)
      const flags = await from.u16("a section's flags")
      await from.u32("a section's name")
      const size = await from.u64("a section's size")
      if ((flags & 1) === 0) return read(from, size)
      const packed = await from.u32('the compressed size')
      const plain = await from.u32('the decompressed size')
      if (plain > SECTION_BYTES_MAX) from.fail(`at most ${SECTION_BYTES_MAX} bytes in a section`, `${plain}`)
      const bytes = await from.bytes(packed, 'a section')
      const part = await inflated(this.inflate, bytes, plain).catch((error: Error) => {
        return from.fail('a section that can be decompressed', `damage (${error.message})`)
      })
      await read(fieldsOf(part, this.format), plain)
    })
  }

  /** Reads the options, which continue in further sections. */
  async readOptions(first: number, options: TraceOptions): Promise<void> {
    const seen = new Set<number>()
    for (let next = first; next !== 0 && !seen.has(next) && seen.size < OPTIONS_MAX; ) {
      seen.add(next)
      let following = 0
      await this.open(next, 0, async (part, size) => {
        for (const end = part.offset + size; part.offset + 6 <= end; ) {
          const id = await part.u16('an option')
          const bytes = await part.bytes(await part.u32('the size of an option'), 'an option')
          if (id === 0 && bytes.length === 8) following = Number(viewOf(bytes).getBigUint64(0, true))
          if (id === 0) break
          options.read(id, bytes)
        }
      })
      next = following
    }
  }
}

/** The largest sections, texts of formats, have some hundred kilobytes. */
const SECTION_BYTES_MAX = 64 << 20

async function inflated(inflate: Inflate | undefined, bytes: Uint8Array, plain: number): Promise<Uint8Array> {
  if (!inflate) throw new RangeError('the file names no compression')
  const { plain: section, broken } = await inflate(bytes, plain)
  if (broken !== undefined) throw new RangeError(broken)
  return section
}

const inOrder = (cpus: readonly CpuPages[]) => cpus.filter(({ bytes }) => bytes > 0).sort((a, b) => a.offset - b.offset)
/** tracefs prints brackets around the clock that is in use. */
const bare = (clock: string) => (/\[([^[\]]*)\]/.exec(clock)?.[1] ?? clock.replace(/\0.*$/s, '')).trim()

/** Place of the pages of one CPU. */
export interface CpuPages {
  readonly cpu: number
  readonly offset: number
  readonly bytes: number
}

/** A recorded buffer: the top one, or one of `trace-cmd record -B`. */
export interface TraceBuffer {
  /** Empty for the top one. */
  readonly name: string
  /** Its name in tracefs (`mono`, `local`), without brackets. */
  readonly clock: string
  readonly pageBytes: number
  readonly cpus: readonly CpuPages[]
}

/** Facts in the options of a trace.dat. */
export interface Facts {
  readonly clock: Clock | 'unknown'
  readonly attributes: Readonly<Record<string, string | number>>
  /** Thread ids and their processes. */
  readonly tgids: readonly (readonly [tid: number, tgid: number])[]
  /** Add to a time for wall-clock time, in ns; from `trace-cmd record --date`. */
  readonly toRealtimeNs: bigint | undefined
  /** The kernel's counts of lost events, by CPU. */
  readonly losses: readonly string[]
}

/** `tgids`: the processes of threads, only in files of `record --sched`. */
const Option = { date: 1, cpuStat: 2, buffer: 3, uname: 5, cpuCount: 8, version: 9, tgids: 0x4732 } as const
/** Options 16 to 21 contain the place of the section of the same number. */
const SECTION_FIRST = 16
const SECTION_LAST = 21
/** More losses are damage. */
const LOSSES_MAX = 8192

/** Gathers the options of a trace.dat. */
class TraceOptions {
  /** Places of sections by their ids. */
  readonly sections = new Map<number, number>()
  /** Version 6: names and places of the buffers except the top one. */
  readonly buffers6: { readonly name: string; readonly offset: number }[] = []
  readonly buffers7: TraceBuffer[] = []
  cpus: number | undefined
  private readonly losses: string[] = []
  private readonly texts = new Map<number, string>()

  /** Reads one option; ignores those that are not needed. */
  read(id: number, bytes: Uint8Array): void {
    const view = viewOf(bytes)
    if (id >= SECTION_FIRST && id <= SECTION_LAST) {
      if (bytes.length >= 8) this.sections.set(id, Number(view.getBigUint64(0, true)))
    } else if (id === Option.cpuCount) {
      if (bytes.length >= 4) this.cpus = view.getUint32(0, true)
    } else if (id === Option.cpuStat) {
      if (this.losses.length < LOSSES_MAX) this.losses.push(...lossesIn(textOf(bytes, 0)))
    } else if (id === Option.buffer) this.readBuffer(bytes, view)
    else this.texts.set(id, textOf(bytes, 0).trim())
  }

  /** The facts of a trace on `clock`. */
  facts(clock: string | undefined): Facts {
    const attributes: Record<string, string | number> = {}
    const uname = this.texts.get(Option.uname)
    // "Linux <host> <release> <machine>": the host is private.
    const release = uname?.split(' ').at(-2)
    if (release !== undefined) attributes['kernel_release'] = release
    if (this.cpus !== undefined) attributes['cpus'] = this.cpus
    const version = this.texts.get(Option.version)
    if (version !== undefined) attributes['trace_cmd_version'] = version
    if (clock !== undefined) attributes['trace_clock'] = clock
    const date = /^0x([0-9a-f]{1,15})$/i.exec(this.texts.get(Option.date) ?? '')?.[1]
    const toRealtimeNs = date === undefined ? undefined : BigInt(`0x${date}`) * 1000n
    const tgids = (this.texts.get(Option.tgids) ?? '').matchAll(/^(\d{1,10}) (\d{1,10})$/gm)
    return {
      clock: clockNamed(clock ?? '') ?? 'unknown',
      attributes,
      tgids: Array.from(tgids, ([, tid, tgid]) => [Number(tid), Number(tgid)] as const),
      toRealtimeNs,
      losses: this.losses,
    }
  }

  /** u64 place, name; version 7: clock, u32 page size, u32 count, then u32 CPU, u64 place, u64 size of each. */
  private readBuffer(bytes: Uint8Array, view: DataView): void {
    if (bytes.length < 9) return
    const offset = Number(view.getBigUint64(0, true))
    const name = textOf(bytes, 8)
    const clockAt = bytes.indexOf(0, 8) + 1
    const clock = textOf(bytes, clockAt)
    let at = clockAt + clock.length + 1
    if (at + 8 > bytes.length) {
      this.buffers6.push({ name, offset })
      return
    }
    const pageBytes = view.getUint32(at, true)
    const count = view.getUint32(at + 4, true)
    const cpus: CpuPages[] = []
    for (at += 8; cpus.length < count && at + 20 <= bytes.length; at += 20) {
      const [place, size] = [view.getBigUint64(at + 4, true), view.getBigUint64(at + 12, true)]
      cpus.push({ cpu: view.getUint32(at, true), offset: Number(place), bytes: Number(size) })
    }
    this.buffers7.push({ name, clock, pageBytes, cpus })
  }
}

/** "overrun: 5": events that were overwritten or did not fit, from tracefs' per_cpu/cpu<n>/stats. */
function lossesIn(text: string): string[] {
  const cpu = /^CPU: *(\d+)/m.exec(text)?.[1]
  return ['overrun', 'commit overrun', 'dropped events'].flatMap((what) => {
    const count = new RegExp(`^${what}: *(\\d+)`, 'm').exec(text)?.[1]
    return count === undefined || Number(count) === 0 ? [] : [`CPU ${cpu ?? '?'}: ${what}: ${count}`]
  })
}

function textOf(bytes: Uint8Array, start: number): string {
  const end = bytes.indexOf(0, start)
  return decoder.decode(bytes.subarray(start, end < 0 ? bytes.length : end))
}

const decoder = new TextDecoder()
