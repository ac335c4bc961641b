import { endianness } from 'node:os'

/*
 * trace-cmd's trace.dat, version 6 (its Documentation/trace-cmd/trace-cmd.dat.v6.5.txt), all in the machine's byte order:
 *
 *   17 08 44 "tracing" "6\0"  u8 big endian?  u8 size of a long  u32 page size
 *   "header_page\0"  u64 size, text          "header_event\0"  u64 size, text
 *   u32 formats of ftrace's own events  { u64 size, text }
 *   u32 systems  { name\0  u32 events  { u64 size, text } }
 *   u32 size, kallsyms (none: nothing here has addresses)     u32 size, printk formats (none)
 *   u64 size, lines "pid comm"     u32 CPUs
 *   "options  \0"  { u16 id  u32 size  data }  u16 0
 *   at each offset, which is a multiple of the page size: unchanged pages of the kernel's ring buffer
 */

/** Everything in a trace.dat except the pages. */
export interface TraceDatHeader {
  /** The kernel's descriptions: `events/header_page`, `events/header_event`. */
  readonly headerPage: string
  readonly headerEvent: string
  /** The `format` files of the events of system `ftrace`. */
  readonly ftraceFormats: readonly string[]
  /** Per other system, the `format` files of its events. */
  readonly systems: ReadonlyMap<string, readonly string[]>
  /** `saved_cmdlines`: a line `pid comm` for each thread. */
  readonly cmdlines: string
  /** `saved_tgids`: a line `tid pid` for each thread; empty if the kernel does not record them. */
  readonly tgids: string
  /** The clock of all times, such as `mono`, and the file `trace_clock` with its name in brackets. */
  readonly clock: string
  readonly traceClock: string
  /** System, host name, release, machine. */
  readonly uname: string
  /** The `stats` file of each CPU, by number. */
  readonly stats: ReadonlyMap<number, string>
}

/** The pages of one CPU. */
export interface CpuPages {
  readonly cpu: number
  readonly bytes: number
  read(): AsyncIterable<Uint8Array>
}

/** trace-cmd has no option for the processes of threads: `tgids` is ours, which trace-cmd ignores. */
const OPTION = { cpuStat: 2, traceClock: 4, uname: 5, tgids: 0x4732 } as const
const TABLE_ENTRY_BYTES = 16

/** Data bytes in a page of the ring buffer, from `events/header_page`: where the data begins and how long it is. */
export function pageBytes(headerPage: string): number {
  const [, offset, size] = /\bdata;\s*offset:(\d+);\s*size:(\d+);/.exec(headerPage) ?? []
  return Number(offset) + Number(size)
}

/** A complete trace.dat; CPUs that are not in `pages` have no pages. */
export async function* traceDat(header: TraceDatHeader, pages: readonly CpuPages[]): AsyncGenerator<Uint8Array, void> {
  const page = pageBytes(header.headerPage)
  const cpus = Math.max(0, ...pages.map(({ cpu }) => cpu + 1))
  const clock = sized(64, Buffer.from(`[${header.clock}]`))
  const head = Buffer.concat([...descriptions(header, page), integer(32, cpus), ...options(header), text('flyrecord')])
  const aligned = (bytes: number) => Math.ceil(bytes / page) * page
  const start = head.length + cpus * TABLE_ENTRY_BYTES + clock.length
  let offset = aligned(start)
  const table = Buffer.alloc(cpus * TABLE_ENTRY_BYTES)
  for (const { cpu, bytes } of pages) {
    Buffer.concat([integer(64, offset), integer(64, bytes)]).copy(table, cpu * TABLE_ENTRY_BYTES)
    offset += aligned(bytes)
  }
  yield Buffer.concat([head, table, clock, Buffer.alloc(aligned(start) - start)])
  for (const one of pages) yield* one.read()
}

function descriptions({ headerPage, headerEvent, ...header }: TraceDatHeader, page: number): Buffer[] {
  const { ftraceFormats, systems, cmdlines } = header
  const long = Number(/\bcommit;\s*offset:\d+;\s*size:(\d+);/.exec(headerPage)?.[1])
  const files = (formats: readonly string[]) => formats.map((format) => sized(64, Buffer.from(format)))
  return [
    Buffer.from([0x17, 0x08, 0x44]),
    Buffer.from('tracing'),
    text('6'),
    Buffer.from([endianness() === 'BE' ? 1 : 0, long]),
    integer(32, page),
    text('header_page'),
    sized(64, Buffer.from(headerPage)),
    text('header_event'),
    sized(64, Buffer.from(headerEvent)),
    integer(32, ftraceFormats.length),
    ...files(ftraceFormats),
    integer(32, systems.size),
    ...[...systems].flatMap(([name, formats]) => [text(name), integer(32, formats.length), ...files(formats)]),
    integer(32, 0), // kallsyms
    integer(32, 0), // printk formats
    sized(64, Buffer.from(cmdlines)),
  ]
}

function options({ traceClock, uname, stats, tgids }: TraceDatHeader): Buffer[] {
  const option = (id: number, value: string) => [integer(16, id), sized(32, text(value))]
  return [
    text('options  '),
    ...[...stats].flatMap(([cpu, lines]) => option(OPTION.cpuStat, `CPU: ${cpu}\n${lines}`)),
    ...option(OPTION.traceClock, traceClock),
    ...option(OPTION.uname, uname),
    ...(tgids === '' ? [] : option(OPTION.tgids, tgids)),
    integer(16, 0),
  ]
}

const text = (value: string) => Buffer.from(`${value}\0`)

const sized = (bits: 32 | 64, bytes: Buffer) => Buffer.concat([integer(bits, bytes.length), bytes])

/** In the machine's byte order, as the pages. */
function integer(bits: 16 | 32 | 64, value: number): Buffer {
  if (bits === 64) return Buffer.from(BigUint64Array.of(BigInt(value)).buffer)
  return Buffer.from(bits === 32 ? Uint32Array.of(value).buffer : Uint16Array.of(value).buffer)
}
