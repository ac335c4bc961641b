import type { Clock } from '../../../model/events.ts'

/** Where the pages of one CPU lie. */
export interface CpuPages {
  readonly cpu: number
  readonly offset: number
  readonly bytes: number
}

/** A buffer that was recorded: the top one, and those of `trace-cmd record -B`. */
export interface TraceBuffer {
  /** Empty for the top one. */
  readonly name: string
  /** As tracefs calls it (`mono`, `local`), without brackets. */
  readonly clock: string
  readonly pageBytes: number
  readonly cpus: readonly CpuPages[]
}

/** What the options of a trace.dat tell of the recording. */
export interface Facts {
  readonly clock: Clock | 'unknown'
  readonly attributes: Readonly<Record<string, string | number>>
  /** What to add to a time to get wall-clock time, in ns; where `trace-cmd record --date` found it out. */
  readonly toRealtimeNs: bigint | undefined
  /** Per CPU, what the kernel said of events that it lost. */
  readonly losses: readonly string[]
}

/** tracefs' names of the clocks that Linux and Perfetto name as well; of the others, nothing is known. */
const CLOCKS: ReadonlyMap<string, Clock> = new Map(
  Object.entries({ mono: 'MONOTONIC', mono_raw: 'MONOTONIC_RAW', boot: 'BOOTTIME' }),
)

const Option = { date: 1, cpuStat: 2, buffer: 3, uname: 5, cpuCount: 8, version: 9 } as const
/** Options 16 to 21 tell where the section of the same number is. */
const SECTION_FIRST = 16
const SECTION_LAST = 21
/** More losses than CPUs can have is damage. */
const LOSSES_MAX = 8192

/** Gathers the options of a trace.dat. */
export class TraceOptions {
  /** Places of sections by their ids. */
  readonly sections = new Map<number, number>()
  readonly buffers7: TraceBuffer[] = []
  readonly losses: string[] = []
  readonly texts = new Map<number, string>()
  readonly instances: { readonly name: string; readonly offset: number; readonly cpus: number | undefined }[] = []
  cpus: number | undefined

  /** Buffers beside the top one, of version 6, whose number of CPUs is that of the top one unless they tell. */
  buffers6(cpus: number): { readonly name: string; readonly offset: number; readonly cpus: number }[] {
    return this.instances
      .map(({ name, offset, cpus: own }) => ({ name, offset, cpus: own ?? cpus }))
      .sort((a, b) => a.offset - b.offset)
  }

  /** What they tell, for a trace on a clock. */
  facts(clock: string | undefined): Facts {
    const attributes: Record<string, string | number> = {}
    const uname = this.texts.get(Option.uname)
    // "Linux <host> <release> <machine>": the host is nobody's business.
    const release = uname?.split(' ').at(-2)
    if (release !== undefined) attributes['kernel_release'] = release
    if (this.cpus !== undefined) attributes['cpus'] = this.cpus
    const version = this.texts.get(Option.version)
    if (version !== undefined) attributes['trace_cmd_version'] = version
    if (clock !== undefined) attributes['trace_clock'] = clock
    const date = /^0x([0-9a-f]{1,15})$/i.exec(this.texts.get(Option.date) ?? '')?.[1]
    const toRealtimeNs = date === undefined ? undefined : BigInt(`0x${date}`) * 1000n
    return { clock: CLOCKS.get(clock ?? '') ?? 'unknown', attributes, toRealtimeNs, losses: this.losses }
  }
}

/** Takes in one option; those that do not matter here are left out. */
export function readOption(options: TraceOptions, id: number, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (id >= SECTION_FIRST && id <= SECTION_LAST) {
    if (bytes.length >= 8) options.sections.set(id, Number(view.getBigUint64(0, true)))
  } else if (id === Option.cpuCount) {
    if (bytes.length >= 4) options.cpus = view.getUint32(0, true)
  } else if (id === Option.cpuStat) {
    if (options.losses.length < LOSSES_MAX) options.losses.push(...lossesIn(textOf(bytes, 0)))
  } else if (id === Option.buffer) readBuffer(options, bytes, view)
  else options.texts.set(id, textOf(bytes, 0).trim())
}

/** u64 place, name; version 7: clock, u32 page size, u32 count, then u32 CPU, u64 place, u64 size of each. */
function readBuffer(options: TraceOptions, bytes: Uint8Array, view: DataView): void {
  if (bytes.length < 9) return
  const offset = Number(view.getBigUint64(0, true))
  const name = textOf(bytes, 8)
  const clockAt = 8 + bytes.indexOf(0, 8) - 8 + 1
  const clock = textOf(bytes, clockAt)
  let at = clockAt + clock.length + 1
  if (at + 8 > bytes.length) {
    options.instances.push({ name, offset, cpus: undefined })
    return
  }
  const pageBytes = view.getUint32(at, true)
  const count = view.getUint32(at + 4, true)
  const cpus: { cpu: number; offset: number; bytes: number }[] = []
  for (at += 8; cpus.length < count && at + 20 <= bytes.length; at += 20) {
    const [place, size] = [view.getBigUint64(at + 4, true), view.getBigUint64(at + 12, true)]
    cpus.push({ cpu: view.getUint32(at, true), offset: Number(place), bytes: Number(size) })
  }
  options.buffers7.push({ name, clock, pageBytes, cpus })
}

/** "overrun: 5": events that were overwritten or had no room, as tracefs' per_cpu/cpu<n>/stats has them. */
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
