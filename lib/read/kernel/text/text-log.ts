import { Ascii } from '../../../bytes/ascii.ts'
import { FormatError } from '../../../errors.ts'
import { ByteTable } from '../../../input/byte-table.ts'
import type { LineCursor } from '../../../input/line-cursor.ts'
import { DefaultMap } from '../../../model/default-map.ts'
import type {
  AccessEvent,
  Clock,
  MappingEvent,
  SwitchEvent,
  ThreadEvent,
  TraceEvent,
  WakingEvent,
} from '../../../model/events.ts'
import { issueOf } from '../../../model/issues.ts'
import { LeftOut } from '../../../model/left-out.ts'
import { LineLog, type Origin } from '../../common/line-log.ts'
import { LookAhead, type Preview } from '../../common/look-ahead.ts'
import type { ReadContext } from '../../format.ts'
import { type MarkEvent, Marks } from '../tracepoints/marks.ts'
import { currentBits, isOldState } from '../tracepoints/states.ts'
import { Bodies, commOf } from './bodies.ts'
import type { LlamaRecord } from './llama-lines.ts'
import type { Columns, Scan } from './scan.ts'

/** An event of the scheduler. */
export type SchedEvent = SwitchEvent | WakingEvent | ThreadEvent | AccessEvent | MappingEvent

/** All that a line may become. */
type LineEvent = SchedEvent | MarkEvent | LlamaRecord

/** The preview, with a clock always. */
export interface About extends Preview {
  readonly clock: Clock | 'unknown'
}

/** Sorts events by time. The input event is made after the first window: a marker in it may name the clock. */
class SchedEvents extends LookAhead<LineEvent> {
  /** Time of the last event in the batch. */
  private lastNs = -Infinity
  /** Wakeups of the first window: dropped if there are wakings. */
  private readonly wakeups = new Set<LineEvent>()
  private hasWakings = false
  /** There are events of the scheduler. */
  isOfScheduler = false

  /** `about` is called once; `expand` returns the events of a record that becomes several. */
  constructor(
    format: string,
    context: ReadContext,
    size: number,
    private readonly about: () => About,
    private readonly expand: (record: LlamaRecord) => readonly TraceEvent[],
  ) {
    super(format, context, size)
  }

  /** Adds the event of the current line. */
  addOf(lines: LineCursor, event: LineEvent): void {
    const { atNs, kind } = event
    this.isOfScheduler ||= kind === 'switch' || kind === 'waking' || kind === 'thread'
    if (atNs >= this.lastNs) this.add(event)
    else this.reportLate('events', this.lastNs - atNs, lines.position, atNs)
  }

  /** The log has `sched_waking`: the `sched_wakeup` after each one is redundant. */
  noteWaking(): void {
    this.hasWakings = true
  }

  /** Adds the `sched_wakeup` of the current line. */
  addWakeupOf(lines: LineCursor, event: WakingEvent): void {
    if (this.hasWakings) return
    if (!this.batch.hasBegun) this.wakeups.add(event)
    this.addOf(lines, event)
  }

  protected override preview(): About {
    const about = this.about()
    return this.isOfScheduler ? { ...about, capabilities: { scheduler: true, ...about.capabilities } } : about
  }

  protected override release(event: LineEvent): void {
    this.lastNs = event.atNs
    if (event.kind === 'llama') for (const made of this.expand(event)) this.batch.add(made)
    else if (this.wakeups.size === 0 || !this.wakeups.delete(event) || !this.hasWakings) this.batch.add(event)
  }
}

/** Events by which one may be late: ftrace and perf write nearly sorted logs. */
const WINDOW = 8192
/** Most unreadable lines ahead of the first one with a time: with more, there is none. */
const HEAD_ISSUES_MAX = 1000

/** How an event's fields are read. */
export type Handler =
  | 'switch'
  | 'waking'
  | 'wakeup'
  | 'fork'
  | 'exit'
  | 'exec'
  | 'rename'
  | 'known'
  | 'llama'
  | 'cpu'
  | 'mark'
  | 'record'

const HANDLERS: Readonly<Record<string, Handler>> = {
  sched_switch: 'switch',
  sched_waking: 'waking',
  sched_wakeup: 'wakeup',
  sched_process_fork: 'fork',
  sched_process_exit: 'exit',
  sched_process_exec: 'exec',
  task_rename: 'rename',
  cpu_frequency: 'cpu',
  cpu_idle: 'cpu',
  tracing_mark_write: 'mark',
  print: 'mark',
  bprint: 'mark',
  bputs: 'mark',
  bpf_trace_printk: 'mark',
}

/** An event's name, and how many of its lines are left out. */
interface EventName {
  readonly name: string
  readonly handler: Handler | undefined
  skipped: number
}

/** Reads scheduler events as lines of text: columns, which differ by tool, and the event's fields. */
export abstract class SchedTextLog extends LineLog<SchedEvents> {
  protected readonly attributes: Record<string, string | number> = Object.create(null)
  protected clock: Clock | 'unknown' = 'unknown'
  /** Add to the log's times for times of that clock. */
  protected shiftNs = 0n
  /** The columns of the current line. */
  protected readonly context = { atNs: 0, cpu: -1, tid: -1, tgid: -1, isIrq: false }
  protected readonly comms: ByteTable<number>
  private readonly bodies: Bodies
  private readonly eventNames = new DefaultMap<string, EventName>((name) => {
    return { name, handler: this.handlerOf(name), skipped: 0 }
  })
  private readonly nameTable = new ByteTable<EventName>((name) => this.eventNames.of(name))
  /** Processes by thread, from the columns. */
  private readonly tgids = new Map<number, number>()
  private readonly leftOut = new LeftOut()
  private readonly marks: Marks
  private headIssues = 0
  private hasNoCpu = false
  private hasOldStates = false

  /** Hint for events that are left out: what draws them. */
  protected readonly leftOutHint: string | undefined = undefined

  constructor(
    source: AsyncIterable<Uint8Array>,
    format: string,
    input: ReadContext,
    protected readonly scan: Scan,
    protected readonly columns: Columns,
    window = WINDOW,
  ) {
    super(
      source,
      format,
      new SchedEvents(
        format,
        input,
        window,
        () => this.about(),
        (record) => this.expand(record),
      ),
    )
    this.comms = new ByteTable((text) => input.names.id(commOf(text)))
    this.bodies = new Bodies(scan, this.comms)
    this.marks = new Marks(input.names, (event) => this.maker.emit(event), true)
  }

  /** Reads a line without columns, which is not empty; false where it is unknown. */
  protected abstract readOther(text: string): boolean

  /** Reads a line of trace_marker; `atNs` as in the context. False where it is not about clocks. */
  protected readMark(_text: string, _origin: Origin): boolean {
    return false
  }

  /** Reads a record of the tool itself. */
  protected readRecord(_name: string, _origin: Origin): boolean {
    return false
  }

  /** Is the number in the column of times a time? */
  protected hasStamp(): boolean {
    return true
  }

  /** How the fields of an event are read; undefined: they are not. */
  protected handlerOf(name: string): Handler | undefined {
    return Object.hasOwn(HANDLERS, name) ? HANDLERS[name] : undefined
  }

  protected override readHead(): boolean {
    const { lines } = this
    for (;;) {
      const ahead = lines.ahead()
      const newline = ahead.indexOf(Ascii.LineFeed)
      if (newline < 0 && !lines.isEnding) return false
      if (this.stampOf(ahead, 0, newline < 0 ? ahead.length : newline) !== undefined) return true
      if (!lines.next()) return true
      if (lines.end > lines.start) this.readHeadLine()
    }
  }

  protected override stampOf(bytes: Uint8Array, start: number, end: number): bigint | undefined {
    const { scan } = this
    if (!this.readColumns(bytes, start, end) || !this.hasStamp()) return undefined
    return BigInt(scan.seconds) * 1_000_000_000n + BigInt(scan.nanos)
  }

  protected override readLine(origin: Origin): void {
    const { lines, columns, scan, guard } = this
    if (!this.readColumns(lines.bytes, lines.start, lines.end)) return this.readForeign()
    if (!this.hasStamp()) return this.readUntimed(origin)
    const atNs = (scan.seconds - origin.high) * 1e9 + (scan.nanos - origin.low)
    // The fast path of the guard's check.
    if (Math.abs(atNs - guard.lastNs) < 1e9) guard.lastNs = atNs
    else if (!this.believes(atNs)) return
    this.enter(atNs)
    if (columns.tgid >= 0 && this.tgids.get(columns.tid) !== columns.tgid) this.addThread()
    const event = this.nameTable.get(scan.bytes, columns.nameStart, columns.nameEnd)
    if (columns.cpu < 0 && !this.hasNoCpu && event.handler !== 'record') this.reportNoCpu()
    if (event.handler === undefined) event.skipped++
    else this.readEvent(event, event.handler, origin)
  }

  /** Adds the counts of events that are left out. */
  protected override finish(): void {
    this.marks.finish(this.maker.isOfScheduler)
    const { leftOut, leftOutHint } = this
    const most = [...this.eventNames.values()].sort((a, b) => b.skipped - a.skipped)
    for (const { name, skipped } of most) leftOut.add(name, skipped, leftOutHint)
    for (const event of leftOut.events()) this.maker.emit(event)
  }

  /** The clock and attributes, after the first window. */
  protected about(): About {
    return { clock: this.clock, shiftNs: this.shiftNs, attributes: { ...this.attributes } }
  }

  /** The events of a record. */
  protected expand(_record: LlamaRecord): readonly TraceEvent[] {
    return []
  }

  /** The rest of the line as text, for rare lines. */
  protected textFrom(start: number): string {
    return decoder.decode(this.scan.bytes.subarray(start, this.scan.end))
  }

  private readColumns(bytes: Uint8Array, start: number, end: number): boolean {
    const { scan } = this
    scan.bytes = bytes
    scan.at = start
    scan.end = end
    return this.columns.read()
  }

  /** Begins a row of this time. */
  private enter(atNs: number): void {
    const { columns, context } = this
    context.atNs = atNs
    context.cpu = columns.cpu
    context.tid = columns.tid
    context.tgid = columns.tgid
    context.isIrq = columns.isIrq
  }

  private readEvent(event: EventName, handler: Handler, origin: Origin): void {
    if (handler === 'mark') {
      this.readText(this.textFrom(this.scan.at), origin)
      return
    }
    if (handler === 'record') {
      if (!this.readRecord(event.name, origin)) event.skipped++
      return
    }
    const { lines } = this
    const read = this.withCurrentState(this.readFields(handler, event.name, origin))
    if (read === undefined) this.reject('unreadable-row', `expected the fields of ${event.name}, found "${this.start}"`)
    else if (handler !== 'wakeup') this.maker.addOf(lines, read)
    else if (read.kind === 'waking') this.maker.addWakeupOf(lines, read)
  }

  /** Reads a line of trace_marker, or of trace_printk. */
  private readText(text: string, origin: Origin): void {
    if (this.readMark(text, origin)) return
    const { tid, atNs } = this.context
    const event = this.marks.read(text, { tid, atNs, at: this.lines.position })
    if (event) this.maker.addOf(this.lines, event)
  }

  /** The event of the fields; undefined where they do not match. */
  protected readFields(handler: Handler, name: string, _origin: Origin): LineEvent | undefined {
    const { bodies, context } = this
    switch (handler) {
      case 'switch':
        return bodies.readSwitch(context)
      case 'waking':
        this.maker.noteWaking()
        return bodies.readWaking(context, context.tid)
      case 'wakeup':
        return bodies.readWaking(context, -1)
      case 'fork':
        return bodies.readFork(context)
      case 'exit':
        return bodies.readExit(context)
      case 'exec':
        return bodies.readExec(context)
      case 'rename':
        return bodies.readRename(context)
      case 'cpu':
        return this.marks.cpus.event(name === 'cpu_idle' ? name : 'cpu_frequency', ...bodies.readCpu(), context.atNs)
      default:
        return undefined
    }
  }

  /** A state that is printed as a number has the bits of the recording kernel, whose version is not in the text. */
  private withCurrentState<T extends LineEvent>(read: T | undefined): T | SwitchEvent | undefined {
    if (read?.kind !== 'switch' || !isOldState(read.prevState)) return read
    if (!this.hasOldStates) {
      this.hasOldStates = true
      const detail = `expected at most 0x1ff, found 0x${read.prevState.toString(16)}`
      this.maker.emit(issueOf('old-thread-states', detail, this.lines.position, read.atNs))
    }
    return { ...read, prevState: currentBits(read.prevState) }
  }

  private readHeadLine(): void {
    const { lines } = this
    const origin = { high: 0, low: 0 }
    if (this.readColumns(lines.bytes, lines.start, lines.end)) return this.readUntimed(origin)
    this.readForeign()
    if (this.headIssues <= HEAD_ISSUES_MAX) return
    const found = `${HEAD_ISSUES_MAX} lines that are something else`
    throw new FormatError(this.format, lines.position, 'a line with an event', found)
  }

  /** Reads a row without a valid time. */
  protected readUntimed(origin: Origin): void {
    const { columns, scan } = this
    this.enter(0)
    const event = this.nameTable.get(scan.bytes, columns.nameStart, columns.nameEnd)
    if (event.handler !== 'record' || !this.readRecord(event.name, origin)) event.skipped++
  }

  /** Reads a line that is no row. */
  private readForeign(): void {
    const { lines } = this
    const first = lines.bytes[lines.start]
    if (first === Ascii.Tab) return this.leftOut.add('frames of call stacks', 1, this.leftOutHint)
    const text = lines.text
    if (this.readOther(text) || first === Ascii.Hash || text.trim() === '') return
    this.headIssues++
    this.reject('unreadable-row', `expected a line with an event, found "${this.start}"`)
  }

  /** The start of the line, for a message. */
  private get start(): string {
    return this.lines.text.slice(0, 80).replace(/[^\x20-\x7e]/g, '.')
  }

  /** Adds the process of the line's thread. */
  private addThread(): void {
    const { columns, context, scan, lines } = this
    const { tid, tgid, commStart, commEnd } = columns
    if (tid <= 0) return
    this.tgids.set(tid, tgid)
    const isNamed = scan.bytes[commStart] !== 0x3c || scan.bytes[commEnd - 1] !== 0x3e // <...>
    const comm = isNamed ? this.comms.get(scan.bytes, commStart, commEnd) : 0
    const { atNs } = context
    const event = { kind: 'thread', what: 'known', atNs, tid, tgid, comm, parentTid: -1 } as const
    this.maker.addOf(lines, event)
  }

  private reportNoCpu(): void {
    this.hasNoCpu = true
    this.issue('no-cpu', 'expected the CPU on each line (perf script -F comm,pid,tid,cpu,time,event,trace), found none')
  }
}

const decoder = new TextDecoder()
