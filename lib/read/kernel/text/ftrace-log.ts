import { FormatError } from '../../../errors.ts'
import type { Clock } from '../../../model/events.ts'
import { PERFETTO_READS_IT } from '../../../model/left-out.ts'
import type { Origin } from '../../common/line-log.ts'
import type { ReadContext } from '../../format.ts'
import { FtraceColumns } from './ftrace-columns.ts'
import { Scan } from './scan.ts'
import { SchedTextLog } from './text-log.ts'

const ENTRIES = /^# entries-in-buffer\/entries-written: (\d+)\/(\d+) +#P:(\d+)/
const LATENCY = /^# \w+ latency trace v\S+ on (\S+)/
const CPUS = /^cpus=(\d+)\s*$/
const LOST = /^CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]\s*$/
const SWITCHED = /^##### CPU \d+ buffer started ####\s*$/
const NAMED = /\bg2p clock (\w+)/
const READINGS = /\bclock_sync: (?=.*\b(?:mono|boot|raw|real)=\d)/
const READING = /\b(mono|boot|raw|real)=(\d{1,19})\b/g
const PARENT = /\btrace_event_clock_sync: parent_ts=(\d+)(?:\.(\d+))?/
const WALL = /\btrace_event_clock_sync: realtime_ts=(\d{1,16})\b/
/** So many of them are no accident. */
const TICKS_MAX = 3
const CLOCKS: Readonly<Record<string, Clock>> = {
  mono: 'MONOTONIC',
  boot: 'BOOTTIME',
  raw: 'MONOTONIC_RAW',
  mono_raw: 'MONOTONIC_RAW',
  real: 'REALTIME',
}

/** Reads ftrace's texts, and those of `trace-cmd report`. */
export class FtraceLog extends SchedTextLog {
  private readonly ftrace: FtraceColumns
  /** Lines ahead of the first time that have a whole number in its place. */
  private ticks = 0
  /** A marker has named the clock. */
  private isNamed = false
  protected override readonly leftOutHint = PERFETTO_READS_IT

  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    const scan = new Scan()
    const columns = new FtraceColumns(scan)
    super(source, format, context, scan, columns)
    this.ftrace = columns
    this.attributes['tool'] = 'ftrace'
  }

  protected override hasStamp(): boolean {
    if (this.ftrace.isRelative) this.attributes['times'] = "microseconds since the buffer's start (latency-format)"
    return !this.ftrace.isTicks
  }

  protected override readUntimed(): void {
    if (this.hasHead || ++this.ticks < TICKS_MAX) {
      return this.reject('impossible-time', 'expected a time in seconds, found a whole number')
    }
    const { offset, line } = this.lines
    const hint = "trace_clock was a counter or the processor's: echo mono > trace_clock"
    throw new FormatError(this.format, { byte: offset, line }, 'times in seconds', 'whole numbers', hint)
  }

  protected override readOther(text: string): boolean {
    const entries = ENTRIES.exec(text)
    if (entries) {
      const [kept, written] = [Number(entries[1]), Number(entries[2])]
      this.attributes['cpus'] = Number(entries[3])
      const lost = `the kernel says that it kept ${kept} of ${written} entries: the others were overwritten`
      if (kept < written) this.issue('lost-records', lost)
      return true
    }
    const lost = LOST.exec(text)
    if (lost) this.issue('lost-records', `the kernel says that ${lost[2] ?? 'some'} were lost on CPU ${lost[1]}`)
    const kernel = LATENCY.exec(text)?.[1]
    if (kernel) this.attributes['kernel'] = kernel
    const cpus = CPUS.exec(text)?.[1]
    if (cpus) Object.assign(this.attributes, { tool: 'trace-cmd report', cpus: Number(cpus) })
    return Boolean(lost || cpus) || SWITCHED.test(text)
  }

  /** Markers are how a text tells its clock. */
  protected override readMark(text: string, origin: Origin): boolean {
    const named = NAMED.exec(text)?.[1]
    if (named === undefined) return this.readSync(text, origin)
    this.nameClock(named)
    return true
  }

  private readSync(text: string, origin: Origin): boolean {
    const stampNs = BigInt(origin.high) * 1_000_000_000n + BigInt(origin.low) + BigInt(this.context.atNs)
    if (READINGS.test(text)) {
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
    const clock = Object.hasOwn(CLOCKS, name) ? CLOCKS[name] : undefined
    if (clock === undefined || this.isTooLate()) return
    this.clock = clock
    this.shiftNs = 0n
    this.isNamed = true
    this.attributes['clock_from'] = 'the marker "g2p clock" names it'
  }

  private readClocks(text: string, stampNs: bigint): void {
    const readings = Array.from(text.matchAll(READING), ([, name, ns]) => ({ clock: CLOCKS[name!]!, ns: BigInt(ns!) }))
    if (readings.length > 1) this.maker.emit({ kind: 'clocks', readings })
    const best = readings.find(({ clock }) => clock === 'MONOTONIC') ?? readings[0]!
    this.anchor(best.clock, best.ns, stampNs, 'clock_sync')
  }

  /** The marker was written right after the clock was read: what lies between is how far the log's clock is off, at most. */
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
      const detail = 'expected the marker that tells the clock near the start, found it later; not used'
      this.issue('late-clock-marker', detail)
    }
    return true
  }
}
