import { FormatError } from '../../../errors.ts'
import { CsvRow } from '../../../input/csv-row.ts'
import { LineCursor } from '../../../input/line-cursor.ts'
import type { InputEvent, TraceEvent } from '../../../model/events.ts'
import { issueOf } from '../../../model/issues.ts'
import { isTime } from '../../../model/limits.ts'
import { LineReader } from '../../common/line-reader.ts'

const decoder = new TextDecoder()
/** Maximum number of lines before the header: `nsys stats` prints messages first. */
const PREAMBLE_LINES_MAX = 50
/** Nanoseconds per unit of times (`--timeunit`). */
const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }))

/** Is this the start of a report with these columns? */
export function hasColumns(head: Uint8Array, columns: readonly string[]): boolean {
  const lines = decoder.decode(head).split(/\r?\n/, PREAMBLE_LINES_MAX)
  return lines.some((line) => isHeader(line, columns))
}

/** Compares whole names without their units. */
function isHeader(line: string, columns: readonly string[]): boolean {
  if (!columns.every((column) => line.includes(column))) return false // cheap, as detection tries every input
  const names = cellsOf(line).map(withoutUnit)
  return columns.every((column) => names.includes(column))
}

const cellsOf = (header: string) => header.replace(/^\uFEFF/, '').split(',')
const withoutUnit = (cell: string) => cell.replace(/ \([^(]*\)$/, '')

/** A report of `nsys stats --format csv`: row by row; cells by the names of their columns, without units. */
export class CsvReport extends LineReader {
  private take = () => {}
  private readonly row = new CsvRow()
  private columns = new Map<string, number>()
  private nsPerUnit = 1

  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly format: string,
    private readonly required: readonly string[],
  ) {
    super(new LineCursor(source, format))
  }

  /** Calls `take` for every row, which adds its events to the batch. Throws FormatError without a header. */
  read(take: () => void, attributes: InputEvent['attributes'] = {}): AsyncGenerator<TraceEvent[]> {
    const { format } = this
    const known = { title: 'Nsight Systems', capabilities: { operators: false } }
    this.batch.begin({ kind: 'input', format, clock: 'unknown', originNs: 0n, attributes, ...known })
    this.take = take
    return this.batches()
  }

  protected override finish(): void {
    if (this.columns.size > 0) return
    const expected = `the columns ${this.required.join(', ')}`
    throw new FormatError(this.format, { byte: 0, line: 1 }, expected, 'none such', 'nsys stats --format csv')
  }

  /** A time or a duration in nanoseconds; NaN if the cell contains none, or an impossible one. */
  ns(column: string): number {
    const ns = Math.round(this.number(column) * this.nsPerUnit)
    return isTime(ns) ? ns : NaN
  }

  /** NaN if the cell is empty or missing. */
  number(column: string): number {
    return this.row.number(this.columns.get(column) ?? -1)
  }

  text(column: string): string {
    return this.row.text(this.columns.get(column) ?? -1)
  }

  /** Adds an issue: the current row is unreadable. */
  bad(detail: string, atNs: number): void {
    this.batch.add(issueOf('unreadable-row', detail, this.lines.position, atNs))
  }

  protected override readLine({ bytes, start, end }: LineCursor): void {
    if (end === start) return
    if (this.columns.size === 0) return this.findHeader()
    this.row.split(bytes, start, end)
    this.take()
  }

  private findHeader(): void {
    const { text } = this.lines
    if (!isHeader(text, this.required)) return
    const cells = cellsOf(text)
    this.columns = new Map(cells.map((cell, i) => [withoutUnit(cell), i]))
    const unit = /\(([^()]*)\)/.exec(cells.find((cell) => cell.startsWith('Start ')) ?? '')?.[1] ?? 'ns'
    const nsPerUnit = UNITS.get(unit.replace(/ec$/, ''))
    if (nsPerUnit === undefined) {
      throw new FormatError(this.format, this.lines.position, 'times in ns, us, ms or s', unit)
    }
    this.nsPerUnit = nsPerUnit
  }
}
