import { GraphRuns } from '../analyze/graph/runs.ts'
import { Backends } from '../analyze/operators/backends.ts'
import { putAt } from '../model/by-id.ts'
import { getOrMake } from '../model/default-map.ts'
import { dictionary } from '../model/dictionary.ts'
import type { CountedEvent, GraphEvent, OperatorEvent } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { NodeFacts, Nodes } from './nodes.ts'
import type { OperatorSumTable, SummedNode } from './operator-sum-table.ts'
import { TABLES } from './schema.ts'
import type { Codes, Flags, Numbers, Store } from './stores.ts'
import type { TableFile } from './table-file.ts'
import { fileOf, type Tables } from './tables.ts'

/** Columns of a node's facts. */
const NODE_COLUMNS: readonly (keyof NodeFacts)[] = [
  'node',
  'op',
  'role',
  'layer',
  'tensor',
  'type',
  'm',
  'n',
  'k',
  'flop',
  'bytes_read',
  'bytes_written',
  'inferred',
]

/** The facts of a node as codes of the columns; valid as long as these forget no values. */
interface NodeCodes extends SummedNode {
  readonly last: number
  readonly inferred: number
  readonly codes: Int32Array
  generation: number
}

/** Columns of counters that are not called as their counters. */
const COUNTER_COLUMNS: Readonly<Record<string, string>> = dictionary({
  'bytes-read': 'disk_read_bytes',
  'task-clock': 'task_clock_ns',
})

/** Collects rows of `operator`, the most frequent ones. What belongs to a node is looked up once for each node. */
export class OperatorTable {
  private readonly file: TableFile<'operator'>
  private readonly nodeColumns: readonly Codes[]
  private readonly columns
  private readonly runs = new GraphRuns(() => {})
  private readonly backends: Backends
  /** By row. */
  private readonly nodesOfRows: NodeCodes[] = []
  /** By tensor: the latest. */
  private readonly latest: (NodeCodes | undefined)[] = []
  /** By tensor, last tensor and `inferred`. */
  private readonly known = new Map<string, NodeCodes>()
  /** By index of the counter: its name, and its column if it has one. */
  private readonly counters: { readonly name: string; readonly column: Store | undefined }[] = []
  /** End of the last graph: the backends of operators up to it are known. */
  private graphNs = -Infinity
  private hasGraphs = false
  /** Sums of all rows. */
  durNs = 0
  waitNs = 0

  constructor(
    tables: Tables,
    private readonly nodes: Nodes,
    private readonly names: Names,
    private readonly sums: OperatorSumTable,
  ) {
    const file = fileOf(tables, 'operator', () => this.flush())
    const numbers = (name: string) => file.store(name) as Numbers
    const codes = (name: string) => file.store(name) as Codes
    this.file = file
    this.backends = new Backends(names)
    this.nodeColumns = NODE_COLUMNS.map(codes)
    this.columns = {
      call: numbers('call'),
      graph: numbers('graph'),
      ts: numbers('ts_ns'),
      dur: numbers('dur_ns'),
      wait: numbers('wait_ns'),
      innerWait: numbers('inner_wait_ns'),
      worker: codes('worker'),
      tid: codes('tid'),
      cpu: codes('cpu'),
      backend: codes('backend'),
      isMax: file.store('bytes_are_max') as Flags,
      others: file.store('other_counters'),
    }
  }

  /** A graph was computed: its backend is known. */
  graph(event: GraphEvent): void {
    this.hasGraphs = true
    this.backends.event(event)
    if (event.endNs > this.graphNs) this.graphNs = event.endNs
  }

  /** Defines a counter of operators. */
  counter({ index, name: id }: CountedEvent): void {
    const name = this.names.text(id)
    const column = COUNTER_COLUMNS[name] ?? name.replaceAll('-', '_')
    const isKnown = Object.hasOwn(TABLES.operator.columns, column) && /^[a-z-]+$/.test(name)
    putAt(this.counters, index, { name, column: isKnown ? this.file.store(column) : undefined }, undefined as never)
  }

  /** Adds a row. */
  add(event: OperatorEvent): void {
    const { call, worker, startNs, endNs, waitEndNs, innerWaitNs, tid, cpu, counts } = event
    const at = this.file.next()
    const { columns } = this
    if (at >= columns.ts.numbers.length) this.use()
    const run = this.runs.add(event)?.run
    columns.call.numbers[at] = call < 0 ? NaN : call
    columns.graph.numbers[at] = run ? run.serial : NaN
    columns.ts.numbers[at] = startNs
    columns.dur.numbers[at] = endNs - startNs
    columns.wait.numbers[at] = waitEndNs - endNs
    columns.innerWait.numbers[at] = innerWaitNs ?? 0
    columns.worker.codes[at] = columns.worker.codeOf(worker)
    columns.tid.codes[at] = tid < 0 ? -1 : columns.tid.codeOf(tid)
    columns.cpu.codes[at] = cpu < 0 ? -1 : columns.cpu.codeOf(cpu)
    const node = this.nodeOf(event)
    const { codes, isMax } = node
    this.nodesOfRows[at] = node
    columns.isMax.flags[at] = isMax ? 1 : 0
    for (let i = 0; i < codes.length; i++) this.nodeColumns[i]!.codes[at] = codes[i]!
    if (this.counters.length > 0) this.count(at, counts)
    this.durNs += endNs - startNs
    this.waitNs += waitEndNs - endNs
  }

  /** Completes and encodes the rows that are left: the next log's are of another table of nodes. */
  finish(): void {
    this.complete(() => true)
    this.file.encode()
  }

  private use(): void {
    const { call, graph, ts, dur, wait, innerWait, worker, tid, cpu, backend } = this.columns
    for (const column of [call, graph, ts, dur, wait, innerWait, worker, tid, cpu, backend]) column.use()
    for (const column of this.nodeColumns) column.use()
  }

  /** Encodes rows whose backends are known; all, where these are few. */
  private flush(): void {
    const { numbers } = this.columns.ts
    const isReady = (row: number) => !this.hasGraphs || numbers[row]! <= this.graphNs
    let ready = 0
    for (let row = 0; row < this.file.count; row++) if (isReady(row)) ready++
    const isEnough = 2 * ready > this.file.count
    this.complete(isEnough ? isReady : () => true)
    this.file.encode(isEnough ? isReady : undefined)
    this.sums.settle()
  }

  /** Adds the backends of rows, and these to the sums. The file keeps the others. */
  private complete(isReady: (row: number) => boolean): void {
    const { backend, call, ts, dur, wait, innerWait } = this.columns
    let left = 0
    for (let row = 0; row < this.file.count; row++) {
      const node = this.nodesOfRows[row]!
      if (!isReady(row)) {
        this.nodesOfRows[left++] = node
        continue
      }
      const number = Number.isNaN(call.numbers[row]!) ? -1 : call.numbers[row]!
      const name = this.backends.at(number, ts.numbers[row]!)
      backend.codes[row] = backend.codeOf(name || null)
      this.sums.add(number, node, name, dur.numbers[row]!, wait.numbers[row]!, innerWait.numbers[row]!)
    }
  }

  private nodeOf({ tensor, fusedTo, inferred }: OperatorEvent): NodeCodes {
    const last = fusedTo ?? tensor
    const latest = this.latest[tensor]
    if (latest?.last === last && latest.inferred === inferred && latest.generation === this.generation) return latest
    const key = `${tensor} ${last} ${inferred}`
    const node = getOrMake(this.known, key, () => {
      const facts = this.nodes.factsOf(tensor, last, inferred)
      const isMax = this.nodes.isUpperBound(tensor, last)
      return { facts, isMax, last, inferred, codes: new Int32Array(NODE_COLUMNS.length), generation: -1 }
    })
    if (node.generation !== this.generation) {
      for (const [i, name] of NODE_COLUMNS.entries()) node.codes[i] = this.nodeColumns[i]!.codeOf(node.facts[name])
      node.generation = this.generation
    }
    putAt(this.latest, tensor, node, undefined)
    return node
  }

  /** Another number whenever a column forgot values. */
  private get generation(): number {
    let sum = 0
    for (let i = 0; i < this.nodeColumns.length; i++) sum += this.nodeColumns[i]!.generation
    return sum
  }

  private count(row: number, counts: readonly number[] | undefined): void {
    const others: Record<string, number> = Object.create(null)
    let hasOthers = false
    for (let i = 0; i < this.counters.length; i++) {
      const counter = this.counters[i]
      if (!counter) continue
      const value = counts?.[i]
      if (counter.column) counter.column.set(row, value ?? null)
      else if (value !== undefined) {
        others[counter.name] = value
        hasOthers = true
      }
    }
    if (hasOthers) this.columns.others.set(row, JSON.stringify(others))
  }
}
