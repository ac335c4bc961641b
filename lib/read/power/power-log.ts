import { LineCursor } from '../../input/line-cursor.ts'
import type { ClocksEvent, InputEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import { holding } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import { pickOrigin, TimeGuard } from '../common/time-guard.ts'
import type { ReadContext } from '../format.ts'
import { type Figure, Meters } from './meters.ts'
import type { Stamp } from './stamps.ts'

/** A number of a row, with the meter that it is of. */
export interface Cell {
  readonly device: string
  /** Name of the figure. */
  readonly name: string
  readonly figure: Figure
  readonly value: number
}

/** Readings of one device, or of all, at one time. */
export interface Row {
  /** Undefined: the row has no time. */
  readonly stamp: Stamp | undefined
  /** Rows with the same key are successive readings. */
  readonly key: string
  readonly cells: readonly Cell[]
}

/** Rows from which the origin is picked. */
const HEAD_ROWS = 3
/** Rows with the same time that are held, to be spread over its resolution. */
const SAME_TIME_MAX = 4096
const HALF_DAY_NS = 43_200_000_000_000n

/**
 * Reads a log of power, clocks or utilization, line by line. Subclasses read a line; this class finds the times of readings. Rows with the
 * same time, as of tools that write whole seconds, are spread evenly over its resolution.
 */
export abstract class PowerLog extends LineReader {
  protected readonly facts: Record<string, string | number> = Object.create(null)
  /** Of the input event: what is known before the first row. */
  protected readonly firstFacts: Record<string, string | number> = Object.create(null)
  /** The same instant on several clocks, where the log contains it. */
  protected readings: ClocksEvent['readings'] | undefined
  private readonly guard = new TimeGuard()
  private readonly meters: Meters
  private head: Row[] = []
  private baseNs = 0n
  /** Rows with the same time: successive readings, each of several devices, by key. */
  private held: Map<string, Row>[] = []
  private heldStamp: Stamp | undefined
  /** Readings without a time so far. */
  private ticks = 0
  private days = 0n
  private beforeNs = 0n
  private count = 0
  private missing = 0

  /** `intervalNs`: between readings, where the log does not contain their times. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    protected readonly format: string,
    { names }: ReadContext,
    protected intervalNs = 1e9,
  ) {
    super(new LineCursor(source, format, true))
    this.meters = new Meters(names, this.batch)
  }

  protected override readLine(lines: LineCursor): void {
    if (lines.end === lines.start) return
    if (lines.isTorn) this.issue('torn-record', 'expected the end of the line, found the end of the log')
    else this.line(lines.text)
  }

  /** All lines were read: passes on rows that were held, and reports on them. */
  protected ended(): void {}

  /** Reads a line that is not empty: passes on its row, or reports why it has none. */
  protected abstract line(text: string): void

  /** A row was read. */
  protected row(row: Row): void {
    if (this.batch.hasBegun) return this.hold(row)
    this.head.push(row)
    if (this.head.length >= HEAD_ROWS || row.stamp === undefined) this.begin()
  }

  /** A value that the tool reports as not available. */
  protected notAvailable(): void {
    this.missing++
  }

  /** A line that is neither a reading nor a header. */
  protected otherLine(): void {
    this.batch.leftOut.add('lines that are no readings')
  }

  /** A value of a column that is a text. */
  protected noNumber(column: string): void {
    this.batch.leftOut.add(`values of ${column.slice(0, 80)}: no number`)
  }

  protected issue(code: IssueCode, detail: string): void {
    this.batch.add(issueOf(code, detail, this.lines.position, this.guard.lastNs))
  }

  protected unreadable(expected: string, text: string): void {
    const found = text.length > 80 ? `${text.slice(0, 80)}…` : text
    // Control characters have no place in messages.
    this.issue('unreadable-row', `expected ${expected}, found ${JSON.stringify(found)}`)
  }

  private begin(): void {
    const head = this.head.splice(0)
    const stamps = head.flatMap(({ stamp }) => (stamp ? [stamp] : []))
    const first = stamps[0]
    this.baseNs = pickOrigin(stamps.map(({ ns }) => ns))
    this.beforeNs = this.baseNs
    const clock = first?.zone === 'utc' ? 'REALTIME' : first?.zone === 'monotonic' ? 'MONOTONIC' : 'unknown'
    const event: InputEvent = {
      kind: 'input',
      format: this.format,
      title: this.format === 'power' ? 'Power' : `Power (${this.format})`,
      clock,
      originNs: first && first.zone !== 'no date' ? this.baseNs : 0n,
      times: first ? 'recorded' : 'order',
      attributes: { times: timesOf(first, this.intervalNs), ...this.firstFacts },
      capabilities: { operators: false, requests: true },
      clockSource: first?.zone === 'local' ? 'local' : undefined,
    }
    const { readings } = this
    this.batch.begin(event, ...(readings ? [{ kind: 'clocks' as const, readings }] : []))
    if (!first && head.length > 0)
      this.issue('readings-without-time', `expected the time of each reading, found none; they are ${TAKEN}`)
    for (const row of head) this.hold(row)
  }

  private hold(row: Row): void {
    const isSame = row.stamp?.ns === this.heldStamp?.ns && this.held.length < SAME_TIME_MAX
    if (!isSame) this.release()
    this.heldStamp = row.stamp
    const last = this.held.at(-1)
    if (last && !last.has(row.key)) last.set(row.key, row)
    else {
      if (row.stamp === undefined) this.release()
      this.held.push(new Map([[row.key, row]]))
    }
  }

  /** Places the rows of one time; `isLast`: of the last one of the log. */
  private release(isLast = false): void {
    const { held, heldStamp: stamp } = this
    if (held.length === 0) return
    this.held = []
    const atNs = stamp ? this.sinceBase(stamp) : this.ticks * this.intervalNs
    // A single time in the whole log is that of none of its readings but the first.
    const isOnly = isLast && this.ticks === 0
    const stepNs = isOnly ? 0 : (stamp?.resolutionNs ?? 0) / held.length
    for (const [i, rows] of held.entries())
      this.place([...rows.values()], Math.round(atNs + i * stepNs), stamp?.resolutionNs ?? 0)
    this.ticks++
  }

  private sinceBase({ ns, zone }: Stamp): number {
    if (zone !== 'no date') return Number(ns - this.baseNs)
    if (ns + this.days < this.beforeNs - HALF_DAY_NS) this.days += 2n * HALF_DAY_NS
    this.beforeNs = ns + this.days
    return Number(this.beforeNs - this.baseNs)
  }

  private place(rows: readonly Row[], endNs: number, resolutionNs: number): void {
    const doubt = this.guard.doubt(endNs)
    if (doubt !== undefined) return this.issue('impossible-time', doubt)
    let late: number | undefined
    for (const { device, name, figure, value } of rows.flatMap(({ cells }) => cells)) {
      const meter = this.meters.of(device, name, figure, resolutionNs)
      if (!meter) continue
      if (endNs <= meter.lastNs) {
        late = meter.lastNs
        continue
      }
      const sinceNs = meter.lastNs === -Infinity ? endNs : meter.lastNs
      const startNs = figure.isMean ? sinceNs : endNs
      meter.lastNs = endNs
      this.count++
      this.batch.add({ kind: 'reading', meter: meter.id, startNs, endNs, value: value * (figure.factor ?? 1) })
    }
    if (late !== undefined)
      this.issue('late-record', `expected a time after ${late / 1e9} s, found ${endNs / 1e9} s; left out`)
  }

  protected override finish(): void {
    this.ended()
    if (!this.batch.hasBegun) this.begin()
    this.release(true)
    const { count, meters, missing, lines, batch, facts } = this
    if (count === 0)
      this.issue('no-readings', `expected rows with numbers, found none in ${plural(lines.line, 'line')}`)
    const { contents, attributes } = holding(
      { reading: count, meter: meters.all.length, device: meters.devices },
      'no readings',
    )
    const all = { ...facts, ...attributes, ...(missing > 0 && { values_not_available: missing }) }
    batch.add({ kind: 'facts', contents, attributes: all })
    batch.end(lines)
  }
}

const TAKEN = 'drawn at equal distances, as the tool writes them by default'

/** What the times are, for the trace. */
function timesOf(first: Stamp | undefined, intervalNs: number): string {
  if (!first) return `none in the log: readings are drawn ${intervalNs / 1e9} s apart`
  const to = `to ${first.resolutionNs / 1e9} s`
  if (first.zone === 'monotonic') return 'CLOCK_MONOTONIC'
  if (first.zone === 'no date') return `of the day, ${to}: the date is not in the log`
  return first.zone === 'utc' ? `CLOCK_REALTIME, ${to}` : `local, ${to}: the time zone is not in the log`
}

/** A number at the start of a text, without its unit; undefined: the tool has no value. */
export function numberOf(text: string): number | undefined {
  const found = /^-?\d+(?:\.\d+)?(?=$|[^\w.])/.exec(text.trim())
  return found ? Number(found[0]) : undefined
}

/** The digits of the number of a GPU, at the start of a text; undefined: it is none. */
export function gpuNumberOf(text: string): string | undefined {
  return /^\d+(?=$|[^\w.])/.exec(text.trim())?.[0].replace(/^0+(?=\d)/, '')
}
