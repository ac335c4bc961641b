import { FormatError } from '../../errors.ts'
import { CsvRow } from '../../input/csv-row.ts'
import { KeyedRow } from '../../input/keyed-row.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { LineLog, type Origin } from '../common/line-log.ts'
import type { ReadContext } from '../format.ts'
import { type Columns, cellNames, EDGES, type Layout, locate, PROBES, required } from './layouts.ts'
import { type Probe, type ProbeNode, ProbePairs } from './probe-pairs.ts'

/** Bits of a user-space address that fit in a number. */
const ADDRESS_MASK = 0x1f_ffff_ffff_ffffn
/** A backend's guid as 16 numbers, as the logger for OpenHarmony writes it. */
const GUID_BYTES = /^\d{1,3}(?:\|\d{1,3}){15}$/

/** Reads ProfInfer's rows, in any layout. */
export class RowLog extends LineLog<ProbePairs> {
  private readonly row: CsvRow
  private columns: Columns | undefined
  /** By the text that describes them, so that each distinct node is decoded once. */
  private readonly nodes = new DefaultMap<string, ProbeNode>(() => this.decodeNode(this.columns!))
  /** Number of cells of a row, as in the first complete row; by probe where each cell has its name. */
  private readonly cells = new Map<number, number>()
  private rows = 0

  constructor(
    source: AsyncIterable<Uint8Array>,
    format: string,
    private readonly layout: Layout,
    context: ReadContext,
  ) {
    const { tgid, thread } = layout
    super(source, format, new ProbePairs(format, context, tgid === undefined ? undefined : [thread, tgid]))
    const names = layout.names === 'in each cell' ? cellNames(layout) : undefined
    this.row = names ? new KeyedRow(names) : new CsvRow()
    if (names) this.columns = locate(layout, names)
  }

  protected override readHead(): boolean {
    if (this.columns) return true
    const { row, lines, layout } = this
    if (!lines.next()) return false
    row.split(lines.bytes, lines.start, lines.end)
    const names = Array.from({ length: row.count }, (_, i) => row.text(i))
    const missing = required(layout).filter((name) => !names.includes(name))
    if (missing.length > 0) {
      const expected = `columns ${required(layout).join(', ')}`
      throw new FormatError(this.format, lines.position, expected, `none called ${missing.join(', ')}`)
    }
    this.columns = locate(layout, names)
    return true
  }

  protected override stampOf(bytes: Uint8Array, start: number, end: number): bigint | undefined {
    this.row.split(bytes, start, end)
    return this.row.integer(this.columns!.time)
  }

  protected override readLine(origin: Origin): void {
    const { row, lines, layout } = this
    const columns = this.columns!
    row.split(lines.bytes, lines.start, lines.end)
    const type = this.typeOf(columns)
    if (!this.hasItsCells(columns, type)) return
    const atNs = row.difference(columns.time, origin.high, origin.low)
    const tid = row.number(columns.thread)
    if (!Number.isSafeInteger(atNs) || !Number.isInteger(type) || !Number.isSafeInteger(tid)) {
      const names = required(layout)
      const listed = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
      const found = [columns.time, ...(columns.type < 0 ? columns.probe : [columns.type]), columns.thread]
      const texts = found.map((column) => `"${row.text(column)}"`).join(', ')
      this.reject(
        'unreadable-row',
        `expected ${typeof layout.type === 'string' ? 'numbers' : 'values'} for ${listed}, found ${texts}`,
      )
      return
    }
    this.rows++
    if (this.believes(atNs)) this.maker.add(this.probe(columns, atNs, type, tid))
  }

  protected override finish(): void {
    const { rows, layout } = this
    if (rows !== layout.rowsMax) return
    this.issue(
      'lost-records',
      `the log has ${rows} rows, the most that the logger keeps: it drops the oldest rows without a message`,
    )
  }

  /** The probe's number; NaN: none. */
  private typeOf({ type, probe: [func, edge] }: Columns): number {
    const { row } = this
    if (type >= 0) return row.number(type)
    const start = PROBES.get(row.text(func))
    const end = EDGES.get(row.text(edge))
    return start === undefined || end === undefined ? NaN : start + end
  }

  /** Does the row have as many cells as the rows of this log? Adds an issue if not. */
  private hasItsCells(columns: Columns, type: number): boolean {
    const { row, lines, cells } = this
    if (this.layout.names === 'in each cell') {
      const expected = cells.get(type)
      if (!lines.isTorn || row.count === (expected ?? row.count)) {
        cells.set(type, row.count)
        return true
      }
      this.reject('torn-record', `expected ${expected} cells, found ${row.count}`)
      return false
    }
    // The logger for OpenHarmony may be built without structures: its rows then end before them.
    const bare = columns.tgid < 0 || columns.address < 0 ? -1 : columns.address + 1
    if (cells.size === 0 && (row.count === columns.count || row.count === bare)) cells.set(0, row.count)
    const expected = cells.get(0) ?? columns.count
    if (row.count === expected) return true
    this.reject('unreadable-row', `expected ${expected} fields, found ${row.count}`)
    return false
  }

  private probe(columns: Columns, atNs: number, type: number, tid: number): Probe {
    const { row, lines } = this
    const id = (column: number) => {
      const value = column < 0 ? -1 : row.number(column)
      return Number.isSafeInteger(value) ? value : -1
    }
    return {
      atNs,
      at: lines.position,
      type,
      tid,
      tgid: id(columns.tgid),
      cpu: id(columns.cpu),
      guid: type === 30 ? guidOf(row.text(columns.guid)) : '',
      node: type === 20 || type === 40 ? this.nodes.of(this.nodeKey(columns)) : undefined,
      counters: columns.counters.length > 0 ? columns.counters.map((column) => row.number(column)) : undefined,
      counterNames: columns.counterNames,
    }
  }

  /** The text that describes the row's node. */
  private nodeKey(columns: Columns): string {
    if (columns.nodeTail >= 0) return this.row.tail(columns.nodeTail)
    const { op, name, address, sourceAddresses, ne, sourceNe } = columns
    return [op, name, address, ...sourceAddresses, ...ne, ...sourceNe.flat()]
      .map((column) => this.row.text(column))
      .join()
  }

  private decodeNode(columns: Columns): ProbeNode {
    const { row } = this
    const shape = (dimensions: readonly number[]) => {
      const ne = dimensions.map((column) => row.number(column))
      return ne.length > 0 && ne.every((n) => Number.isSafeInteger(n) && n >= 0) ? ne : undefined
    }
    const sources: ProbeNode['sources'][number][] = []
    columns.sourceAddresses.forEach((column, i) => {
      const address = this.address(column)
      if (address > 0) sources.push({ address, ne: shape(columns.sourceNe[i] ?? []) })
    })
    const op = row.number(columns.op)
    return {
      op: Number.isInteger(op) ? op : -1,
      name: row.text(columns.name),
      address: this.address(columns.address),
      ne: shape(columns.ne),
      sources,
      id: -1,
    }
  }

  /** An address, or 0 for none; the top byte of a tagged pointer (arm64) is dropped. */
  private address(column: number): number {
    const address = this.row.number(column)
    if (Number.isSafeInteger(address)) return Math.max(address, 0)
    return Number((this.row.integer(column) ?? 0n) & ADDRESS_MASK)
  }
}

/** A guid in its usual form; empty where it is of no backend. */
function guidOf(text: string): string {
  if (!GUID_BYTES.test(text)) return text
  const bytes = text.split('|').map(Number)
  if (bytes.some((byte) => byte > 255) || bytes.every((byte) => byte === 0)) return ''
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
