// Arm Streamline's report of the timeline, `streamline -report -timeline -per_core <capture>.apc -o <folder>`: timeline.csv. Some lines about the
// capture, then a row for each bin (1 ms by default), with the time of its start since the capture began:
//
//     Index (s),Cycles:CPU Cycles [0],Cycles:CPU Cycles [1],Instructions:Executed [0],…
//     0.001,1204331,0,2213442,…
//
// The layout is known from a program that reads such reports (test/fixtures/streamline/README.md); no report itself was at hand.

import { CsvRow } from '../../../input/csv-row.ts'
import { LineCursor } from '../../../input/line-cursor.ts'
import { issueOf } from '../../../model/issues.ts'
import { isTime } from '../../../model/limits.ts'
import { hasLine } from '../../common/head.ts'
import { containing, contentsOf } from '../../common/holdings.ts'
import { LineReader } from '../../common/line-reader.ts'
import type { Format } from '../../format.ts'
import { IntervalCounters } from '../interval-counters.ts'

const HEADER = /^\uFEFF?"?Index \((s|ms|us|µs|ns)\)"?,/
/** The header is behind some lines about the capture. */
const HEADER_LINES = 16
const UNITS: Readonly<Record<string, number>> = { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, ns: 1 }
/** `0.001`, `1.0E-4`, `1:02.003`. */
const TIME = /^(?:(\d{1,4}):)?(\d{1,15}(?:\.\d{1,15})?(?:E-?\d{1,2})?)$/
const VALUE = /^-?\d[\d.]{0,24}(?:E[+-]?\d{1,3})?$/i

export const streamline: Format = {
  name: 'streamline',
  title: "Arm Streamline's timeline.csv (streamline -report -timeline): counters by interval",
  sniff: (head) => hasLine(head, (line) => HEADER.test(line), HEADER_LINES),
  read: (source) => new StreamlineReport(source).batches(),
}

class StreamlineReport extends LineReader {
  private readonly row = new CsvRow()
  private readonly counters = new IntervalCounters(this.batch)
  /** Names of the columns; empty before the header. */
  private columns: readonly string[] = []
  private unitNs = 1e9
  /** The latest values: a counter that stays at 0 has one sample. */
  private values: number[] = []
  private bins = 0
  private startNs = -1
  private widthNs = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    super(new LineCursor(source, streamline.name))
    const attributes = { tool: 'Arm Streamline', times: 'since the capture began' }
    const capabilities = { operators: false }
    const place = { clock: 'unknown', originNs: 0n, title: 'Streamline' } as const
    this.batch.begin({ kind: 'input', format: streamline.name, ...place, attributes, capabilities })
  }

  protected override readLine(): void {
    const { lines, row } = this
    const { bytes, start, end } = lines
    if (this.columns.length === 0) return this.readHeader()
    if (start === end) return
    row.split(bytes, start, end)
    const [, minutes = '0', amount] = TIME.exec(row.text(0)) ?? []
    const atNs = Math.round(Number(minutes) * 60e9 + Number(amount) * this.unitNs)
    if (amount === undefined) return this.report('unreadable-row', 'expected a row that begins with a time')
    if (!isTime(atNs) || atNs <= this.startNs) {
      return this.report('impossible-time', `expected a time after ${this.startNs} ns, found ${atNs}`)
    }
    if (row.count !== this.columns.length) {
      return this.report('unreadable-row', `expected ${this.columns.length} cells, found ${row.count}`)
    }
    if (this.startNs >= 0) this.widthNs = atNs - this.startNs
    this.startNs = atNs
    this.bins++
    for (let i = 1; i < this.columns.length; i++) this.add(i)
  }

  private readHeader(): void {
    const { text } = this.lines
    const unit = HEADER.exec(text)?.[1]
    if (unit === undefined) return
    const { bytes, start, end } = this.lines
    this.row.split(bytes, start, end)
    this.columns = Array.from({ length: this.row.count }, (_, i) => this.row.text(i).trim() || `column ${i + 1}`)
    this.unitNs = UNITS[unit]!
    this.values = this.columns.map(() => -1)
  }

  private add(column: number): void {
    const name = this.columns[column]!
    const text = this.row.text(column).trim()
    const value = VALUE.test(text) ? Number(text) : Number.NaN
    const isKnown = Number.isFinite(value)
    if (!isKnown) this.batch.leftOut.add(`values of ${name}: no number`)
    const drawn = isKnown ? value : 0
    if (drawn === 0 && this.values[column] === 0) return
    this.values[column] = drawn
    this.counters.sample(name, DESCRIPTION, this.startNs, drawn)
  }

  private report(code: 'unreadable-row' | 'impossible-time', expected: string): void {
    const { lines } = this
    const found = code === 'impossible-time' ? '' : `, "${lines.text.slice(0, 80).replace(/[^\x20-\x7e]/g, '.')}"`
    const isTorn = lines.isTorn && code === 'unreadable-row'
    this.batch.add(
      issueOf(isTorn ? 'torn-record' : code, `${expected}${found}`, lines.position, Math.max(0, this.startNs)),
    )
  }

  protected override finish(): void {
    const { batch, bins, columns, startNs, widthNs } = this
    this.counters.finish(Math.max(0, startNs + widthNs))
    const counts = contentsOf([
      [Math.max(0, columns.length - 1), 'counter'],
      [bins, 'interval'],
    ])
    batch.add({ kind: 'facts', ...containing(bins === 0 ? 'no intervals' : counts) })
  }
}

const DESCRIPTION =
  'What Streamline has for each interval, drawn from its start to that of the next one; 0 where it has no number, and after the last one.'
