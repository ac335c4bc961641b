// ProfInfer's CSV (pandas): one row per probe hit, not sorted, columns found by the names in the header (paper:
// ProfInfer, MLSys 2026, Table 2; columns described in field-notes 1.3).
//
//   ,ts,type,pid,cpu,[pmc_0,pmc_1,]guid,op,name,parm_addr,first_src_addr,second_src_addr,third_src_addr,
//   ne0,src0_ne0,src1_ne0,src2_ne0,ne1,…,src2_ne3
//
//   ts    ns, CLOCK_MONOTONIC        pid   the thread id (sic)
//   type  10/15 llama_decode start/end · 20/25 operator · 30/35 graph (backend guid) · 40/45 operator on an accelerator
//   op    number of the running ggml version     name  cut to 15 bytes     *_addr  addresses of ggml_tensor structs
//
// End rows name nothing: they belong to the latest start of their thread.

import { FormatError } from '../errors.ts'
import { CsvRow } from '../input/csv-row.ts'
import { LINE_BYTES_MAX, LineCursor } from '../input/line-cursor.ts'
import type { TraceEvent } from '../model/events.ts'
import type { Format, ReadContext } from './format.ts'
import { type Probe, type ProbeNode, ProbePairs } from './infer/probe-pairs.ts'
import { pickOrigin, TimeGuard } from './infer/time-guard.ts'

const REQUIRED = ['ts', 'type', 'pid'] as const
const SOURCE_ADDRESSES = ['first_src_addr', 'second_src_addr', 'third_src_addr', 'fourth_src_addr']
const ORIGIN_ROWS = 3
/** Bits of a user-space address, as far as a number holds them. */
const ADDRESS_MASK = 0x1f_ffff_ffff_ffffn
const HEADER = /^[^\n]*\bts,type,pid\b/

export const profinferCsv: Format = {
  name: 'profinfer-csv',
  title: "ProfInfer's CSV (eBPF probes on llama.cpp)",

  sniff: (head) => HEADER.test(decoder.decode(head)),

  async *read(source, context) {
    const lines = new LineCursor(source, profinferCsv.name)
    const reader = new RowReader(lines, context)
    try {
      while (await lines.fill()) {
        const events = reader.readWhole()
        if (events.length > 0) yield events
      }
      yield reader.finish()
    } finally {
      await lines.close()
    }
  },
}

/** Where the columns are; -1 = absent. */
interface Columns {
  readonly count: number
  readonly ts: number
  readonly type: number
  readonly tid: number
  readonly cpu: number
  readonly guid: number
  readonly op: number
  readonly name: number
  readonly address: number
  readonly sourceAddresses: readonly number[]
  readonly ne: readonly number[]
  readonly sourceNe: readonly (readonly number[])[]
  readonly counters: readonly number[]
  readonly counterNames: readonly string[]
  /** First of the columns that describe a node, when nothing else comes after it; else -1. */
  readonly nodeTail: number
}

/** The origin's quotient and remainder by 10^9. */
interface Origin {
  readonly high: number
  readonly low: number
}

class RowReader {
  private readonly row = new CsvRow()
  private readonly guard = new TimeGuard()
  private readonly pairs: ProbePairs
  private readonly nodes = new Map<string, ProbeNode>()
  private columns: Columns | undefined
  private origin: Origin | undefined

  constructor(
    private readonly lines: LineCursor,
    context: ReadContext,
  ) {
    this.pairs = new ProbePairs(profinferCsv.name, context)
  }

  readWhole(): TraceEvent[] {
    if (!this.columns && this.lines.next()) this.columns = this.readHeader()
    if (!this.columns || (!this.origin && !canPickOrigin(this.lines.ahead()))) return []
    this.readRows(this.columns)
    return this.pairs.take()
  }

  finish(): TraceEvent[] {
    if (!this.columns && this.lines.next()) this.columns = this.readHeader()
    if (this.columns) this.readRows(this.columns)
    this.pairs.finish()
    return this.pairs.take()
  }

  private readRows(columns: Columns): void {
    this.origin ??= this.pickOrigin(columns)
    while (this.lines.next()) this.readRow(columns, this.origin)
  }

  private readHeader(): Columns {
    const { row, lines } = this
    row.split(lines.bytes, lines.start, lines.end)
    const names = Array.from({ length: row.count }, (_, i) => row.text(i))
    const missing = REQUIRED.filter((name) => !names.includes(name))
    if (missing.length > 0) {
      const at = { byte: lines.offset, line: lines.line }
      throw new FormatError(
        profinferCsv.name,
        at,
        `columns ${REQUIRED.join(', ')}`,
        `none called ${missing.join(', ')}`,
      )
    }
    return locateColumns(names)
  }

  private readRow(columns: Columns, origin: Origin): void {
    const { row, lines } = this
    if (lines.end === lines.start) return
    row.split(lines.bytes, lines.start, lines.end)
    if (row.count !== columns.count) {
      const title = lines.isTorn ? 'torn row' : 'row of another length'
      this.issue(title, `expected ${columns.count} fields, found ${row.count}`)
      return
    }
    const atNs = row.difference(columns.ts, origin.high, origin.low)
    const type = row.number(columns.type)
    const tid = row.number(columns.tid)
    if (!Number.isSafeInteger(atNs) || !Number.isInteger(type) || !Number.isSafeInteger(tid)) {
      this.issue(
        'unreadable row',
        `expected numbers for ts, type and pid, found "${row.text(columns.ts)}", "${row.text(columns.type)}", "${row.text(columns.tid)}"`,
      )
      return
    }
    const doubt = this.guard.doubt(atNs)
    if (doubt === undefined) this.pairs.add(this.probe(columns, atNs, type, tid))
    else this.issue('impossible timestamp', doubt)
  }

  private probe(columns: Columns, atNs: number, type: number, tid: number): Probe {
    const { row, lines } = this
    const cpu = columns.cpu < 0 ? -1 : row.number(columns.cpu)
    return {
      atNs,
      at: { byte: lines.offset, line: lines.line },
      type,
      tid,
      cpu: Number.isSafeInteger(cpu) ? cpu : -1,
      guid: type === 30 ? row.text(columns.guid) : '',
      node: type === 20 || type === 40 ? this.node(columns) : undefined,
      counters: columns.counters.length > 0 ? columns.counters.map((column) => row.number(column)) : undefined,
      counterNames: columns.counterNames,
    }
  }

  /** Finds the row's node by the text that describes it, so that each distinct node is decoded once. */
  private node(columns: Columns): ProbeNode {
    const { row } = this
    const key = columns.nodeTail >= 0 ? row.tail(columns.nodeTail) : this.nodeKey(columns)
    let node = this.nodes.get(key)
    if (!node) {
      node = this.decodeNode(columns)
      this.nodes.set(key, node)
    }
    return node
  }

  private nodeKey(columns: Columns): string {
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

  /** An address, or 0 where there is none; the top byte of a tagged pointer (arm64) is dropped. */
  private address(column: number): number {
    const address = this.row.number(column)
    if (Number.isSafeInteger(address)) return Math.max(address, 0)
    return Number((this.row.integer(column) ?? 0n) & ADDRESS_MASK)
  }

  /** Picks the origin from the first rows, so that one damaged timestamp cannot move everything. */
  private pickOrigin(columns: Columns): Origin {
    const { row } = this
    const stamps: bigint[] = []
    const ahead = this.lines.ahead()
    for (let start = 0, line = 0; line < ORIGIN_ROWS && start < ahead.length; line++) {
      const newline = ahead.indexOf(0x0a, start)
      const end = newline < 0 ? ahead.length : newline
      row.split(ahead, start, end)
      const stamp = row.integer(columns.ts)
      if (stamp !== undefined) stamps.push(stamp)
      start = end + 1
    }
    const origin = pickOrigin(stamps)
    this.pairs.start(origin)
    return { high: Number(origin / 1_000_000_000n), low: Number(origin % 1_000_000_000n) }
  }

  private issue(title: string, detail: string): void {
    this.pairs.issue({ byte: this.lines.offset, line: this.lines.line }, title, detail, this.guard.lastNs)
  }
}

function locateColumns(names: readonly string[]): Columns {
  const find = (name: string) => names.indexOf(name)
  const dimensions = (prefix: string) =>
    [0, 1, 2, 3].map((i) => find(`${prefix}ne${i}`)).filter((column) => column >= 0)
  const counterNames = names.filter((name) => name.startsWith('pmc'))
  const volatile = [...REQUIRED, 'cpu', 'guid', ...counterNames].map(find)
  const first = find('op')
  return {
    count: names.length,
    ts: find('ts'),
    type: find('type'),
    tid: find('pid'),
    cpu: find('cpu'),
    guid: find('guid'),
    op: first,
    name: find('name'),
    address: find('parm_addr'),
    sourceAddresses: SOURCE_ADDRESSES.map(find).filter((column) => column >= 0),
    ne: dimensions(''),
    sourceNe: SOURCE_ADDRESSES.map((_, i) => dimensions(`src${i}_`)),
    counters: counterNames.map(find),
    counterNames,
    nodeTail: first >= 0 && volatile.every((column) => column < first) ? first : -1,
  }
}

/** Are the rows here that the origin is picked from, or too long to wait for? */
function canPickOrigin(ahead: Uint8Array): boolean {
  return ahead.length > LINE_BYTES_MAX || countLines(ahead) >= ORIGIN_ROWS
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at >= 0 && lines < ORIGIN_ROWS; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}

const decoder = new TextDecoder()
