import type { Summary } from '../analyze/summary/figures.ts'
import { checkNames, UsageError } from '../errors.ts'
import { CONVERT_FILE_OPTIONS } from '../generated/option-names.ts'
import type { ByteSource } from '../input/byte-source.ts'
import type { InputOptions, LogInput } from '../pipeline/inputs.ts'
import { convert, summarize } from '../pipeline/known-formats.ts'
import type { ConvertOptions } from '../pipeline/options.ts'
import type { CheckResult, OpenOptions, OpenTrace } from '../query/open-trace.ts'
import { gzip } from '../write/gzip.ts'
import { traceKindOf } from '../write/index.ts'
import { fileSource, isSameFile, pathOf, writeFileWhole } from './files.ts'

/** A trace or a log: a file, by its path or its `file:` URL, or the bytes themselves. */
export type PathOrBytes = string | URL | Uint8Array

/** The input for a path or for bytes. */
export function inputOf(from: PathOrBytes): LogInput {
  return isPath(from) ? { name: pathOf(from), source: fileSource(from) } : { name: 'input', source: from }
}

/**
 * Converts log files to one trace file, which appears only when it is complete. By default it is Chrome JSON if its name ends
 * in `.json` or `.json.gz`, else Perfetto; gzip'ed if the name ends in `.gz`. Returns a summary per input and the size of the
 * file in bytes. Throws FormatError and UsageError, see {@link convert}.
 */
export async function convertFile(
  from: string | URL | readonly (string | URL)[],
  to: string | URL,
  options: ConvertOptions = {},
): Promise<{ summaries: Summary[]; bytes: number }> {
  checkNames('convertFile', options, CONVERT_FILE_OPTIONS)
  const output = pathOf(to)
  const paths = ([from].flat() as (string | URL)[]).map(pathOf)
  for (const path of paths) {
    if (await isSameFile(path, output))
      throw new UsageError(`${output}: is the input itself; give the trace another name`)
  }
  const trace = convert(paths.map(inputOf), { ...options, to: options.to ?? traceKindOf(output) })
  const { result, bytes } = await writeFileWhole(output, output.endsWith('.gz') ? gzip(trace) : trace)
  return { summaries: result, bytes }
}

/** Summarizes a log. Throws FormatError and UsageError, see {@link convert}. */
export function summarizeFile(
  from: PathOrBytes,
  options: InputOptions & Pick<ConvertOptions, 'findings'> = {},
): Promise<Summary> {
  return summarize(inputOf(from), options)
}

// trace_processor and what it asks are loaded for those who open a trace.

/** Opens a trace as `openTrace` of `ggml2perfetto/sql` does, also a file. Throws UsageError if that cannot be read. */
export async function openTrace(trace: PathOrBytes | ByteSource, options: OpenOptions = {}): Promise<OpenTrace> {
  return (await import('../query/open-trace.ts')).openTrace(sourceOf(trace), options)
}

/** Checks a trace as `checkTrace` of `ggml2perfetto/sql` does, also a file. Throws UsageError if that cannot be read. */
export async function checkTrace(trace: PathOrBytes | ByteSource, options: OpenOptions = {}): Promise<CheckResult> {
  return (await import('../query/open-trace.ts')).checkTrace(sourceOf(trace), options)
}

const isPath = (from: PathOrBytes | ByteSource): from is string | URL => typeof from === 'string' || 'href' in from

const sourceOf = (from: PathOrBytes | ByteSource): ByteSource => (isPath(from) ? fileSource(from) : from)
