import type { Summary } from '../analyze/summary.ts'
import { type ConvertOptions, convert, type Input, type InputOptions, summarize } from '../convert.ts'
import { UsageError } from '../errors.ts'
import { gunzip } from '../input/gunzip.ts'
import { importProblems, type Problem, type WalkResult, walkPackets } from '../query/check.ts'
import { type QueryResult, TraceProcessor } from '../query/trace-processor.ts'
import { isSameFile, readFileChunks, writeFileWhole } from './files.ts'
import { traceProcessorModule } from './wasm.ts'

/** A trace or a log: a path, or the bytes themselves. */
export type PathOrBytes = string | Uint8Array

/** The input of a path or of bytes. */
export function inputOf(from: PathOrBytes): Input {
  return typeof from === 'string' ? { name: from, source: readFileChunks(from) } : { name: 'input', source: from }
}

/**
 * Converts log files to one Perfetto trace file, which appears only when it is complete. Returns a summary per input
 * and the size of the trace in bytes. Throws FormatError and UsageError, see {@link convert}.
 */
export async function convertFile(
  from: string | readonly string[],
  to: string,
  options: ConvertOptions = {},
): Promise<{ summaries: Summary[]; bytes: number }> {
  for (const path of [from].flat()) {
    if (await isSameFile(path, to)) throw new UsageError(`${to}: is the input itself; give the trace another name`)
  }
  const { result, bytes } = await writeFileWhole(to, convert([from].flat().map(inputOf), options))
  return { summaries: result, bytes }
}

/** What is in a log. Throws FormatError and UsageError, see {@link convert}. */
export function summarizeFile(from: PathOrBytes, options: InputOptions = {}): Promise<Summary> {
  return summarize(inputOf(from), options)
}

/** A trace in trace_processor. */
export interface OpenTrace {
  /**
   * Runs PerfettoSQL and returns the last statement's result; integers are exact (number where safe, else bigint).
   * Throws SqlError for wrong SQL, TraceProcessorError if trace_processor failed or the trace is closed.
   */
  query(sql: string): QueryResult
  /** What trace_processor had to complain about on import, and slices without end or name; empty when sound. */
  problems(): Problem[]
  /** Lets go of the memory. */
  close(): void
}

/**
 * Opens a trace in Google's trace_processor (WASM, in this process): Perfetto's protobuf, Chrome JSON, or any other
 * kind that it reads. Throws TraceProcessorError if it cannot be loaded, UsageError if the file cannot be read.
 */
export async function openTrace(trace: PathOrBytes | AsyncIterable<Uint8Array>): Promise<OpenTrace> {
  const processor = await TraceProcessor.create(await traceProcessorModule())
  try {
    await processor.load(
      typeof trace === 'string' ? readFileChunks(trace) : ArrayBuffer.isView(trace) ? [trace] : trace,
    )
  } catch (error) {
    processor.close()
    throw error
  }
  return {
    query: (sql) => processor.query(sql),
    problems: () => importProblems(processor),
    close: () => processor.close(),
  }
}

/** Result of {@link checkTrace}. */
export interface CheckResult {
  /** The file's structure: packets, bytes, and the first problem. */
  readonly walk: WalkResult
  /** Import problems; empty if the walk found one, for then nothing was imported. */
  readonly problems: readonly Problem[]
}

/**
 * Checks a Perfetto trace: walks its packets (trace_processor does not report a file that was cut), loads it, and asks
 * for import errors. Throws TraceProcessorError and UsageError, see {@link openTrace}.
 */
export async function checkTrace(trace: PathOrBytes): Promise<CheckResult> {
  const walk = await walkTrace(trace)
  if (walk.problem) return { walk, problems: [] }
  const open = await openTrace(trace)
  try {
    return { walk, problems: open.problems() }
  } finally {
    open.close()
  }
}

async function walkTrace(trace: PathOrBytes): Promise<WalkResult> {
  let broken: string | undefined
  const chunks = typeof trace === 'string' ? readFileChunks(trace) : chunk(trace)
  const walk = await walkPackets(gunzip(chunks, (detail) => (broken = detail)))
  if (broken === undefined || walk.problem) return walk
  const { packets, bytes } = walk
  const message = `the gzip stream is broken after ${bytes} decompressed bytes: ${broken}`
  return {
    ...walk,
    problem: { kind: 'truncated', offset: bytes, packet: packets, expected: undefined, found: 0, message },
  }
}

async function* chunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
