// ftrace's text: `trace` and `trace_pipe` of tracefs, with any options, and `trace-cmd report`:
//
//   # entries-in-buffer/entries-written: 401/401   #P:2
//   #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
//             bash-31384   [001] d..2. 16397.032913: sched_waking: comm=cat pid=31316 prio=120 target_cpu=000
//             bash-31384   (  31384) [001] 16397.032915: sched_switch: prev_comm=bash … ==> next_comm=cat …      record-tgid
//       bash-31384     1d..2. 24956us+: sched_switch: …                                                latency-format
//   CPU:0 [LOST 123 EVENTS]
//
// sched_switch, sched_waking (sched_wakeup where there is none), sched_process_fork, _exec, _exit, task_rename, cpu_frequency, cpu_idle
// and marks (trace_marker) are read, others
// are counted. Times are microseconds (`trace-cmd report -t`: nanoseconds) of a clock that only markers name:
// docs/scheduler.md.

import { Ascii } from '../../../bytes/ascii.ts'
import { FormatError } from '../../../errors.ts'
import { peek } from '../../../input/gunzip.ts'
import { clockNamed } from '../../../model/clock-names.ts'
import type { Clock, TraceEvent } from '../../../model/events.ts'
import { PERFETTO_READS_IT } from '../../../model/left-out.ts'
import type { Origin } from '../../common/line-log.ts'
import { HEAD_BYTES, type ReadContext } from '../../format.ts'
import { Columns, Scan } from './scan.ts'
import { type About, SchedTextLog } from './text-log.ts'

/** Reads a text: see {@link Format.read}. */
export async function* readFtrace(
  source: AsyncIterable<Uint8Array>,
  context: ReadContext,
): AsyncGenerator<TraceEvent[]> {
  const { head, rest } = await peek(source, HEAD_BYTES)
  yield* new FtraceLog(rest, 'ftrace', context, areTicks(head)).read()
}

/** Place of the `-` between name and thread: after 16 bytes, or 8 (latency format). Names may contain more of them. */
const DASHES = [16, 8]
/** Last place of it in texts of other tools, or after a buffer's name (`trace-cmd report -B`). */
const DASH_MAX = 64
const IRQ = new Set(Array.from('hHsZz', (letter) => letter.charCodeAt(0)))
/** Number of flags: interrupts off, reschedule, in an interrupt, depth of preemption, of migration. */
const FLAGS_MIN = 4
const FLAGS_MAX = 6

/**
 * The columns of ftrace's texts (kernel/trace/trace_output.c) and of `trace-cmd report`:
 *
 *              bash-16879   (  16879) [001] d..2. 24956.123456: sched_switch: …      each but [001] may be missing
 *     bash-16879     1d..2. 24956us+: sched_switch: …                                latency format: time since the buffer's start
 */
class FtraceColumns extends Columns {
  /** Times are microseconds since the buffer's start. */
  isRelative = false
  /** Times are ticks, or a counter. */
  isTicks = false
  /** Place of the dash on the last line. */
  private dash = DASHES[0]!

  override read(): boolean {
    this.scan.trimEnd()
    const start = this.scan.at
    if (this.readFrom(start, this.dash)) return true
    for (const dash of DASHES) if (dash !== this.dash && this.readFrom(start, dash)) return true
    for (let dash = 1; dash <= DASH_MAX; dash++) if (this.readFrom(start, dash)) return true
    return false
  }

  /** Reads a line whose `-` is at `start + dash`. */
  private readFrom(start: number, dash: number): boolean {
    const { scan } = this
    if (start + dash >= scan.end || scan.bytes[start + dash] !== Ascii.Minus) return false
    scan.at = start + dash + 1
    this.tid = scan.digits()
    if (this.tid < 0) return false
    scan.skipBlanks()
    this.tgid = -1
    if (scan.byte === Ascii.OpenRound && !this.readTgid()) return false
    const isBracketed = scan.byte === Ascii.OpenSquare
    if (isBracketed ? !this.readCpu() : !this.readLatencyCpu()) return false
    if (isBracketed) scan.skipBlanks()
    if (!this.readFlags(!isBracketed) || !this.readStamp() || !this.readName()) return false
    this.dash = dash
    this.commEnd = start + dash
    this.commStart = Math.max(start, this.commEnd - DASHES[0]!)
    while (this.commStart < this.commEnd && scan.bytes[this.commStart] === Ascii.Blank) this.commStart++
    return true
  }

  /** `(  16879)`, `(-------)` */
  private readTgid(): boolean {
    const { scan } = this
    scan.at++
    scan.skipBlanks()
    if (scan.byte === Ascii.Minus) while (scan.byte === Ascii.Minus) scan.at++
    else this.tgid = scan.digits()
    if (!scan.eatByte(Ascii.CloseRound)) return false
    scan.skipBlanks()
    return true
  }

  private readLatencyCpu(): boolean {
    this.cpu = this.scan.digits()
    return this.cpu >= 0
  }

  private readFlags(isRequired: boolean): boolean {
    const { scan } = this
    this.isIrq = false
    const first = scan.byte
    if (first >= Ascii.Zero && first <= Ascii.Nine) return !isRequired
    const start = scan.at
    scan.skipWord()
    const length = scan.at - start
    if (length < FLAGS_MIN || length > FLAGS_MAX) return false
    this.isIrq = IRQ.has(scan.bytes[start + 2]!)
    scan.skipBlanks()
    return true
  }

  /** `123.456789:`, `123.456789: (+12)`, `24956us+:` */
  private readStamp(): boolean {
    const { scan } = this
    const start = scan.at
    this.isRelative = false
    this.isTicks = false
    if (!scan.time()) {
      scan.at = start
      const count = scan.digits()
      if (count < 0) return false
      this.isRelative = scan.byte === 0x75 && scan.bytes[scan.at + 1] === 0x73 // "us"
      this.isTicks = !this.isRelative
      const unit = this.isTicks ? 1e9 : 1e6
      scan.seconds = Math.floor(count / unit)
      scan.nanos = (count % unit) * (1e9 / unit)
      if (this.isRelative) scan.at += 2
    }
    if (scan.byte !== Ascii.Colon) scan.at++ // mark of the time to the next event: + ! # * @ $
    if (!scan.eatByte(Ascii.Colon)) return false
    scan.skipBlanks()
    if (scan.byte === Ascii.OpenRound) {
      scan.skipWord()
      scan.skipBlanks()
    }
    return true
  }
}

/** Are all times in the first lines whole numbers? `trace_clock` is a counter or the processor's then. */
function areTicks(head: Uint8Array): boolean {
  const scan = new Scan()
  const columns = new FtraceColumns(scan)
  let ticks = 0
  for (let start = 0, end = head.indexOf(Ascii.LineFeed); end >= 0; end = head.indexOf(Ascii.LineFeed, start)) {
    Object.assign(scan, { bytes: head, at: start, end })
    if (columns.read() && !columns.isTicks) return false
    if (columns.isTicks) ticks++
    columns.isTicks = false
    start = end + 1
  }
  return ticks >= TICKS_MAX
}

const ENTRIES = /^# entries-in-buffer\/entries-written: (\d+)\/(\d+) +#P:(\d+)/
const LATENCY = /^# \w+ latency trace v\S+ on (\S+)/
const CPUS = /^cpus=(\d+)\s*$/
const LOST = /^CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]\s*$/
const SWITCHED = /^##### CPU \d+ buffer started ####\s*$/
const NAMED = /\bg2p clock (\w+)/
const READINGS = [/\bclock_sync: /, /\b(?:mono|boot|raw|real)=\d/]
const hasReadings = (text: string) => READINGS.every((part) => part.test(text))
const READING = /\b(mono|boot|raw|real)=(\d{1,19})\b/g
const PARENT = /\btrace_event_clock_sync: parent_ts=(\d+)(?:\.(\d+))?/
const SYNC = /\btrace_event_clock_sync: /
const WALL = /\btrace_event_clock_sync: realtime_ts=(\d{1,16})\b/
/** With so many whole numbers as times, the log has no times. */
const TICKS_MAX = 3

/** Reads ftrace's texts, and those of `trace-cmd report`. */
class FtraceLog extends SchedTextLog {
  declare protected readonly columns: FtraceColumns
  /** Lines with a whole number as time, ahead of the first time. */
  private ticks = 0
  /** A marker has named the clock. */
  private isNamed = false
  protected override readonly leftOutHint = PERFETTO_READS_IT

  /** `areTicks`: its times are whole numbers. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    format: string,
    context: ReadContext,
    private readonly areTicks: boolean,
  ) {
    const scan = new Scan()
    super(source, format, context, scan, new FtraceColumns(scan))
    this.attributes['tool'] = 'ftrace'
    if (areTicks)
      this.attributes['times'] = "whole numbers (trace_clock is a counter or the processor's), drawn as nanoseconds"
  }

  protected override about(): About {
    return this.areTicks ? { ...super.about(), times: 'order' } : super.about()
  }

  protected override hasStamp(): boolean {
    if (this.columns.isRelative) this.attributes['times'] = "microseconds since the buffer's start (latency-format)"
    return this.columns.isTicks === this.areTicks
  }

  protected override readUntimed(): void {
    const detail = this.areTicks
      ? 'expected a whole number as time, found seconds'
      : 'expected a time in seconds, found a whole number'
    if (this.areTicks || this.hasHead || ++this.ticks < TICKS_MAX) return this.reject('impossible-time', detail)
    const hint = "trace_clock was a counter or the processor's: echo mono > trace_clock"
    throw new FormatError(this.format, this.lines.position, 'times in seconds', 'whole numbers', hint)
  }

  protected override readOther(text: string): boolean {
    const entries = ENTRIES.exec(text)
    if (entries) {
      const [kept, written] = [Number(entries[1]), Number(entries[2])]
      this.attributes['cpus'] = Number(entries[3])
      const lost = `the kernel kept ${kept} of ${written} entries: the others were overwritten`
      if (kept < written) this.issue('lost-records', lost)
      return true
    }
    const lost = LOST.exec(text)
    if (lost) this.issue('lost-records', `the kernel reports that ${lost[2] ?? 'some'} were lost on CPU ${lost[1]}`)
    const kernel = LATENCY.exec(text)?.[1]
    if (kernel) this.attributes['kernel'] = kernel
    const cpus = CPUS.exec(text)?.[1]
    if (cpus) Object.assign(this.attributes, { tool: 'trace-cmd report', cpus: Number(cpus) })
    return Boolean(lost || cpus) || SWITCHED.test(text)
  }

  /** Only markers name the clock of a text. */
  protected override readMark(text: string, origin: Origin): boolean {
    if (this.areTicks) return NAMED.test(text) || hasReadings(text) || SYNC.test(text) // no clock has such times
    const named = NAMED.exec(text)?.[1]
    if (named === undefined) return this.readSync(text, origin)
    this.nameClock(named)
    return true
  }

  private readSync(text: string, origin: Origin): boolean {
    const stampNs = BigInt(origin.high) * 1_000_000_000n + BigInt(origin.low) + BigInt(this.context.atNs)
    if (hasReadings(text)) {
      this.readClocks(text, stampNs)
      return true
    }
    const parent = PARENT.exec(text)
    if (parent) {
      const ns = BigInt(parent[1]!) * 1_000_000_000n + BigInt((parent[2] ?? '').padEnd(9, '0').slice(0, 9))
      this.anchor('MONOTONIC', ns, stampNs, 'trace_event_clock_sync')
    }
    const wall = WALL.exec(text)?.[1]
    if (wall !== undefined && this.clock !== 'unknown') {
      const ns = BigInt(wall) * 1_000_000n
      const here = { clock: this.clock, ns: stampNs + this.shiftNs }
      this.maker.emit({ kind: 'clocks', readings: [here, { clock: 'REALTIME', ns }] })
    }
    return parent !== null || wall !== undefined
  }

  private nameClock(name: string): void {
    const clock = clockNamed(name)
    if (clock === undefined || this.isTooLate()) return
    this.clock = clock
    this.shiftNs = 0n
    this.isNamed = true
    this.attributes['clock_from'] = 'the marker "g2p clock" names it'
  }

  private readClocks(text: string, stampNs: bigint): void {
    const readings = Array.from(text.matchAll(READING), ([, name, ns]) => ({
      clock: clockNamed(name!)!,
      ns: BigInt(ns!),
    }))
    if (readings.length > 1) this.maker.emit({ kind: 'clocks', readings })
    const best = readings.find(({ clock }) => clock === 'MONOTONIC') ?? readings[0]!
    this.anchor(best.clock, best.ns, stampNs, 'clock_sync')
  }

  /** The marker was written right after the clock was read: the time between is the error of the offset. */
  private anchor(clock: Clock, ns: bigint, stampNs: bigint, marker: string): void {
    if (this.isNamed || this.clock !== 'unknown' || this.isTooLate()) return
    this.clock = clock
    this.shiftNs = ns - stampNs
    const by = `${Number(this.shiftNs) / 1e6} ms`
    this.attributes['clock_from'] =
      `inferred: the marker ${marker} moves all times by ${by}; it was written some time after it was read`
  }

  private isTooLate(): boolean {
    if (!this.maker.batch.hasBegun) return false
    if (this.clock === 'unknown') {
      const detail = 'expected the marker that names the clock near the start, found it later; not used'
      this.issue('late-clock-marker', detail)
    }
    return true
  }
}
