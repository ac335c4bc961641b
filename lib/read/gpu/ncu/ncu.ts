// Nsight Compute as CSV: `ncu --csv --page details` (also `ncu --csv` while it profiles) has a row for each metric of a launch, and rows of
// rules without one; `--page raw` has a row for each launch, a column for each metric, and the units in a row of their own.
//
//   ==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 9 passes
//   "ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value",…
//   "0","1234","app","localhost","saxpy(int, float *)","1","7","(256, 1, 1)","(128, 1, 1)","0","7.5","GPU Speed Of Light Throughput","DRAM Frequency","Ghz","1.21",…
//
// There are no times: kernels run one at a time, repeated for each set of metrics.

import { FormatError } from '../../../errors.ts'
import { CsvRow } from '../../../input/csv-row.ts'
import { LineCursor } from '../../../input/line-cursor.ts'
import { issueOf } from '../../../model/issues.ts'
import type { KernelProfileEvent } from '../../../model/kernel-profiles.ts'
import { holding } from '../../common/holdings.ts'
import { LineReader } from '../../common/line-reader.ts'
import type { Format, ReadContext } from '../../format.ts'
import { type DecimalSeparator, figuresOf, type Metric, metricOf, separatorIn } from './metrics.ts'

const decoder = new TextDecoder()
const HEADER = /^"?ID"?,.*"?Kernel Name"?,/
/** Metrics of one launch that are held. */
const METRICS_MAX = 4096

export const ncu: Format = {
  name: 'ncu',
  title: 'Nsight Compute: ncu --csv, --page details or --page raw: metrics of single kernels',
  isCompanion: true,
  sniff(head) {
    const lines = decoder.decode(head).split(/\r?\n/)
    return lines.some((line) => HEADER.test(line) || line.startsWith('==PROF== Connected to process '))
  },
  read: (source, context) => new NcuCsv(new LineCursor(source, ncu.name, true), context).batches(),
}

/** A launch of which rows were read. */
interface Launch {
  readonly key: string
  readonly of: Omit<KernelProfileEvent, 'figures' | 'metrics'>
  /** Cells of metrics: numbers are read when all rows show what separates their decimals. */
  readonly cells: Map<string, { readonly text: string; readonly unit: string }>
}

class NcuCsv extends LineReader {
  private readonly row = new CsvRow()
  private columns = new Map<string, number>()
  /** Of the raw page: columns of metrics. */
  private metrics: readonly (readonly [name: string, column: number])[] = []
  private units: readonly string[] | undefined
  private isRaw = false
  private launch: Launch | undefined
  private launches = 0
  private withoutFigures = 0
  private rules = 0
  private otherLines = 0
  private gpus = ''
  /** Of the decimals in this file; known from the first launch with a number that shows it. */
  private separator: DecimalSeparator | undefined

  constructor(
    lines: LineCursor,
    private readonly context: ReadContext,
  ) {
    super(lines)
    const capabilities = { operators: false }
    this.batch.begin({ kind: 'input', format: ncu.name, clock: 'none', originNs: 0n, attributes: {}, capabilities })
  }

  protected override readLine(): void {
    const { lines, row } = this
    const { bytes, start, end } = lines
    if (end === start) return
    const isHeader = this.columns.size === 0 || bytes[start + 1] === LETTER_I || bytes[start] === LETTER_I
    if (isHeader && this.header()) return
    if (this.columns.size === 0 || (bytes[start] !== QUOTE && !isDigit(bytes[start]!))) {
      if (bytes[start] !== EQUALS) this.otherLines++ // lines of ncu itself begin with ==PROF==
      return
    }
    row.split(bytes, start, end)
    if (this.isRaw) this.readRaw()
    else this.readDetail()
  }

  /** Is the line a header? A file of several runs has several. */
  private header(): boolean {
    const { text } = this.lines
    if (!HEADER.test(text)) return false
    this.end()
    const cells = cellsOf(text)
    this.columns = new Map(cells.map((cell, i) => [cell, i]))
    this.isRaw = !this.columns.has('Metric Name')
    this.metrics = cells.flatMap((cell, i) => (cell.includes('__') ? [[cell, i] as const] : []))
    this.units = undefined
    return true
  }

  private text(column: string): string {
    return this.row.text(this.columns.get(column) ?? -1)
  }

  private whole(column: string): number {
    const value = Number(this.text(column) || NaN)
    return Number.isSafeInteger(value) && value >= 0 ? value : -1
  }

  private readDetail(): void {
    const name = this.text('Metric Name')
    const key = `${this.text('ID')} ${this.text('Process ID')} ${this.text('Kernel Name')}`
    if (this.launch?.key !== key) {
      this.end()
      this.launch = this.begin(key)
    }
    if (name === '') this.rules++
    if (!this.launch || name === '') return
    if (this.launch.cells.size >= METRICS_MAX) return
    const unit = this.text('Metric Unit')
    // The page has the throughput of the memory as a share and as a rate, with one label.
    const suffix = name !== 'Memory Throughput' ? '' : metricOf('0', unit)?.kind === 'percent' ? ' %' : ' /s'
    this.launch.cells.set(`${name}${suffix}`, { text: this.text('Metric Value'), unit })
  }

  private readRaw(): void {
    const { row } = this
    if (!this.units) {
      this.units = this.metrics.map(([, column]) => row.text(column))
      if (this.text('ID') === '') return
      this.units = [] // a table without units
    }
    this.end()
    this.launch = this.begin(`${this.launches}`)
    if (!this.launch) return
    for (const [i, [name, column]] of this.metrics.entries()) {
      this.launch.cells.set(name, { text: row.text(column), unit: this.units[i] ?? '' })
    }
  }

  /** The launch of a row; undefined where it is not readable. */
  private begin(key: string): Launch | undefined {
    const [id, name] = [this.whole('ID'), this.text('Kernel Name')]
    if (id < 0 || name === '') {
      const found = this.lines.text.slice(0, 80)
      const detail = `expected the number of a launch and the name of a kernel, found ${found}`
      this.batch.add(issueOf('companion-entry', detail, this.lines.position, 0))
      return undefined
    }
    const { names } = this.context
    const places = { pid: this.whole('Process ID'), context: this.whole('Context'), stream: this.whole('Stream') }
    const [grid, block] = [sizeOf(this.text('Grid Size')), sizeOf(this.text('Block Size'))]
    this.gpus ||= this.text('CC')
    return { key, of: { kind: 'kernel-profile', id, name: names.id(name), ...places, grid, block }, cells: new Map() }
  }

  /** All rows of the launch were read. */
  private end(): void {
    const { launch } = this
    if (!launch) return
    this.launch = undefined
    this.launches++
    const metrics = this.metricsOf(launch)
    const figures = figuresOf(metrics)
    if (Object.keys(figures).length === 0) this.withoutFigures++
    const { names, everything } = this.context
    const all = everything
      ? new Map([...metrics].map(([name, { value }]) => [names.id(`ncu.${name}`), value]))
      : undefined
    this.batch.add({ ...launch.of, figures, metrics: all })
  }

  private metricsOf({ cells }: Launch): Map<string, Metric> {
    if (this.separator === undefined) {
      const shown = [...cells.values()].map(({ text }) => separatorIn(text))
      const [dots, commas] = (['.', ','] as const).map((sign) => shown.filter((found) => found === sign).length)
      if (dots !== commas) this.separator = dots! > commas! ? '.' : ','
    }
    const metrics = new Map<string, Metric>()
    for (const [name, { text, unit }] of cells) {
      const metric = metricOf(text, unit, this.separator)
      if (metric) metrics.set(name, metric)
    }
    return metrics
  }

  protected override finish(): void {
    this.end()
    const { batch, launches, withoutFigures, gpus, lines } = this
    if (this.columns.size === 0) {
      const expected = 'a line that begins with "ID", and has "Kernel Name"'
      throw new FormatError(
        ncu.name,
        { byte: 0, line: 1 },
        expected,
        'none such',
        'ncu --import <report> --csv --page raw',
      )
    }
    const { contents, attributes } = holding({ 'profiled kernel': launches }, 'no profiled kernels')
    const known = { ...(gpus !== '' && { compute_capability: gpus }) }
    batch.add({ kind: 'facts', contents, attributes: { ...known, ...attributes } })
    const { leftOut } = batch
    leftOut.add('profiled kernels without a metric that is used', withoutFigures, 'ncu --set full, or --page raw')
    leftOut.add('rows of rules', this.rules, 'Nsight Compute shows them')
    leftOut.add('lines that are no rows', this.otherLines)
    batch.end(lines)
  }
}

const [QUOTE, LETTER_I, EQUALS] = [0x22, 0x49, 0x3d]
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39

/** Cells of a header. */
function cellsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
    quoted === undefined ? plain! : quoted.replaceAll('""', '"'),
  )
}

/** `(256, 1, 1)` as `256x1x1`; empty for anything else. */
function sizeOf(text: string): string {
  const [, x, y, z] = /^\(?(\d+),\s*(\d+),\s*(\d+)\)?$/.exec(text.trim()) ?? []
  return x === undefined ? '' : `${x}x${y}x${z}`
}
