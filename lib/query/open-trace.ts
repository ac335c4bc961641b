import { traceStart } from '../bytes/trace-start.ts'
import { checkNames } from '../errors.ts'
import { CHECK_TRACE_OPTIONS, FIND_VIEW_OPTIONS, OPEN_TRACE_OPTIONS } from '../generated/option-names.ts'
import { type ByteSource, chunksOf } from '../input/byte-source.ts'
import { gunzip, peek } from '../input/gunzip.ts'
import type { Cell } from './cells.ts'
import { importProblems, type Problem, type WalkResult, walkPackets } from './check.ts'
import { walkJson } from './check-json.ts'
import { GGML_PACKAGE, GGML_SUMMARY } from './ggml-package.ts'
import { type Parameters, withParameters } from './parameters.ts'
import { type QueryResult, type SqlPackage, TraceProcessor } from './trace-processor.ts'
import type { MetricBundle } from './trace-summary.ts'
import { type View, viewOf } from './view.ts'
import { type TraceProcessorWasm, traceProcessorModule } from './wasm.ts'

declare global {
  // Types of ES2022 do not contain it; those of Node and of ESNext do, in the same way.
  interface SymbolConstructor {
    readonly dispose: unique symbol
  }
}

/** How a trace is opened. */
export interface OpenOptions {
  /** trace_processor, where it is not found by itself: in a bundle, a page, a worker. A module is compiled once for several traces. */
  readonly wasm?: TraceProcessorWasm | undefined
}

/** A trace in trace_processor. */
export interface OpenTrace {
  /**
   * Runs PerfettoSQL and returns the last statement's result; integers are exact (number where safe, else bigint). `values` are those of
   * the parameters (`?`, or `:name`) of the SQL. It runs in this thread, until it is done: who must be able to end a query opens the trace in a
   * worker, and terminates that. Throws SqlError for wrong SQL, TraceProcessorError if trace_processor failed or the trace is
   * closed.
   */
  query(sql: string, values?: Parameters): QueryResult
  /** The same as objects with a field for each column, one after the other: `for (const { name, dur } of trace.rows<…>('select …'))`. */
  rows<Row extends object = Record<string, Cell>>(sql: string, values?: Parameters): IterableIterator<Row>
  /** Makes a further package of modules known to `INCLUDE PERFETTO MODULE`. Throws SqlError if there is one of its name. */
  register(sqlPackage: SqlPackage): void
  /**
   * Computes all metrics of trace summary specs (Perfetto's `TraceSummarySpec` in textproto), by default those of {@link GGML_SUMMARY}.
   * Throws SqlError for wrong specs.
   */
  summarize(...specs: string[]): MetricBundle[]
  /** The same as textproto, as trace_processor_shell prints it. */
  summarizeAsText(...specs: string[]): string
  /** Import errors of trace_processor, and slices without end or name; empty for a sound trace. */
  problems(): Problem[]
  /** Frees the memory. */
  close(): void
  /** The same, for `using trace = await openTrace(…)`. */
  [Symbol.dispose](): void
}

/**
 * Opens a trace in Google's trace_processor (WASM, in this thread): Perfetto's protobuf, Chrome JSON, or any other
 * format that it reads. Throws TraceProcessorError if it cannot be loaded, UsageError if the source cannot be read.
 */
export async function openTrace(trace: ByteSource, options: OpenOptions = {}): Promise<OpenTrace> {
  checkNames('openTrace', options, OPEN_TRACE_OPTIONS)
  const processor = await TraceProcessor.open(await traceProcessorModule(options.wasm), chunksOf(trace, 'trace'))
  processor.register(GGML_PACKAGE)
  const query = (sql: string, values?: Parameters) => processor.query(values ? withParameters(sql, values) : sql)
  const close = () => processor.close()
  return {
    query,
    rows: <Row>(sql: string, values?: Parameters) => objectsOf<Row>(query(sql, values)),
    register: (sqlPackage) => processor.register(sqlPackage),
    summarize: (...specs) => processor.summarize(specs.length === 0 ? [GGML_SUMMARY] : specs),
    summarizeAsText: (...specs) => processor.summarizeAsText(specs.length === 0 ? [GGML_SUMMARY] : specs),
    problems: () => importProblems(processor),
    close,
    [DISPOSE]: close,
  }
}

/** Not all browsers have it. */
const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose')

function* objectsOf<Row>({ columns, rows }: QueryResult): Generator<Row, void> {
  for (const row of rows) yield Object.fromEntries(columns.map((column, i) => [column, row[i]])) as Row
}

/** How much of a trace is read to find its view: some 500 000 slices, loaded in seconds. */
const VIEW_BYTES = 1 << 24

/**
 * Finds what the Perfetto UI should show first of a trace: the first decode calls, and tracks to continue from. Reads only
 * the first 16 MiB of the trace (decompressed), which contain them. Throws TraceProcessorError if it is not a
 * trace.
 */
export async function findView(trace: AsyncIterable<Uint8Array>, options: OpenOptions = {}): Promise<View> {
  checkNames('findView', options, FIND_VIEW_OPTIONS)
  let isCut = false
  const onCut = () => {
    isCut = true
  }
  try {
    const open = await openTrace(beginning(gunzip(trace, onCut), VIEW_BYTES, onCut), options)
    try {
      return viewOf(open.query)
    } finally {
      open.close()
    }
  } catch (error) {
    // Some formats cannot be read in part.
    if (isCut) return { commands: [] }
    throw error
  }
}

async function* beginning(
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
  onCut: () => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > bytesMax) return onCut()
    yield chunk
  }
}

/** Result of {@link checkTrace}. */
export interface CheckResult {
  /** The format, by the first bytes: Perfetto's protobuf (packets), Chrome's JSON (events), or an archive of traces. */
  readonly kind: 'perfetto' | 'json' | 'zip'
  /** The file's structure: packets or events, bytes, and the first problem. */
  readonly walk: WalkResult
  /** Import problems; empty if the walk found a problem, because then nothing was imported. */
  readonly problems: readonly Problem[]
}

/**
 * Checks a trace, Perfetto's or Chrome JSON: walks its packets or events (trace_processor does not report every truncated
 * file), loads it, and asks for import errors. Throws TraceProcessorError and UsageError, see {@link openTrace}.
 */
export async function checkTrace(trace: ByteSource, options: OpenOptions = {}): Promise<CheckResult> {
  checkNames('checkTrace', options, CHECK_TRACE_OPTIONS)
  const { kind, walk } = await walkTrace(trace)
  if (walk.problem) return { kind, walk, problems: [] }
  const open = await openTrace(trace, options)
  try {
    return { kind, walk, problems: open.problems() }
  } finally {
    open.close()
  }
}

type Walk = Pick<CheckResult, 'kind' | 'walk'>

async function walkTrace(trace: ByteSource): Promise<Walk> {
  let broken: string | undefined
  const { kind, walk } = await walkAny(gunzip(chunksOf(trace, 'trace'), (detail) => (broken = detail)))
  if (broken === undefined || walk.problem) return { kind, walk }
  const { packets, bytes } = walk
  const message = `the gzip stream is broken after ${bytes} decompressed bytes: ${broken}`
  const at = { offset: bytes, packet: packets, expected: undefined, found: 0 }
  return { kind, walk: { ...walk, problem: { kind: 'truncated', ...at, message } } }
}

/** The first bytes of a trace, which show its format: JSON may begin with blanks. */
const KIND_BYTES = 4096

/** Walks a trace in the format that its first bytes show. */
async function walkAny(chunks: AsyncGenerator<Uint8Array>): Promise<Walk> {
  const { head, rest } = await peek(chunks, KIND_BYTES)
  if (startsAsZip(head)) return { kind: 'zip', walk: await countBytes(rest) }
  if (traceStart(head) === 'json') return { kind: 'json', walk: await walkJson(rest) }
  return { kind: 'perfetto', walk: await walkPackets(rest) }
}

function startsAsZip(head: Uint8Array): boolean {
  return head[0] === 0x50 && head[1] === 0x4b && head[2] === 3 && head[3] === 4
}

/** trace_processor itself checks the members of a ZIP: they have checksums. */
async function countBytes(chunks: AsyncIterable<Uint8Array>): Promise<WalkResult> {
  let bytes = 0
  for await (const chunk of chunks) bytes += chunk.length
  return { packets: 0, bytes, problem: undefined }
}
