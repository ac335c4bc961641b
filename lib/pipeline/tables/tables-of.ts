import { ContentsPass } from '../../analyze/run/contents.ts'
import { mainLog, refuseSeveral } from '../../analyze/run/main-log.ts'
import type { Summary } from '../../analyze/summary/figures.ts'
import { checkNames, UsageError } from '../../errors.ts'
import { TABLES_OF_OPTIONS } from '../../generated/option-names.ts'
import type { Clock, TraceEvent } from '../../model/events.ts'
import { inferredText } from '../../model/inferred.ts'
import { Names } from '../../model/names.ts'
import { threadText } from '../../model/waits.ts'
import { withKnown } from '../../read/index.ts'
import type { TableName } from '../../tables/schema.ts'
import type { NewRow, TablesFormat } from '../../tables/table-file.ts'
import { type TablePiece, Tables } from '../../tables/tables.ts'
import { TablesPass } from '../../tables/tables-pass.ts'
import { findingRows, type ReadLog, traceRow } from '../../tables/trace-row.ts'
import { RunThreads } from '../../threads/run-threads.ts'
import type { StateSpan, States } from '../../threads/states.ts'
import type { Compression } from '../../write/parquet/parquet.ts'
import type { Placed } from '../clocks/placing.ts'
import { FindingsPass, findingsOf } from '../findings-pass.ts'
import type { Input, Log } from '../inputs.ts'
import { type LogPass, LogReading, RunInputs, type RunOptions } from '../run-inputs.ts'

/** Passes the events of an input to the stage of threads. */
function takeThreads(batch: readonly TraceEvent[], states: States, threads: RunThreads): void {
  for (const event of batch) {
    switch (event.kind) {
      case 'operator':
        states.serve(event.worker, event.tid, event.waitEndNs)
        break
      case 'token':
        states.trace(event.tid)
        states.reach(event.endNs)
        break
      case 'state':
        states.place(event)
        break
      case 'switch':
        threads.switched(event)
        break
      case 'waking':
        threads.waking(event)
        break
      case 'thread':
        threads.thread(event)
        break
      case 'input':
      case 'facts':
        threads.describe(event.attributes)
    }
  }
}

/** The row of a state. */
function stateRow(span: StateSpan, names: Names): NewRow<'state'> {
  const { worker, tid, state, fromNs, toNs, cpu, wait, by, shares, inferred } = span
  const longest = shares?.known[0]
  const taker = longest ? threadText(longest, names) : names.text(by)
  return {
    worker: worker < 0 ? null : worker,
    tid,
    ts_ns: fromNs,
    dur_ns: toNs - fromNs,
    state,
    cpu: cpu < 0 ? null : cpu,
    wait: names.text(wait) || null,
    taken_by: shares && !longest ? null : taker || null,
    taken_by_ns: longest ? longest.ns : null,
    inferred: inferred === 0 ? null : inferredText(inferred),
  }
}

/** How the tables of a run are made. */
export interface TablesOptions extends RunOptions {
  /** The run's id: 32 hexadecimal digits. */
  readonly traceId: string
  /** `parquet` by default. */
  readonly format?: TablesFormat | undefined
  /** How pages of Parquet are compressed; by default, by the platform's CompressionStream (gzip). */
  readonly compression?: Compression | undefined
}

/** A run whose tables are complete. */
export interface RunTables {
  /** Number of rows by table; tables without rows have no file. */
  readonly rows: Readonly<Partial<Record<TableName, number>>>
  /** Day of its first event in UTC, `YYYY-MM-DD`; undefined where the logs contain no real time. */
  readonly day: string | undefined
  readonly summaries: readonly Summary[]
}

/** The name and version that tables state as their writer. */
export interface Exporter {
  readonly name: string
  readonly version: string
}

/** No column of a table contains the process. */
const ONE_PROCESS =
  'export each of them alone (without --together): tables are of one process. Logs of a client and a server of ggml-rpc are two runs in tables; convert and why take them together'

const DAY_NS = 86_400_000_000_000n

/**
 * Makes the tables of one run: bytes → reader → events → tables → Parquet or Arrow. Yields pieces of the files, those of one table in their
 * order; the file of `trace` comes last. Memory does not grow with the length of the logs. Several inputs are of one run. Throws
 * as {@link convert} does, and UsageError where two inputs contain calls.
 */
export async function* tablesOf(
  inputs: Input | readonly Input[],
  options: TablesOptions,
  exporter: Exporter,
): AsyncGenerator<TablePiece, RunTables> {
  checkNames('tablesOf', options, TABLES_OF_OPTIONS)
  const all = [inputs].flat() as readonly Input[]
  if (all.length === 0) throw new UsageError('no input: there is nothing to export')
  const names = new Names()
  const { traceId, format, compression } = options
  const tables = new Tables({ traceId, format, compression, createdBy: `${exporter.name} version ${exporter.version}` })
  const run = await RunInputs.open(all, names, withKnown(options))
  try {
    const threads = new RunThreads(names, run.hasSwitches)
    const shared = { tables, names, threads }
    const reading = run.inTurn(run.placing(options), (log, placed) => new TablesOfLog(log, placed, shared))
    let next = await reading.next()
    for (; !next.done; next = await reading.next()) if (tables.hasPieces) yield* tables.pieces()
    const read = next.value
    threads.finish()
    const day = addRun(tables, read, exporter.version)
    yield* tables.finish()
    return { rows: tables.rows, day, summaries: read.map(({ summary }) => summary) }
  } finally {
    await run.close()
  }
}

/** Adds the rows about the whole run and returns its day. */
function addRun(tables: Tables, read: readonly TablesOfLog[], version: string): string | undefined {
  const logs = read.map((log) => log.asRead())
  refuseSeveral(logs, ONE_PROCESS)
  const main = mainLog(read)
  const { findings } = findingsOf(read.map((log) => log.asFound()))[read.indexOf(main)]!
  for (const row of findingRows(findings ?? [])) tables.add('finding', row)
  const first = read[0]!
  const originUnixNs = first.originUnixNs
  const [firstNs, lastNs] = [Math.min(...read.map((log) => log.firstNs)), Math.max(...read.map((log) => log.lastNs))]
  const row = traceRow(logs, {
    exporter: version,
    originUnixNs,
    operatorNs: main.rows.sums.durNs,
    waitNs: main.rows.sums.waitNs,
    requests: tables.rows.request ?? 0,
    firstNs,
    lastNs,
  })
  tables.add('trace', row)
  return originUnixNs === undefined ? undefined : dayOf(originUnixNs + BigInt(firstNs))
}

/** A day as `YYYY-MM-DD`; undefined outside of the years that it can be written for. */
function dayOf(unixNs: bigint): string | undefined {
  const days = unixNs / DAY_NS
  return days > 0n && days < 1_000_000n ? new Date(Number(days) * 86_400_000).toISOString().slice(0, 10) : undefined
}

/** What the inputs of a run share. */
interface Shared {
  readonly tables: Tables
  readonly names: Names
  readonly threads: RunThreads
}

/** One input of a run. */
class TablesOfLog implements LogPass {
  readonly rows: TablesPass
  private readonly reading: LogReading
  private readonly contents: ContentsPass
  private readonly found: FindingsPass
  private readonly states: States
  private offsetNs: bigint | undefined
  summary!: Summary

  constructor(
    readonly log: Log,
    readonly placed: Placed,
    private readonly shared: Shared,
  ) {
    const { tables, names, threads } = shared
    this.found = new FindingsPass(
      names,
      (ns) => placed.timeOf(ns),
      (tid) => threads.traced.has(tid),
      log.isOfScheduler,
    )
    this.reading = new LogReading(names, this.found)
    this.contents = new ContentsPass(names)
    this.rows = new TablesPass(tables, names)
    this.states = threads.begin((span) => tables.add('state', stateRow(span, names)), this.found.waited)
  }

  get firstNs(): number {
    return this.placed.timeOf(this.reading.summary.firstNs)
  }

  get lastNs(): number {
    return this.placed.timeOf(this.reading.summary.lastNs)
  }

  /** Real time of its origin. */
  get originUnixNs(): bigint | undefined {
    const { clock, originNs } = this.log.first
    if (clock === 'REALTIME') return originNs
    return this.offsetNs === undefined ? undefined : originNs + this.offsetNs
  }

  take(batch: TraceEvent[]): void {
    this.reading.take(batch)
    this.contents.take(batch)
    this.learn(batch)
    this.complete(batch)
  }

  complete(batch: TraceEvent[]): void {
    const placed = this.placed.take(batch)
    this.rows.take(placed)
    takeThreads(placed, this.states, this.shared.threads)
  }

  finish(): void {
    const { placed } = this
    const { summary } = this.reading
    summary.take(placed.issues(summary))
    this.rows.finish()
    this.states.finish()
    this.summary = placed.described(summary.finish())
  }

  asRead(): ReadLog {
    const { log, summary } = this
    return { name: log.name, first: log.first, summary, contents: this.contents.finish() }
  }

  /** After all inputs were read. */
  asFound() {
    return { name: this.log.name, summary: this.summary, pass: this.found }
  }

  /** The first readings of the input's clock and of real time. */
  private learn(batch: readonly TraceEvent[]): void {
    if (this.offsetNs !== undefined) return
    for (const event of batch) {
      if (event.kind !== 'clocks') continue
      const at = (clock: Clock | 'none' | 'unknown') => event.readings.find((reading) => reading.clock === clock)?.ns
      const [own, real] = [at(this.log.first.clock), at('REALTIME')]
      if (own !== undefined && real !== undefined) this.offsetNs = real - own
    }
  }
}
