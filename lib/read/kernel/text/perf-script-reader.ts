// The text of `perf script`, with any fields (-F), and its header (--header):
//
//   # clockid: monotonic (1)
//   # reference time: 2026-11-21 16:13:51.384101 = 1795277631.384101 (TOD) = 16528.456065734 (monotonic)
//             perf   415/415   [000] 16528.503456462:       sched:sched_switch: prev_comm=perf … ==> next_comm=bash …
//             bash   418 [001] 16528.504703: PERF_RECORD_COMM: bash:416/418                        --show-task-events
//
// The same events as in ftrace's texts, and perf's records of threads; call stacks (lines that begin with a tab) are left
// out. Only the header names the clock, and only after `perf record -k`: docs/scheduler.md.

import { Ascii } from '../../../bytes/ascii.ts'
import { FormatError } from '../../../errors.ts'
import { clockNamed } from '../../../model/clock-names.ts'
import { PERFETTO_READS_IT } from '../../../model/left-out.ts'
import type { Names } from '../../../model/names.ts'
import type { Origin } from '../../common/line-log.ts'
import type { Format, ReadContext } from '../../format.ts'
import { accessOf, mappingOf } from './perf-accesses.ts'
import { Columns, Scan } from './scan.ts'
import { type About, type Handler, SchedTextLog } from './text-log.ts'

/** Reads a text: see {@link Format.read}. */
export const readPerfScript: Format['read'] = (source, context) => new PerfLog(source, 'perf-script', context).read()

/** Names are padded to so many bytes, except in records with call stacks. */
const COMM_WIDTH = 16
const MISC_MAX = 3

/**
 * The columns of `perf script` (tools/perf/builtin-script.c), most of which -F may leave out:
 *
 *              perf   415/415   [000] K 16528.503449201:          1       sched:sched_waking: …
 *     perf   415 [000] 16528.503449: sched:sched_waking: …          a record with a call stack, which follows
 */
class PerfColumns extends Columns {
  /** Events that the last line's sample counts. */
  period = 1
  /** Width of the name on the last line. */
  private width = COMM_WIDTH

  override read(): boolean {
    this.scan.trimEnd()
    const start = this.scan.at
    if (this.readFrom(start, this.width) || this.readFrom(start, COMM_WIDTH)) return true
    for (let width = COMM_WIDTH - 1; width >= 0; width--) if (this.readFrom(start, width)) return true
    return false
  }

  /** Reads a line whose name takes `width` bytes. */
  private readFrom(start: number, width: number): boolean {
    const { scan } = this
    if (start + width >= scan.end || scan.bytes[start + width] !== Ascii.Blank) return false
    scan.at = start + width
    scan.skipBlanks()
    if (!this.readIds() || !this.readMiddle() || !this.readStamp()) return false
    this.width = width
    this.commStart = start
    this.commEnd = start + width
    while (this.commStart < this.commEnd && scan.bytes[this.commStart] === Ascii.Blank) this.commStart++
    return true
  }

  /** `415`, `415/418`, `-1`: a thread that has ended. */
  private readIds(): boolean {
    const { scan } = this
    this.tgid = -1
    this.tid = scan.integer()
    if (scan.eatByte(Ascii.Slash)) {
      this.tgid = this.tid
      this.tid = scan.integer()
    }
    return !Number.isNaN(this.tid) && !Number.isNaN(this.tgid) && scan.byte === Ascii.Blank
  }

  /** `[000] K` */
  private readMiddle(): boolean {
    const { scan } = this
    scan.skipBlanks()
    this.cpu = -1
    if (scan.byte === Ascii.OpenSquare) {
      if (!this.readCpu()) return false
      scan.skipBlanks()
    }
    if (isDigit(scan.byte) || scan.byte === Ascii.Minus) return true
    const misc = scan.at
    scan.skipWord()
    if (scan.at - misc > MISC_MAX) return false
    scan.skipBlanks()
    return true
  }

  /** The name, with its group where the last part is modifiers: `cycles:ppp`. */
  protected override readName(): boolean {
    if (!super.readName()) return false
    const { bytes } = this.scan
    let at = this.nameEnd
    while (at > this.nameStart && MODIFIERS.has(bytes[at - 1]!)) at--
    if (at > this.nameStart || bytes[at - 1] !== Ascii.Colon) return true
    for (at--; bytes[at - 1] !== Ascii.Blank && bytes[at - 1] !== Ascii.Colon && at > 0; at--);
    this.nameStart = at
    return true
  }

  /** `16528.503449:          1       sched:sched_waking:` */
  private readStamp(): boolean {
    const { scan } = this
    const isNegative = scan.eatByte(Ascii.Minus)
    if (!scan.time() || !scan.eatByte(Ascii.Colon)) return false
    if (isNegative) {
      scan.seconds = -scan.seconds
      scan.nanos = -scan.nanos
    }
    scan.skipBlanks()
    this.period = 1
    if (isDigit(scan.byte)) {
      this.period = Math.max(scan.integer(), 1) || 1
      scan.skipWord()
      scan.skipBlanks()
    }
    return this.readName()
  }
}

/** Letters after an event's name (perf-list): in which modes of the CPU it is counted, how precisely. */
const MODIFIERS: ReadonlySet<number> = new Set(Array.from('ukhIGHpPSDWebR', (letter) => letter.charCodeAt(0)))

const isDigit = (byte: number) => byte >= Ascii.Zero && byte <= Ascii.Nine

const CLOCK = /^# clockid: (\w+)/
const REFERENCE = /^# reference time: .* = (\d+)\.(\d{6}) \(TOD\) = (\d+)\.(\d{9}) \((\w+)\)/
const FACTS: readonly (readonly [string, RegExp])[] = [
  ['kernel', /^# os release : (\S+)/],
  ['cpus', /^# nrcpus online : (\d+)/],
  ['tool', /^# perf version : (\S+)/],
]
const RECORD = 'PERF_RECORD_'
const COMM = /^(.*):(-?\d+)\/(-?\d+)$/
const IDS = /^\((-?\d+):(-?\d+)\):\((-?\d+):(-?\d+)\)/
const LOST = /lost\D{0,16}(\d+)/
/** No clock is below this when perf runs: smaller times are relative. */
const CLOCK_NS_MIN = 1e9
/** With so many steps back in time, times are relative to the previous row. */
const STEPS_BACK_MIN = 8

/** Reads the text of `perf script`. */
class PerfLog extends SchedTextLog {
  private rows = 0
  protected override readonly leftOutHint = PERFETTO_READS_IT
  private stepsBack = 0
  private hasAccesses = false
  private hasSwitches = false
  private readonly texts: Names
  private firstNs: number | undefined
  private lastStampNs = -Infinity

  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    const scan = new Scan()
    super(source, format, context, scan, new PerfColumns(scan))
    this.attributes['tool'] = 'perf'
    this.texts = context.names
  }

  protected override handlerOf(name: string): Handler | undefined {
    // Other events may be samples of data addresses.
    const handler = super.handlerOf(name)
    if (handler === 'switch' || handler === 'waking') this.hasSwitches = true
    return handler ?? 'record'
  }

  /** Records that perf synthesizes at the start, for existing threads, have the time 0. */
  protected override hasStamp(): boolean {
    const { scan, columns } = this
    if (scan.seconds !== 0 || scan.nanos !== 0) return true
    return scan.bytes[columns.nameStart] !== RECORD.charCodeAt(0)
  }

  protected override readLine(origin: Origin): void {
    super.readLine(origin)
    if (this.maker.batch.hasBegun) return
    const { scan } = this
    const stampNs = scan.seconds * 1e9 + scan.nanos
    this.rows++
    this.firstNs ??= stampNs
    if (stampNs < this.lastStampNs) this.stepsBack++
    this.lastStampNs = stampNs
  }

  protected override readOther(text: string): boolean {
    if (!text.startsWith('#')) return false
    for (const [name, pattern] of FACTS) {
      const value = pattern.exec(text)?.[1]
      if (value !== undefined)
        this.attributes[name] = name === 'cpus' ? Number(value) : name === 'tool' ? `perf ${value}` : value
    }
    const clock = clockNamed(CLOCK.exec(text)?.[1] ?? '')
    if (clock !== undefined) {
      this.clock = clock
      this.attributes['clock_from'] = 'the header names it'
    }
    const [, seconds, micros, ownSeconds, nanos, name] = REFERENCE.exec(text) ?? []
    const own = clockNamed(name ?? '')
    if (own !== undefined) {
      const real = BigInt(seconds!) * 1_000_000_000n + BigInt(micros!) * 1000n
      const ns = BigInt(ownSeconds!) * 1_000_000_000n + BigInt(nanos!)
      this.maker.emit({
        kind: 'clocks',
        readings: [
          { clock: own, ns },
          { clock: 'REALTIME', ns: real },
        ],
      })
    }
    return true
  }

  /** `PERF_RECORD_COMM: name:1/2`, `PERF_RECORD_EXIT(1:2):(1:1)`, `PERF_RECORD_LOST lost 5` */
  protected override readRecord(name: string): boolean {
    if (!name.startsWith(RECORD)) return this.readAccess(name)
    const what = name.slice(RECORD.length)
    const text = this.textFrom(this.scan.at)
    const { atNs } = this.context
    const { lines } = this
    const base = { kind: 'thread', atNs, parentTid: -1 } as const
    if (what === 'COMM') {
      const [, comm, tgid, tid] = COMM.exec(text.replace(/^exec: /, '')) ?? []
      if (comm === undefined) return false
      const isNew = atNs > 0
      const id = this.comms.get(encoder.encode(comm), 0, encoder.encode(comm).length)
      const thread = { ...base, tid: Number(tid), tgid: Number(tgid), comm: id } as const
      this.maker.addOf(lines, { ...thread, what: isNew ? 'rename' : 'known' })
      return true
    }
    if (what.startsWith('LOST')) {
      this.issue('lost-records', `perf reports that ${LOST.exec(text)?.[1] ?? 'some'} were lost`)
      return true
    }
    if (what.startsWith('MMAP')) return this.readMapping(text)
    const [, tgid, tid, , parent] = IDS.exec(text) ?? []
    if (tid === undefined || (what !== 'FORK' && what !== 'EXIT') || atNs <= 0) return false
    const thread = { ...base, tid: Number(tid), tgid: Number(tgid), comm: 0 }
    if (what === 'FORK') this.maker.addOf(lines, { ...thread, what: 'fork', parentTid: Number(parent) })
    else this.maker.addOf(lines, { ...thread, what: 'exit' })
    return true
  }

  /** A sample of another event: left out without an address of data. */
  private readAccess(name: string): boolean {
    const { scan, columns, context, lines } = this
    const { atNs, tid, cpu } = context
    // Modifiers come after the name: page-faults:u.
    const start = scan.bytes.lastIndexOf(Ascii.Blank, columns.nameStart - 1) + 1
    const full = decoder.decode(scan.bytes.subarray(Math.max(start, lines.start), columns.nameEnd))
    const plain = full.replace(/:[a-zA-Z]{1,16}$/, '')
    const event = this.texts.id(full || name)
    const period = (columns as PerfColumns).period
    const access = accessOf(this.textFrom(scan.at), plain, event, period, { atNs, pid: context.tgid, tid, cpu })
    if (!access) return false
    this.hasAccesses = true
    this.maker.addOf(lines, access)
    return true
  }

  /** Mappings before the recording began have no time. */
  private readMapping(text: string): boolean {
    const mapping = mappingOf(text, this.context.atNs, (path) => this.texts.id(path))
    if (!mapping) return false
    this.maker.addOf(this.lines, mapping)
    return true
  }

  protected override about(): About {
    const isRelative = this.firstNs !== undefined && this.firstNs < CLOCK_NS_MIN
    if (isRelative) {
      this.refuseDeltas()
      this.clock = 'unknown'
      this.attributes['times'] = 'since the first event (--reltime)'
    }
    const about = super.about()
    if (!this.hasAccesses) return about
    return { ...about, capabilities: { accesses: true, ...(!this.hasSwitches && { switches: false }) } }
  }

  private refuseDeltas(): void {
    if (this.stepsBack < STEPS_BACK_MIN || this.stepsBack * 10 < this.rows) return
    const hint = 'run perf script without --deltatime'
    const found = `times that go back ${this.stepsBack} times in ${this.rows} lines`
    throw new FormatError(this.format, { byte: 0 }, 'absolute times', found, hint)
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
