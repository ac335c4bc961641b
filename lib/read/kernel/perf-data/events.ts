import { Rounds } from '../../../input/reorder.ts'
import type { StateEvent, SwitchEvent, ThreadEvent, TraceEvent } from '../../../model/events.ts'
import { TaskState } from '../../../model/events.ts'
import { type IssueCode, issueOf } from '../../../model/issues.ts'
import { LeftOut } from '../../../model/left-out.ts'
import type { Names } from '../../../model/names.ts'
import { plural } from '../../../model/units.ts'
import { EventBatch } from '../../common/batches.ts'
import { TimeGuard } from '../../common/time-guard.ts'
import { Marks } from '../tracepoints/marks.ts'
import { Tracepoints } from '../tracepoints/tracepoints.ts'
import { AccessReader } from './accesses.ts'
import { clockOf, SampleReader } from './attr.ts'
import type { PerfFacts } from './head.ts'

/** Types of records (include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h). */
export const Record = {
  mmap: 1,
  lost: 2,
  comm: 3,
  exit: 4,
  fork: 7,
  sample: 9,
  mmap2: 10,
  lostSamples: 13,
  switch: 14,
  switchCpuWide: 15,
  headerAttr: 64,
  tracingData: 66,
  finishedRound: 68,
  auxtrace: 71,
  headerFeature: 80,
  compressed: 81,
  compressed2: 83,
} as const

/** Records that describe the system, the file or other records: they are no events. */
const DESCRIPTIONS: Readonly<Record<number, string>> = {
  ...{ 16: 'NAMESPACES', 17: 'KSYMBOL', 18: 'BPF_EVENT', 19: 'CGROUP', 20: 'TEXT_POKE', 21: 'AUX_OUTPUT_HW_ID' },
  ...{ 64: 'HEADER_ATTR', 65: 'HEADER_EVENT_TYPE', 66: 'HEADER_TRACING_DATA', 67: 'HEADER_BUILD_ID', 69: 'ID_INDEX' },
  ...{ 70: 'AUXTRACE_INFO', 73: 'THREAD_MAP', 74: 'CPU_MAP', 75: 'STAT_CONFIG', 78: 'EVENT_UPDATE', 79: 'TIME_CONV' },
  ...{ 80: 'HEADER_FEATURE', 82: 'FINISHED_INIT' },
}
/** Names of records of events that are not read. */
const UNREAD: Readonly<Record<number, string>> = {
  ...{ 5: 'THROTTLE', 6: 'UNTHROTTLE', 8: 'READ', 11: 'AUX', 12: 'ITRACE_START', 72: 'AUXTRACE_ERROR' },
  ...{ 76: 'STAT', 77: 'STAT_ROUND' },
}

/** Hint for events that are left out, mostly samples. */
const LEFT_OUT_HINT = 'Perfetto reads perf.data itself; with a log, --bundle packs both into one file'

/** Bits of a record's `misc`. */
const Misc = { switchOut: 1 << 13, preempted: 1 << 14 } as const

const HEAD_BYTES = 8
/** Most events before the first one with a time: names of all threads. */
const EARLY_MAX = 1 << 16
/** Events that perf synthesizes from /proc when it starts have no time. */
const isSynthesized = ({ high, low }: { readonly high: number; readonly low: number }) => high === 0 && low === 0

type PerfEvent = Extract<TraceEvent, { readonly atNs: number }>

/** Makes events of perf's records. */
export class PerfEvents {
  readonly batch = new EventBatch()
  private readonly rounds = new Rounds<PerfEvent>()
  private readonly guard = new TimeGuard()
  private readonly samples = new SampleReader()
  private tracepoints: Tracepoints | undefined
  private hasSwitches = false
  private originHigh = 0
  private originLow = 0
  private readonly said = new Set<IssueCode>()
  private readonly leftOut = new LeftOut()
  private readonly accesses: AccessReader
  private readonly marks: Marks

  constructor(
    private readonly format: string,
    private readonly names: Names,
    private readonly facts: PerfFacts,
  ) {
    this.accesses = new AccessReader(names, facts)
    this.marks = new Marks(names, (event) => this.batch.add(event), true)
  }

  /** Reads the record in bytes `[at, end)`, at `byte` of the input. */
  record(view: DataView, at: number, end: number, byte: number): void {
    const type = view.getUint32(at, true)
    const misc = view.getUint16(at + 4, true)
    const start = at + HEAD_BYTES
    if (type === Record.finishedRound) this.pass(this.rounds.finishRound())
    else if (type === Record.sample) this.readSample(view, start, end, byte)
    else if (type === Record.comm) this.readComm(view, start, end, byte)
    else if (type === Record.fork || type === Record.exit) this.readTask(view, start, end, byte, type === Record.fork)
    else if (type === Record.switch || type === Record.switchCpuWide) {
      this.readSwitch(view, start, end, byte, misc, type === Record.switchCpuWide)
    } else if (type === Record.mmap || type === Record.mmap2) {
      this.readMapping(view, start, end, byte, type === Record.mmap2)
    } else if (type === Record.lost || type === Record.lostSamples) this.readLost(view, start, end, byte, type)
    else if (!(type in DESCRIPTIONS)) this.leave(`records of ${UNREAD[type] ?? `type ${type}`}`)
  }

  /** The input has ended. */
  finish(): void {
    this.begin(0, 0)
    const { attrs } = this.facts
    const isOfScheduler = this.prepare().decoded.length > 0 || attrs.some(({ attr }) => attr.recordsSwitches)
    if (!isOfScheduler && !this.accesses.areExpected) {
      const hint = 'record with -e sched:sched_switch,sched:sched_waking, or with --switch-events'
      this.issue('no-scheduler-events', `expected some, found none; ${hint}`, 0)
    }
    this.pass(this.rounds.finish())
    this.marks.finish(this.prepare().decoded.length > 0 || attrs.some(({ attr }) => attr.recordsSwitches))
    this.prepare().leaveOut(this.leftOut, LEFT_OUT_HINT)
    for (const event of this.accesses.facts()) this.batch.add(event)
    this.pass(this.leftOut.events())
  }

  /** Counts a record that is left out. */
  leave(what: string): void {
    this.leftOut.add(what, 1, LEFT_OUT_HINT)
  }

  /** Adds an issue, by default at the time of the last event. */
  issue(code: IssueCode, detail: string, byte: number, atNs = this.guard.lastNs): void {
    this.add(issueOf(code, detail, { byte }, atNs), byte)
  }

  /** Prepares to read samples, with the first record that needs it: all events are known then. */
  private prepare(): Tracepoints {
    if (this.tracepoints) return this.tracepoints
    const { attrs, formats, cut } = this.facts
    if (cut)
      this.issue('torn-file', `expected ${cut.expected}, found ${cut.found}: some facts are missing`, cut.at.byte)
    for (const { attr, ids } of attrs) this.samples.define(attr, ids)
    const recordsTasks = attrs.some(({ attr }) => attr.recordsTasks)
    const recordsNames = attrs.some(({ attr }) => attr.recordsNames)
    const left = [
      ...(recordsTasks ? ['sched_process_fork', 'sched_process_exit', 'task_newtask'] : []),
      ...(recordsNames ? ['sched_process_exec', 'task_rename'] : []),
    ]
    this.tracepoints = new Tracepoints(this.names, this.marks, left)
    for (const text of formats) this.tracepoints.define(text)
    const id = this.tracepoints.idOf('sched_switch')
    this.hasSwitches = attrs.some(({ attr }) => attr.tracepoint >= 0 && attr.tracepoint === id)
    if (formats.length === 0 && attrs.some(({ attr }) => attr.tracepoint >= 0)) {
      this.issue('no-event-formats', 'expected the formats of the tracepoints, found none: they cannot be read', 0)
    }
    return this.tracepoints
  }

  private readSample(view: DataView, start: number, end: number, byte: number): void {
    const tracepoints = this.prepare()
    const { samples } = this
    const isOfTracepoint = samples.readSample(view, start, end)
    if (samples.attr?.accesses !== undefined) return this.readAccess(view, end, byte)
    if (!isOfTracepoint) return this.leave(`samples of ${samples.name}`)
    const { origin, rawAt, rawEnd } = samples
    const atNs = this.timeOf(byte)
    if (atNs === undefined) return
    const event = tracepoints.decode(view, rawAt, rawEnd, origin.cpu, atNs)
    if (event === undefined) return
    if (typeof event === 'number') {
      this.issue('short-record', `expected ${event} bytes, found ${rawEnd - rawAt}`, byte, atNs)
    } else if ('cpu' in event && event.cpu < 0) {
      this.sayOnce('no-cpu', 'expected the CPU in every sample, found none; record with -a or --sample-cpu', byte)
    } else this.add(event as PerfEvent, byte)
  }

  /** A sample with an address of data. */
  private readAccess(view: DataView, end: number, byte: number): void {
    const { samples } = this
    const atNs = this.timeOf(byte)
    if (atNs === undefined) return
    const event = this.accesses.sample(view, end, samples, atNs)
    if (event) return this.add(event, byte)
    this.issue('short-record', `expected the fields of a sample of ${samples.name}, found ${end} bytes`, byte, atNs)
  }

  /** Memory that a process maps: needed where its accesses are sampled. */
  private readMapping(view: DataView, start: number, end: number, byte: number, isLong: boolean): void {
    if (!this.accesses.areExpected) return
    this.prepare()
    if (!this.samples.readTail(view, start, end)) return
    const isEarlier = isSynthesized(this.samples.origin)
    const atNs = isEarlier ? 0 : this.timeOf(byte)
    const event = atNs === undefined ? undefined : this.accesses.mapping(view, start, end, atNs, isLong)
    if (!event) return
    if (isEarlier) this.batch.add(event)
    else this.add(event, byte)
  }

  /** u32 pid, u32 tid, the name. */
  private readComm(view: DataView, start: number, end: number, byte: number): void {
    this.prepare()
    const tid = start + 8 <= end ? view.getInt32(start + 4, true) : -1
    if (tid < 0 || !this.samples.readTail(view, start, end)) return
    const isKnown = isSynthesized(this.samples.origin)
    const atNs = isKnown ? 0 : this.timeOf(byte)
    if (atNs === undefined) return
    const comm = this.tracepoints!.comms.text(view, start + 8, end)
    const what: ThreadEvent['what'] = isKnown ? 'known' : 'rename'
    this.add({ kind: 'thread', what, atNs, tid, tgid: view.getInt32(start, true), comm, parentTid: -1 }, byte)
  }

  /** u32 pid, parent's pid, tid, parent's tid, u64 time. */
  private readTask(view: DataView, start: number, end: number, byte: number, isFork: boolean): void {
    this.prepare()
    if (start + 24 > end || !this.samples.readTail(view, start, end) || isSynthesized(this.samples.origin)) return
    const atNs = this.timeOf(byte)
    if (atNs === undefined) return
    const [tgid, tid] = [view.getInt32(start, true), view.getInt32(start + 8, true)]
    const parentTid = isFork ? view.getInt32(start + 12, true) : -1
    this.add({ kind: 'thread', what: isFork ? 'fork' : 'exit', atNs, tid, tgid, comm: 0, parentTid }, byte)
  }

  /** A context switch in perf's records, which are two: of the previous and of the next thread. */
  private readSwitch(view: DataView, start: number, end: number, byte: number, misc: number, isCpuWide: boolean): void {
    this.prepare()
    if (this.hasSwitches || !this.samples.readTail(view, start, end)) return
    const isOut = (misc & Misc.switchOut) !== 0
    if (isCpuWide && (!isOut || start + 8 > end)) return
    const atNs = this.timeOf(byte)
    if (atNs === undefined) return
    const { cpu, tid } = this.samples.origin
    const isPreempted = (misc & Misc.preempted) !== 0
    if (!isCpuWide) {
      const state = isOut ? (isPreempted ? 'runnable' : 'blocked') : 'running'
      this.add({ kind: 'state', tid, cpu, state, atNs } satisfies StateEvent, byte)
      return
    }
    this.add(
      {
        kind: 'switch',
        cpu,
        atNs,
        prevTid: tid,
        prevComm: 0,
        prevPrio: -1,
        prevState: isPreempted ? 0 : TaskState.S,
        nextTid: view.getInt32(start + 4, true),
        nextComm: 0,
        nextPrio: -1,
      } satisfies SwitchEvent,
      byte,
    )
  }

  /** LOST: u64 id, u64 count; LOST_SAMPLES: u64 count, without a time where it is perf's sum of LOST at the end. */
  private readLost(view: DataView, start: number, end: number, byte: number, type: number): void {
    this.prepare()
    const at = start + (type === Record.lost ? 8 : 0)
    if (at + 8 > end) return
    const count = view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
    const hasTail = this.samples.readTail(view, at + 8, end) && !isSynthesized(this.samples.origin)
    if (type === Record.lostSamples && !hasTail) return
    const atNs = hasTail ? this.timeOf(byte) : this.guard.lastNs
    const where = hasTail && this.samples.origin.cpu >= 0 ? `CPU ${this.samples.origin.cpu}: ` : ''
    const detail = `${where}${plural(count, 'record')} did not fit in perf's buffer; record with a larger one (-m)`
    this.issue('lost-records', detail, byte, atNs)
  }

  /** Time of the last record, from the origin; undefined for none, or a damaged one. */
  private timeOf(byte: number): number | undefined {
    const { high, low } = this.samples.origin
    if (high === 0 && low === 0) {
      this.sayOnce('event-without-time', 'expected a time in every record, found none; record with -T', byte)
      return undefined
    }
    if (!this.batch.hasBegun) this.begin(high, low)
    const atNs = (high - this.originHigh) * 2 ** 32 + (low - this.originLow)
    const doubt = this.guard.doubt(atNs)
    if (doubt === undefined) return atNs
    this.issue('impossible-time', doubt, byte)
    return undefined
  }

  private sayOnce(code: IssueCode, detail: string, byte: number): void {
    if (this.said.has(code)) return
    this.said.add(code)
    this.issue(code, detail, byte)
  }

  private add(event: PerfEvent, byte: number): void {
    const { batch } = this
    if (!batch.hasBegun && batch.size >= EARLY_MAX) this.begin(0, 0)
    if (!batch.hasBegun || isKnown(event)) return batch.add(event)
    const isLate = !this.rounds.push(event)
    if (this.rounds.isFull) this.pass(this.rounds.takeHalf())
    if (isLate && event.kind !== 'issue') {
      const detail = 'expected records in order from round to round, found an earlier one'
      this.issue('record-out-of-order', detail, byte, event.atNs)
    }
  }

  /** Adds the input event. */
  private begin(high: number, low: number): void {
    if (this.batch.hasBegun) return
    this.prepare()
    const { attrs, attributes, clocks } = this.facts
    this.originHigh = high
    this.originLow = low
    const clockId = attrs.find(({ attr }) => attr.clockId !== undefined)?.attr.clockId
    const clock = (clockId === undefined ? undefined : clockOf(clockId)) ?? 'unknown'
    const facts: Record<string, string | number> = { ...attributes }
    if (clock === 'unknown') facts['perf_clock'] = clockId === undefined ? "perf's own" : `clock id ${clockId}`
    const waitStates = this.hasSwitches || !attrs.some(({ attr }) => attr.recordsSwitches)
    if (!waitStates) {
      facts['blocked_states'] = "not in perf's switch records: S means any of them"
    }
    const originNs = (BigInt(high) << 32n) + BigInt(low)
    const clockSource = clock === 'unknown' ? (clockId ?? ('perf' as const)) : undefined
    const switches = this.hasSwitches || attrs.some(({ attr }) => attr.recordsSwitches)
    const accesses = this.accesses.areExpected
    const known = {
      clockSource,
      capabilities: { waitStates, ...(accesses && { accesses, switches }) },
      ...(accesses && !switches && { title: 'Samples of data addresses' }),
    }
    const isRead = clock !== 'unknown' && clocks.some((reading) => reading.clock === clock)
    this.batch.begin(
      { kind: 'input', format: this.format, clock, originNs, attributes: facts, ...known },
      ...(isRead ? [{ kind: 'clocks', readings: clocks } as const] : []),
    )
  }

  private pass(events: readonly TraceEvent[]): void {
    for (const event of events) this.batch.add(event)
  }
}

const isKnown = (event: PerfEvent) => event.kind === 'thread' && event.what === 'known'
