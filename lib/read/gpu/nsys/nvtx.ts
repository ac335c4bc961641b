import type { SqliteRows } from '../../../input/sqlite/rows.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { plural } from '../../../model/units.ts'
import { NvtxRanges, OPEN_NS, type PayloadBits, payloadOf, type Style } from './nvtx-ranges.ts'
import type { Report } from './report.ts'

const TABLE = 'NVTX_EVENTS'
const COLUMNS = [
  ...['start', 'end', 'eventType', 'globalTid', 'endGlobalTid', 'text', 'textId', 'domainId', 'category', 'color'],
  ...['uint64Value', 'int64Value', 'doubleValue', 'uint32Value', 'int32Value', 'floatValue', 'jsonText', 'jsonTextId'],
  'binaryData',
] as const
const [START, END, TYPE, TID, END_TID, TEXT, TEXT_ID, DOMAIN, CATEGORY, COLOR] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
/** Index of the first payload column; PAYLOADS are the types of all. */
const PAYLOAD = 10
const [JSON_TEXT, JSON_TEXT_ID, BINARY] = [16, 17, 18]
const PAYLOADS = ['u64', 'i64', 'f64', 'u32', 'i32', 'f32'] as const

/** Kind of an NVTX row. */
type NvtxType =
  | 'category'
  | 'mark'
  | 'open push'
  | 'open start'
  | 'lone end'
  | 'thread'
  | 'push-pop'
  | 'start-end'
  | 'domain'

/** Types of NVTX rows (nsys's ENUM_NSYS_EVENT_TYPE; from 64 on those of nvtxt files). */
const NVTX_TYPES: Readonly<Record<number, NvtxType>> = {
  33: 'category',
  34: 'mark',
  35: 'open push',
  36: 'lone end',
  37: 'open start',
  38: 'lone end',
  39: 'thread',
  59: 'push-pop',
  60: 'start-end',
  64: 'category',
  65: 'mark',
  66: 'open push',
  67: 'lone end',
  68: 'open start',
  69: 'lone end',
  70: 'push-pop',
  71: 'start-end',
  75: 'domain',
}

/** Types of NVTX rows that are not drawn: ends of domains, names of CUDA objects (other tables contain them), facts of nvtxt files. */
const NVTX_WITHOUT_EVENT = new Set([72, 73, 74, 76, 97, 98, 99])

/** NVTX ranges and marks of a report. */
export class NvtxReader {
  readonly ranges: NvtxRanges
  /** Names that the program gave its threads, by {@link Report.threads}. */
  readonly threadNames = new Map<number, number>()
  private readonly domains = new Map<string, number>()
  private readonly categories = new Map<string, number>()
  private loneEnds = 0
  private unknown = 0
  private firstUnknown = 0

  constructor(private readonly report: Report) {
    this.ranges = new NvtxRanges({
      pidOf: (thread) => report.threads.list[thread]!.pid,
      tidOf: (thread) => report.threads.list[thread]!.tid,
      threadName: (thread) => report.threadNames[thread] ?? 0,
      domainName: (thread, domainId) => this.domainName(thread, domainId),
      categoryName: (thread, domainId, categoryId) => this.categoryName(thread, domainId, categoryId),
      text: (name) => report.names.text(name),
      get lastNs() {
        return report.lastNs
      },
    })
  }

  async read(): Promise<void> {
    for await (const row of this.report.pages(TABLE, COLUMNS)) while (row.next()) this.take(row)
    if (this.loneEnds > 0) {
      const detail = `${plural(this.loneEnds, 'range')} ended that began before the recording`
      this.report.issue('end-without-start', detail, 0, 0, ['nvtx'])
    }
    if (this.unknown > 0) {
      const detail = `${plural(this.unknown, 'row')}, the first of type ${this.firstUnknown}: not drawn`
      this.report.issue('nvtx-type-unknown', detail)
    }
  }

  /** See {@link NvtxRanges.events}. */
  *events(): Generator<TraceEvent[], void> {
    yield* this.ranges.events()
    const { openRanges } = this.ranges
    if (openRanges === 0) return
    const detail = `${plural(openRanges, 'NVTX range')} open at the end: drawn up to the last event of the report`
    this.report.issue('range-without-end', detail, this.report.lastNs)
  }

  private take(row: SqliteRows): void {
    const { report } = this
    const type = NVTX_TYPES[row.number(TYPE)]
    if (type === undefined) return this.countUnknown(row.number(TYPE))
    const thread = report.threads.of(row.high(TID), row.low(TID))
    const scope = `${this.processOf(thread)} ${row.number(DOMAIN, 0)}`
    switch (type) {
      case 'domain':
        this.domains.set(scope, this.textOf(row))
        return
      case 'category':
        this.categories.set(`${scope} ${row.number(CATEGORY, 0)}`, this.textOf(row))
        return
      case 'thread':
        this.threadNames.set(thread, this.textOf(row))
        return
      case 'lone end':
        this.loneEnds++
        return
      case 'mark':
        return this.add(row, 'mark', thread, report.time(row, START))
      case 'open push':
      case 'push-pop':
        return this.add(row, 'push-pop', thread, row.isNull(END) ? OPEN_NS : report.time(row, END))
      case 'open start':
      case 'start-end':
        return this.add(row, 'start-end', thread, row.isNull(END) ? OPEN_NS : report.time(row, END))
    }
  }

  private countUnknown(type: number): void {
    if (NVTX_WITHOUT_EVENT.has(type)) return this.report.leftOut.add(`NVTX rows of type ${type}`)
    if (this.unknown++ === 0) this.firstUnknown = type
  }

  private add(row: SqliteRows, what: Style['what'], thread: number, rowEndNs: number): void {
    const { report } = this
    const startNs = report.time(row, START)
    const isOpen = rowEndNs === OPEN_NS
    const endNs = report.endOf(TABLE, startNs, isOpen ? startNs : rowEndNs)
    if (endNs === undefined) return
    const endThread = row.isNull(END_TID) ? thread : report.threads.of(row.high(END_TID), row.low(END_TID))
    const [domainId, categoryId] = [row.number(DOMAIN, 0), row.number(CATEGORY, 0)]
    const color = row.isNull(COLOR) ? -1 : opaque(row.low(COLOR))
    const payload = payloadOf(row, PAYLOAD, PAYLOADS) ?? this.structureOf(row)
    const style = { what, thread, endThread, domainId, categoryId, color, payload: payload?.type }
    this.ranges.add(startNs, isOpen ? OPEN_NS : endNs, this.textOf(row), style, payload)
    report.count(TABLE)
  }

  /** A payload of a structure that the program defined: as JSON if it was exported so, else of unknown content. */
  private structureOf(row: SqliteRows): PayloadBits | undefined {
    const { names } = this.report
    const text = row.text(JSON_TEXT)
    const json = text === '' ? this.report.string(row.number(JSON_TEXT_ID)) : names.id(text)
    if (json !== 0) return { type: 'json', high: 0, low: json }
    return row.isNull(BINARY) ? undefined : { type: 'unknown', high: 0, low: 0 }
  }

  private textOf(row: SqliteRows): number {
    const { names } = this.report
    const text = row.text(TEXT)
    return text === '' ? this.report.string(row.number(TEXT_ID)) : names.id(text)
  }

  private domainName(thread: number, domainId: number): number {
    if (domainId === 0) return 0
    const known = this.domains.get(`${this.processOf(thread)} ${domainId}`)
    return known ?? this.report.names.id(`domain ${domainId}`)
  }

  private categoryName(thread: number, domainId: number, categoryId: number): number {
    if (categoryId === 0 && this.categories.size === 0) return 0
    const known = this.categories.get(`${this.processOf(thread)} ${domainId} ${categoryId}`)
    return known ?? (categoryId > 0 ? this.report.names.id(`${categoryId}`) : 0)
  }

  private processOf(thread: number): number {
    return this.report.threads.list[thread]!.owner
  }
}

/** A color without alpha is opaque. */
function opaque(color: number): number {
  return color >>> 24 === 0 ? color + 0xff000000 : color
}
