import type { SqliteRows } from '../../../input/sqlite/rows.ts'
import type { SqliteFile } from '../../../input/sqlite/sqlite-file.ts'
import type { IssueEvent, TraceEvent } from '../../../model/events.ts'
import { type IssueCode, issueOf, type LostKind } from '../../../model/issues.ts'
import { LeftOut } from '../../../model/left-out.ts'
import { CORRELATION_MAX, isTime } from '../../../model/limits.ts'
import type { Names } from '../../../model/names.ts'

/** A report's file; the texts and threads that its tables refer to; issues. */
export class Report {
  readonly threads = new Threads()
  /** Issues since the last {@link takeIssues}. */
  issues: IssueEvent[] = []
  /** Latest time of any event. */
  lastNs = 0
  /** Number of drawn rows, by table. */
  readonly counts = new Map<string, number>()
  /** Names of threads, by {@link threads}; 0 or undefined = none. */
  readonly threadNames: number[] = []
  /** Events that are not drawn. */
  readonly leftOut = new LeftOut()
  private readonly refused = new Set<string>()
  private readonly strings = new Map<number, number>()
  private start: { readonly high: number; readonly low: number } | undefined

  constructor(
    readonly file: SqliteFile,
    readonly names: Names,
  ) {}

  /** Number of rows of a table. */
  async sizeOf(table: string): Promise<number> {
    let size = 0
    for await (const rows of this.pages(table, [])) size += rows.size
    return size
  }

  /** The pages of a table, with the named columns; none if the report has no such table. */
  async *pages(table: string, columns: readonly string[]): AsyncGenerator<SqliteRows, void> {
    const found = this.file.tables.get(table)
    if (!found) this.reportRefusal(table)
    if (found) yield* this.file.pages(found, columns)
  }

  private reportRefusal(table: string): void {
    const why = this.file.refusals.get(table)
    if (why === undefined || this.refused.has(table)) return
    this.refused.add(table)
    this.unread(`table ${table} ${why}`)
  }

  /** Adds an issue: something undamaged is not read. */
  unread(detail: string): void {
    this.issues.push(issueOf('unread-table', detail, { byte: 0 }, this.lastNs))
  }

  /** Calls `take` for every row of a table, which should be small. */
  async each(table: string, columns: readonly string[], take: (row: SqliteRows) => void): Promise<void> {
    for await (const rows of this.pages(table, columns)) while (rows.next()) take(rows)
  }

  /** Events of the rows of a table, page by page. `make` returns undefined for a row that is not drawn. */
  async *events(
    table: string,
    columns: readonly string[],
    make: (row: SqliteRows) => TraceEvent | undefined,
  ): AsyncGenerator<TraceEvent[], void> {
    for await (const rows of this.pages(table, columns)) {
      const events: TraceEvent[] = []
      while (rows.next()) {
        const event = make(rows)
        if (event) events.push(event)
      }
      this.count(table, events.length)
      yield events
    }
  }

  /** Reads the texts that columns refer to by number. */
  async readStrings(): Promise<void> {
    await this.each('StringIds', ['id', 'value'], (row) => {
      this.strings.set(row.number(0), this.names.id(row.text(1)))
    })
  }

  /** Sets the start of the session, in nanoseconds since 1970. */
  startsAt(ns: bigint): void {
    this.start = { high: Number(ns >> 32n), low: Number(ns & 0xffffffffn) }
  }

  /**
   * The exact time of a row in nanoseconds since the start of the session; NaN if there is none. Times above 2^53 are since 1970
   * (`nsys export --ts-normalize`).
   */
  time(row: SqliteRows, field: number): number {
    const ns = row.number(field)
    if (!(ns > Number.MAX_SAFE_INTEGER) || !this.start) return ns
    return (row.high(field) - this.start.high) * 2 ** 32 + (row.low(field) - this.start.low)
  }

  /** The correlation id of a row; -1 if it has none, or an invalid one. */
  correlation(row: SqliteRows, field: number, atNs: number): number {
    const value = row.number(field, -1)
    if (value >= -1 && value <= CORRELATION_MAX && Number.isInteger(value)) return value
    const detail = `expected a correlation id from 0 to ${CORRELATION_MAX}, found ${row.exact(field)}; not used`
    this.issues.push(issueOf('value-out-of-range', detail, { byte: 0 }, atNs))
    return -1
  }

  /** The name of an id of the table StringIds; 0 if there is none. */
  string(id: number): number {
    return this.strings.get(id) ?? 0
  }

  /** Counts drawn rows. */
  count(table: string, rows = 1): void {
    this.counts.set(table, (this.counts.get(table) ?? 0) + rows)
  }

  issue(code: IssueCode, detail: string, atNs = 0, byte = 0, lost?: readonly LostKind[]): void {
    this.issues.push(issueOf(code, detail, { byte }, Math.max(0, atNs), lost))
  }

  /**
   * The end of a row. Undefined, with an issue, if the row has no start, or one before the start of the session, which is not
   * recorded. The start, with an issue, if the end is before it.
   */
  endOf(table: string, startNs: number, endNs: number): number | undefined {
    if (!isTime(startNs)) {
      this.issue('event-without-time', `${table}: expected a start in nanoseconds, found ${startNs}; left out`)
      return undefined
    }
    if (startNs < 0 && !this.start) {
      this.issue('row-before-session', `${table}: expected a start from 0 on, found ${startNs}; left out`)
      return undefined
    }
    if (endNs < startNs || !isTime(endNs)) {
      this.issue('event-without-end', `${table}: expected an end from ${startNs} on, found ${endNs}`, startNs)
      return startNs
    }
    if (endNs > this.lastNs) this.lastNs = endNs
    return endNs
  }

  takeIssues(): IssueEvent[] {
    return this.issues.splice(0)
  }
}

/** A thread of a process. Its `globalTid` in nsys is (hardware, machine, pid, tid) in 64 bits. */
export interface Thread {
  readonly pid: number
  readonly tid: number
  /** Number of the process in the report, from 0. */
  readonly owner: number
}

/** Numbers the threads and processes of a report. */
export class Threads {
  readonly list: Thread[] = []
  private readonly ids = new Map<number, number>()
  private readonly processes = new Map<number, number>()
  private readonly machines = new Map<number, number>()
  private lastHigh = -1
  private lastLow = -1
  private last = 0

  /** The number of a thread, from 0, by the two halves of its `globalTid`. */
  of(high: number, low: number): number {
    if (high === this.lastHigh && low === this.lastLow) return this.last
    this.lastHigh = high
    this.lastLow = low
    const owner = this.processOf(high, low)
    const tid = low & 0xffffff
    this.last = numberOf(this.ids, owner * 0x1000000 + tid)
    this.list[this.last] ??= { pid: pidOf(high, low), tid, owner }
    return this.last
  }

  /** The number of a process, from 0, by the two halves of its `globalPid` or of a thread's `globalTid`. */
  processOf(high: number, low: number): number {
    const machine = numberOf(this.machines, high >>> 16)
    return numberOf(this.processes, machine * 0x1000000 + pidOf(high, low))
  }
}

/** Bits 24 to 47 of a global id. */
export function pidOf(high: number, low: number): number {
  return ((high & 0xffff) << 8) | (low >>> 24)
}

function numberOf(numbers: Map<number, number>, key: number): number {
  const known = numbers.get(key)
  if (known !== undefined) return known
  numbers.set(key, numbers.size)
  return numbers.size - 1
}

/** Kinds of memory (nsys's ENUM_CUDA_MEM_KIND). */
export const MEMORY_KINDS: Readonly<Record<number, string>> = {
  0: 'pageable',
  1: 'pinned',
  2: 'device',
  3: 'array',
  4: 'managed',
  5: 'device static',
  6: 'managed static',
}
