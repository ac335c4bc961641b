// trace.dat: trace-cmd's file, versions 6 and 7, little-endian: 17 08 44 "tracing" "6\0", byte order, size of a long,
// u32 page size, then
//
//   6  header_page, header_event, event formats, kernel symbols, thread names, options, a table of the CPUs' pages and
//      the clock, one after the other; then the pages
//   7  compression, place of the options, which contain the places of all other sections; the pages may be compressed
//
// The pages are those of the kernel's ring buffer, CPU after CPU: events of one CPU are in order of time, those of different
// CPUs, or of a thread on different CPUs, are not.

import { ByteRanges } from '../../../input/byte-ranges.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { type IssueCode, issueOf } from '../../../model/issues.ts'
import type { Names } from '../../../model/names.ts'
import { plural } from '../../../model/units.ts'
import { EventBatch } from '../../common/batches.ts'
import { TimeGuard } from '../../common/time-guard.ts'
import type { ReadContext } from '../../format.ts'
import { Marks } from '../tracepoints/marks.ts'
import { Tracepoints } from '../tracepoints/tracepoints.ts'
import { type CpuPages, readHead, type TraceBuffer, type TraceDat } from './head.ts'
import { type OnDamage, type PageRun, type PageSink, packedPages, plainPages, RingPages } from './pages.ts'

const FORMAT = 'trace-dat'

/** Reads a recording: see {@link Format.read}. */
export async function* readRecording(
  source: AsyncIterable<Uint8Array>,
  { names, range }: ReadContext,
): AsyncGenerator<TraceEvent[]> {
  const hint = 'decompress it and give the file itself, or record with `trace-cmd record --file-version 6`'
  const ranges = new ByteRanges(source, range, FORMAT, hint)
  const head = await readHead(ranges, FORMAT)
  yield* new TraceDatEvents(FORMAT, head, ranges, names).read()
}

/** Events of a batch. */
const BATCH_EVENTS = 8192
/** Times from here on are damage: 146 years since boot. */
const STAMP_END = 1n << 62n

/** Reads the pages of a trace.dat, CPU after CPU. */
class TraceDatEvents implements PageSink {
  private readonly batch = new EventBatch()
  private readonly pages: RingPages
  private readonly tracepoints: Tracepoints
  private readonly marks: Marks
  private guard = new TimeGuard()
  private cpu = 0
  private view: DataView = new DataView(new ArrayBuffer(0))
  /** Offset of `view` in the input. */
  private byte = 0

  constructor(
    private readonly format: string,
    private readonly head: TraceDat,
    private readonly ranges: ByteRanges,
    names: Names,
  ) {
    this.pages = new RingPages(head.headerPage)
    this.marks = new Marks(names, (event) => this.batch.add(event), false)
    this.tracepoints = new Tracepoints(names, this.marks)
    for (const text of head.formats) this.tracepoints.define(text)
  }

  /** All events; the first is the input's. */
  async *read(): AsyncGenerator<TraceEvent[]> {
    const { head } = this
    let clock: string | undefined
    for await (const buffer of head.buffers) {
      clock ??= buffer.clock
      if (buffer.clock !== clock) {
        const detail = `expected ${clock}, found ${buffer.clock}; the events of "${buffer.name}" are left out`
        this.issue('buffer-on-other-clock', detail, buffer.cpus[0]?.offset ?? 0, 0)
      } else for (const cpu of buffer.cpus) yield* this.readCpu(buffer, cpu)
    }
    this.begin(0n)
    if (this.tracepoints.decoded.length === 0) {
      this.issue('no-scheduler-events', 'expected some, found none; record with `trace-cmd record -e sched`', 0, 0)
    }
    for (const loss of head.facts.losses) {
      this.issue('lost-records', `${loss}: the kernel overwrote them, or they did not fit`, 0, 0)
    }
    this.tracepoints.leaveOut(this.batch.leftOut, 'trace-cmd report and KernelShark show them')
    this.batch.end()
    yield this.batch.take()
    yield* this.marks.rest()
    this.marks.finish(this.tracepoints.decoded.length > 0)
    yield this.batch.take()
  }

  /** Adds a record of the current page. */
  record(at: number, end: number, atNs: number): void {
    const event = this.tracepoints.decode(this.view, at, end, this.cpu, atNs)
    if (event === undefined) return
    if (typeof event === 'object') this.batch.add(event)
    else this.issue('short-record', `expected ${event} bytes, found ${end - at}`, this.byte + at, atNs)
  }

  /** Reports events that are missing before this page. */
  lost(count: number, atNs: number): void {
    const many = count < 0 ? 'some events' : plural(count, 'event')
    this.issue('lost-records', `CPU ${this.cpu}: ${many} overwritten before this one`, this.byte, atNs)
  }

  /** Reports the rest of a page that cannot be read. */
  damaged(at: number, expected: string, found: string): void {
    const detail = `expected ${expected}, found ${found}; the rest of the page is left out`
    this.issue('damaged-page', detail, this.byte + at, this.guard.lastNs)
  }

  private async *readCpu(buffer: TraceBuffer, cpu: CpuPages): AsyncGenerator<TraceEvent[]> {
    const { inflate } = this.head
    this.cpu = cpu.cpu
    this.guard = new TimeGuard()
    const damage: OnDamage = (code, detail, byte) => {
      this.issue(code, `CPU ${cpu.cpu}: ${detail}`, byte, this.guard.lastNs)
    }
    const runs = inflate
      ? packedPages(this.ranges, cpu, inflate, buffer.pageBytes, damage)
      : plainPages(this.ranges, cpu, buffer.pageBytes, damage)
    for await (const run of runs) {
      this.view = run.view
      this.byte = run.byte
      for (let at = run.at; at < run.end; at += buffer.pageBytes) {
        this.readPage(run, at, Math.min(at + buffer.pageBytes, run.end))
        if (this.batch.size >= BATCH_EVENTS) yield this.batch.take()
      }
    }
    yield this.batch.take()
  }

  private readPage({ view }: PageRun, at: number, end: number): void {
    const { pages } = this
    if (end - at < pages.headBytes)
      return this.damaged(at, `a page's head of ${pages.headBytes} bytes`, `${end - at} bytes`)
    if (pages.isEmpty(view, at)) return
    if (!this.batch.hasBegun) {
      const stamp = pages.timeOf(view, at)
      if (stamp >= STAMP_END) return this.damaged(at, 'a time below 2^62 ns', `${stamp} ns`)
      this.begin(stamp)
    }
    const doubt = this.guard.doubt(pages.startOf(view, at))
    if (doubt === undefined) pages.read(view, at, end, this)
    else this.issue('impossible-time', doubt, this.byte + at, this.guard.lastNs)
  }

  private begin(originNs: bigint): void {
    if (this.batch.hasBegun) return
    const { clock, attributes, tgids, toRealtimeNs } = this.head.facts
    const facts = { version: this.head.version, ...attributes }
    this.pages.setOrigin(originNs)
    const readings =
      toRealtimeNs !== undefined && clock !== 'unknown' && originNs > 0n
        ? [
            { clock, ns: originNs },
            { clock: 'REALTIME' as const, ns: originNs + toRealtimeNs },
          ]
        : []
    this.batch.begin(
      { kind: 'input', format: this.format, clock, originNs, attributes: facts, capabilities: { order: false } },
      ...(readings.length > 0 ? [{ kind: 'clocks', readings } as const] : []),
    )
    for (const [tid, tgid] of tgids) {
      this.batch.add({ kind: 'thread', what: 'known', atNs: 0, tid, tgid, comm: 0, parentTid: -1 })
    }
  }

  private issue(code: IssueCode, detail: string, byte: number, atNs: number): void {
    this.batch.add(issueOf(code, detail, { byte }, atNs))
  }
}
