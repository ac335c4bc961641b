import { FormatError } from '../../../errors.ts'
import type { Clock } from '../../../model/events.ts'
import { PERFETTO_READS_IT } from '../../../model/left-out.ts'
import type { Origin } from '../../common/line-log.ts'
import type { ReadContext } from '../../format.ts'
import { PerfColumns } from './perf-columns.ts'
import { Scan } from './scan.ts'
import type { About } from './sched-events.ts'
import { type Handler, SchedTextLog } from './text-log.ts'

const CLOCK = /^# clockid: (\w+)/
const REFERENCE = /^# reference time: .* = (\d+)\.(\d{6}) \(TOD\) = (\d+)\.(\d{9}) \((\w+)\)/
const FACTS: readonly (readonly [string, RegExp])[] = [
  ['kernel', /^# os release : (\S+)/],
  ['cpus', /^# nrcpus online : (\d+)/],
  ['tool', /^# perf version : (\S+)/],
]
const CLOCKS: Readonly<Record<string, Clock>> = {
  monotonic: 'MONOTONIC',
  monotonic_raw: 'MONOTONIC_RAW',
  boottime: 'BOOTTIME',
  realtime: 'REALTIME',
}
const RECORD = 'PERF_RECORD_'
const COMM = /^(.*):(-?\d+)\/(-?\d+)$/
const IDS = /^\((-?\d+):(-?\d+)\):\((-?\d+):(-?\d+)\)/
const LOST = /lost[^\d]*(\d+)/
/** No clock is younger when perf runs: such times count from something else. */
const CLOCK_NS_MIN = 1e9
/** Rows of a text that goes back in time all the time have times since the row before. */
const STEPS_BACK_MIN = 8

/** Reads the text of `perf script`. */
export class PerfLog extends SchedTextLog {
  private rows = 0
  protected override readonly leftOutHint = PERFETTO_READS_IT
  private stepsBack = 0
  private firstNs: number | undefined
  private lastStampNs = -Infinity

  constructor(source: AsyncIterable<Uint8Array>, format: string, context: ReadContext) {
    const scan = new Scan()
    super(source, format, context, scan, new PerfColumns(scan))
    this.attributes['tool'] = 'perf'
  }

  protected override handlerOf(name: string): Handler | undefined {
    return name.startsWith(RECORD) ? 'record' : super.handlerOf(name)
  }

  /** What perf makes up at the start, for threads that were there already, has the time 0. */
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
    const clock = CLOCK.exec(text)?.[1]
    if (clock !== undefined && Object.hasOwn(CLOCKS, clock)) {
      this.clock = CLOCKS[clock]!
      this.attributes['clock_from'] = 'the header names it'
    }
    const [, seconds, micros, own, nanos, name] = REFERENCE.exec(text) ?? []
    if (name !== undefined && Object.hasOwn(CLOCKS, name)) {
      const real = BigInt(seconds!) * 1_000_000_000n + BigInt(micros!) * 1000n
      const ns = BigInt(own!) * 1_000_000_000n + BigInt(nanos!)
      this.maker.emit({
        kind: 'clocks',
        readings: [
          { clock: CLOCKS[name]!, ns },
          { clock: 'REALTIME', ns: real },
        ],
      })
    }
    return true
  }

  /** `PERF_RECORD_COMM: name:1/2`, `PERF_RECORD_EXIT(1:2):(1:1)`, `PERF_RECORD_LOST lost 5` */
  protected override readRecord(name: string): boolean {
    const what = name.slice(RECORD.length)
    const text = this.textFrom(this.scan.at)
    const { atNs } = this.context
    const { offset, line } = this.lines
    const base = { kind: 'thread', atNs, parentTid: -1 } as const
    if (what === 'COMM') {
      const [, comm, tgid, tid] = COMM.exec(text.replace(/^exec: /, '')) ?? []
      if (comm === undefined) return false
      const isNew = atNs > 0
      const id = this.comms.get(encoder.encode(comm), 0, encoder.encode(comm).length)
      const thread = { ...base, tid: Number(tid), tgid: Number(tgid), comm: id } as const
      this.maker.addAt({ ...thread, what: isNew ? 'rename' : 'known' }, offset, line)
      return true
    }
    if (what.startsWith('LOST')) {
      this.issue('lost-records', `perf says that ${LOST.exec(text)?.[1] ?? 'some'} were lost`)
      return true
    }
    const [, tgid, tid, , parent] = IDS.exec(text) ?? []
    if (tid === undefined || (what !== 'FORK' && what !== 'EXIT') || atNs <= 0) return false
    const thread = { ...base, tid: Number(tid), tgid: Number(tgid), comm: 0 }
    if (what === 'FORK') this.maker.addAt({ ...thread, what: 'fork', parentTid: Number(parent) }, offset, line)
    else this.maker.addAt({ ...thread, what: 'exit' }, offset, line)
    return true
  }

  protected override about(): About {
    const isRelative = this.firstNs !== undefined && this.firstNs < CLOCK_NS_MIN
    if (isRelative) {
      this.refuseDeltas()
      this.clock = 'unknown'
      this.attributes['times'] = 'since the first event (--reltime)'
    }
    return super.about()
  }

  private refuseDeltas(): void {
    if (this.stepsBack < STEPS_BACK_MIN || this.stepsBack * 10 < this.rows) return
    const hint = 'run perf script without --deltatime'
    const found = `times that go back ${this.stepsBack} times in ${this.rows} lines`
    throw new FormatError(this.format, { byte: 0 }, 'times that tell when', found, hint)
  }
}

const encoder = new TextEncoder()
