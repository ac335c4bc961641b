import type { Summary } from '../analyze/summary/figures.ts'
import { traceStart } from '../bytes/trace-start.ts'
import { UsageError } from '../errors.ts'
import { gunzip, peek } from '../input/gunzip.ts'
import { convert, summarize } from '../pipeline/convert.ts'
import type { InputOptions, LogInput } from '../pipeline/inputs.ts'
import type { ConvertOptions } from '../pipeline/options.ts'
import { importProblems, type Problem, type WalkResult, walkPackets } from '../query/check.ts'
import { walkJson } from '../query/check-json.ts'
import { GGML_PACKAGE, GGML_SUMMARY } from '../query/ggml-package.ts'
import { type QueryResult, type SqlPackage, TraceProcessor } from '../query/trace-processor.ts'
import type { MetricBundle } from '../query/trace-summary.ts'
import { type View, viewOf } from '../query/view.ts'
import { gzip } from '../write/gzip.ts'
import { type TraceKind, traceKindOf } from '../write/index.ts'
import { fileSource, isSameFile, readFileChunks, writeFileWhole } from './files.ts'
import { traceProcessorModule } from './wasm.ts'

/** A trace or a log: a path, or the bytes themselves. */
export type PathOrBytes = string | Uint8Array

/** The input for a path or for bytes. */
export function inputOf(from: PathOrBytes): LogInput {
  return typeof from === 'string' ? { name: from, source: fileSource(from) } : { name: 'input', source: from }
}

/**
 * Converts log files to one trace file, which appears only when it is complete. By default it is Chrome JSON if its name ends
 * in `.json` or `.json.gz`, else Perfetto; gzip'ed if the name ends in `.gz`. Returns a summary per input and the size of the
 * file in bytes. Throws FormatError and UsageError, see {@link convert}.
 */
export async function convertFile(
  from: string | readonly string[],
  to: string,
  options: ConvertOptions = {},
): Promise<{ summaries: Summary[]; bytes: number }> {
  for (const path of [from].flat()) {
    if (await isSameFile(path, to)) throw new UsageError(`${to}: is the input itself; give the trace another name`)
  }
  const trace = convert([from].flat().map(inputOf), { ...options, to: options.to ?? traceKindOf(to) })
  const { result, bytes } = await writeFileWhole(to, to.endsWith('.gz') ? gzip(trace) : trace)
  return { summaries: result, bytes }
}

/** Summarizes a log. Throws FormatError and UsageError, see {@link convert}. */
export function summarizeFile(
  from: PathOrBytes,
  options: InputOptions & Pick<ConvertOptions, 'findings'> = {},
): Promise<Summary> {
  return summarize(inputOf(from), options)
}

/** A trace in trace_processor. */
export interface OpenTrace {
  /**
   * Runs PerfettoSQL and returns the last statement's result; integers are exact (number where safe, else bigint).
   * Throws SqlError for wrong SQL, TraceProcessorError if trace_processor failed or the trace is closed.
   */
  query(sql: string): QueryResult
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
}

/**
 * Opens a trace in Google's trace_processor (WASM, in this process): Perfetto's protobuf, Chrome JSON, or any other
 * format that it reads. Throws TraceProcessorError if it cannot be loaded, UsageError if the file cannot be read.
 */
export async function openTrace(trace: PathOrBytes | AsyncIterable<Uint8Array>): Promise<OpenTrace> {
  const processor = await TraceProcessor.open(await traceProcessorModule(), chunksOf(trace))
  processor.register(GGML_PACKAGE)
  return {
    query: (sql) => processor.query(sql),
    register: (sqlPackage) => processor.register(sqlPackage),
    summarize: (...specs) => processor.summarize(specs.length === 0 ? [GGML_SUMMARY] : specs),
    summarizeAsText: (...specs) => processor.summarizeAsText(specs.length === 0 ? [GGML_SUMMARY] : specs),
    problems: () => importProblems(processor),
    close: () => processor.close(),
  }
}

/** How much of a trace is read to find its view: some 500 000 slices, loaded in seconds. */
const VIEW_BYTES = 1 << 24

/**
 * Finds what the Perfetto UI should show first of a trace: the first decode calls, and tracks to continue from. Reads only
 * the first 16 MiB of the trace (decompressed), which contain them. Throws TraceProcessorError if it is not a
 * trace.
 */
export async function findView(trace: AsyncIterable<Uint8Array>): Promise<View> {
  let isCut = false
  const onCut = () => {
    isCut = true
  }
  try {
    const open = await openTrace(beginning(gunzip(trace, onCut), VIEW_BYTES, onCut))
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
  /** The format, by the file's first bytes: Perfetto's protobuf (packets), Chrome's JSON (events), or an archive of traces. */
  readonly kind: TraceKind | 'zip'
  /** The file's structure: packets or events, bytes, and the first problem. */
  readonly walk: WalkResult
  /** Import problems; empty if the walk found a problem, because then nothing was imported. */
  readonly problems: readonly Problem[]
}

/**
 * Checks a trace, Perfetto's or Chrome JSON: walks its packets or events (trace_processor does not report every truncated
 * file), loads it, and asks for import errors. Throws TraceProcessorError and UsageError, see {@link openTrace}.
 */
export async function checkTrace(trace: PathOrBytes): Promise<CheckResult> {
  const { kind, walk } = await walkTrace(trace)
  if (walk.problem) return { kind, walk, problems: [] }
  const open = await openTrace(trace)
  try {
    return { kind, walk, problems: open.problems() }
  } finally {
    open.close()
  }
}

type Walk = Pick<CheckResult, 'kind' | 'walk'>

async function walkTrace(trace: PathOrBytes): Promise<Walk> {
  let broken: string | undefined
  const { kind, walk } = await walkAny(gunzip(chunksOf(trace), (detail) => (broken = detail)))
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

async function* chunksOf(trace: PathOrBytes | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (typeof trace === 'string') yield* readFileChunks(trace)
  else if (ArrayBuffer.isView(trace)) yield trace
  else yield* trace
}
