import type { AccessWhat, Clock } from '../../../model/events.ts'

/** Bits of `sample_type` (include/uapi/linux/perf_event.h). */
export const Sample = {
  ip: 1,
  tid: 1 << 1,
  time: 1 << 2,
  addr: 1 << 3,
  read: 1 << 4,
  callchain: 1 << 5,
  id: 1 << 6,
  cpu: 1 << 7,
  period: 1 << 8,
  streamId: 1 << 9,
  raw: 1 << 10,
  branchStack: 1 << 11,
  userRegisters: 1 << 12,
  userStack: 1 << 13,
  weight: 1 << 14,
  dataSource: 1 << 15,
  identifier: 1 << 16,
  weightStruct: 1 << 24,
} as const

/** Bits of the flags. */
const Flag = {
  comm: 1 << 9,
  frequency: 1 << 10,
  task: 1 << 13,
  sampleIdAll: 1 << 18,
  useClockId: 1 << 25,
  switches: 1 << 26,
} as const
/** Bits of `read_format`. */
const Read = { enabled: 1, running: 2, id: 4, group: 8, lost: 16 } as const

const [SOFTWARE, TRACEPOINT] = [1, 2]
/** Linux's clock ids of the clocks in Perfetto. */
const CLOCKS: Readonly<Record<number, Clock>> = { 0: 'REALTIME', 1: 'MONOTONIC', 4: 'MONOTONIC_RAW', 7: 'BOOTTIME' }

/** Name of a Linux clock id; undefined for others. */
export const clockOf = (clockId: number): Clock | undefined => CLOCKS[clockId]

/** End of the clock id in perf_event_attr: older ones are shorter. */
const CLOCK_ID_END = 96

/** The fields of an event's records. */
export interface PerfAttr {
  /** Id of the tracepoint, as its format text has it; -1 for other events. */
  readonly tracepoint: number
  /** The event's name in perf. */
  readonly name: string
  readonly sampleType: number
  readonly readFormat: number
  readonly hasSampleIdAll: boolean
  readonly recordsNames: boolean
  readonly recordsTasks: boolean
  readonly recordsSwitches: boolean
  /** Samples of it count accesses to data; undefined: they have no addresses of data. */
  readonly accesses: AccessWhat | undefined
  /** Events between samples; 1 where each sample contains it, or it is not known. */
  readonly period: number
  /** Bytes of an entry of a sample's branches, and of the values before and after them. */
  readonly branches: { readonly hasIndex: boolean; readonly each: number }
  /** Registers in a sample. */
  readonly userRegisters: number
  /** Undefined: perf's default clock. */
  readonly clockId: number | undefined
}

/** Bits of `branch_sample_type`. */
const Branch = { index: 1 << 17, counters: 1 << 19 } as const
/** Software events that count page faults (PERF_COUNT_SW_*). */
const FAULTS: Readonly<Record<number, AccessWhat>> = { 2: 'fault', 5: 'minor-fault', 6: 'major-fault' }

/** Reads a `struct perf_event_attr` of `bytes` bytes. */
export function parseAttr(view: DataView, at: number, bytes: number): PerfAttr {
  const flags = view.getUint32(at + 40, true)
  const word = (from: number) => view.getUint32(at + from, true)
  const [type, config, sampleType] = [word(0), word(8), word(24)]
  const isFixed = (flags & Flag.frequency) === 0 && (sampleType & Sample.period) === 0
  const branches = bytes >= CLOCK_ID_END ? word(72) : 0
  const ofData = type === SOFTWARE ? FAULTS[config] : type === TRACEPOINT ? undefined : 'other'
  return {
    tracepoint: type === TRACEPOINT ? config : -1,
    name: nameOf(type, config),
    accesses: (sampleType & Sample.addr) !== 0 ? ofData : undefined,
    period: isFixed ? Math.max(word(16), 1) : 1,
    branches: { hasIndex: (branches & Branch.index) !== 0, each: (branches & Branch.counters) !== 0 ? 32 : 24 },
    userRegisters: bytes >= CLOCK_ID_END ? bitsIn(view, at + 80) : 0,
    sampleType,
    readFormat: word(32),
    hasSampleIdAll: (flags & Flag.sampleIdAll) !== 0,
    recordsNames: (flags & Flag.comm) !== 0,
    recordsTasks: (flags & Flag.task) !== 0,
    recordsSwitches: (flags & Flag.switches) !== 0,
    clockId: (flags & Flag.useClockId) !== 0 && bytes >= CLOCK_ID_END ? view.getInt32(at + 92, true) : undefined,
  }
}

/** perf's names of PERF_COUNT_HW_* and PERF_COUNT_SW_*. */
const EVENTS: Readonly<Record<number, readonly string[]>> = {
  0: [
    ...['cycles', 'instructions', 'cache-references', 'cache-misses', 'branches', 'branch-misses', 'bus-cycles'],
    ...['stalled-cycles-frontend', 'stalled-cycles-backend', 'ref-cycles'],
  ],
  1: [
    ...['cpu-clock', 'task-clock', 'page-faults', 'context-switches', 'cpu-migrations', 'minor-faults', 'major-faults'],
    ...['alignment-faults', 'emulation-faults', 'dummy', 'bpf-output', 'cgroup-switches'],
  ],
}

/** Number of bits that are set in 8 bytes. */
function bitsIn(view: DataView, at: number): number {
  let count = 0
  for (let bit = 0; bit < 64; bit++) count += (view.getUint8(at + (bit >> 3)) >> (bit & 7)) & 1
  return count
}

function nameOf(type: number, config: number): string {
  return EVENTS[type]?.[config] ?? (type === TRACEPOINT ? 'tracepoints without their data' : `type ${type}, ${config}`)
}

/** Thread, CPU and time of a record. Reused from record to record; -1 = not recorded. */
export interface Origin {
  tid: number
  pid: number
  cpu: number
  /** High and low half of the time in ns; both 0 for records that perf synthesized at its start. */
  high: number
  low: number
}

/** Finds the fields of samples. */
export class SampleReader {
  readonly origin: Origin = { tid: -1, pid: -1, cpu: -1, high: 0, low: 0 }
  /** Bytes `[rawAt, rawEnd)` are the tracepoint's record. */
  rawAt = 0
  rawEnd = 0
  /** Places in the sample of its address of data, its period, and what comes after a tracepoint's record; -1: not in it. */
  addressAt = -1
  periodAt = -1
  restAt = -1
  /** Events by their ids. */
  private readonly attrs = new Map<number, PerfAttr>()
  private first: PerfAttr | undefined
  /** The event of the last sample. */
  attr: PerfAttr | undefined

  /** Adds an event and its ids. */
  define(attr: PerfAttr, ids: readonly number[]): void {
    this.first ??= attr
    for (const id of ids) this.attrs.set(id, attr)
  }

  /** Are there any events? */
  get isDefined(): boolean {
    return this.first !== undefined
  }

  /** Name of the event of the last sample. */
  get name(): string {
    return this.attr?.name ?? 'an unknown event'
  }

  /** Reads the sample in bytes `[at, end)`, after the record's header; false where it has no tracepoint's record. */
  readSample(view: DataView, start: number, end: number): boolean {
    const attr = this.attrAt(view, start, end)
    this.attr = attr
    this.restAt = -1
    if (!attr) return false
    const { sampleType: type } = attr
    const has = (bit: number) => (type & bit) !== 0
    let at = start
    if (has(Sample.identifier)) at += 8
    if (has(Sample.ip)) at += 8
    at = this.readOrigin(view, at, end, type, Sample.addr)
    this.periodAt = has(Sample.period) ? at : -1
    if (has(Sample.period)) at += 8
    if (has(Sample.read)) at += readBytes(attr.readFormat, view, at, end)
    if (has(Sample.callchain)) at += at + 8 <= end ? 8 + view.getUint32(at, true) * 8 : Infinity
    this.restAt = at
    if (!has(Sample.raw) || at + 4 > end) return false
    this.rawAt = at + 4
    this.rawEnd = this.rawAt + view.getUint32(at, true)
    this.restAt = this.rawEnd
    return this.rawEnd <= end
  }

  /** Reads the sample_id at the end of a record that is no sample; false where there is none. */
  readTail(view: DataView, start: number, end: number): boolean {
    // perf's own events (synthesized records, losses) have ids that are not in the file.
    const attr = this.attrAt(view, end - 8, end) ?? this.first
    if (!attr?.hasSampleIdAll) return false
    const { sampleType: type } = attr
    const fields = [Sample.tid, Sample.time, Sample.id, Sample.streamId, Sample.cpu, Sample.identifier]
    const bytes = fields.reduce<number>((sum, bit) => sum + ((type & bit) !== 0 ? 8 : 0), 0)
    if (end - bytes < start) return false
    this.readOrigin(view, end - bytes, end, type, 0)
    return true
  }

  /** Reads the fields that are common to samples and the tails of other records; `addr` is in samples only. */
  private readOrigin(view: DataView, start: number, end: number, type: number, addr: number): number {
    const { origin } = this
    origin.tid = origin.pid = origin.cpu = -1
    origin.high = origin.low = 0
    let at = start
    const next = (bit: number) => {
      if ((type & bit) === 0) return -1
      at += 8
      return at <= end ? at - 8 : -1
    }
    const tid = next(Sample.tid)
    if (tid >= 0) {
      origin.pid = view.getInt32(tid, true)
      origin.tid = view.getInt32(tid + 4, true)
    }
    const time = next(Sample.time)
    if (time >= 0) {
      origin.low = view.getUint32(time, true)
      origin.high = view.getUint32(time + 4, true)
    }
    this.addressAt = next(addr)
    next(Sample.id)
    next(Sample.streamId)
    const cpu = next(Sample.cpu)
    if (cpu >= 0) origin.cpu = view.getInt32(cpu, true)
    return at
  }

  /** The event of the id at a place, if samples have an identifier; else the first event, as all have the same layout. */
  private attrAt(view: DataView, at: number, end: number): PerfAttr | undefined {
    const { first } = this
    if (!first || (first.sampleType & Sample.identifier) === 0) return first
    if (at < 0 || at + 8 > end) return undefined
    return view.getUint32(at + 4, true) === 0 ? this.attrs.get(view.getUint32(at, true)) : undefined
  }
}

/** Bytes of the counters in a sample. */
function readBytes(format: number, view: DataView, at: number, end: number): number {
  const count = (...bits: number[]) => bits.filter((bit) => (format & bit) !== 0).length
  const times = 8 * count(Read.enabled, Read.running)
  const each = 8 + 8 * count(Read.id, Read.lost)
  if ((format & Read.group) === 0) return each + times
  return at + 8 <= end ? 8 + times + view.getUint32(at, true) * each : Infinity
}
