import { UsageError } from '../errors.ts'
import { BARRIERS, DETAILS, type DrawOptions, MEMORY_ROWS, OP_NAMINGS } from '../timeline/options.ts'
import { TRACE_KINDS, type TraceKind } from '../write/index.ts'
import type { InputOptions, LogInput } from './inputs.ts'

/** How a trace is written. */
export interface ConvertOptions extends InputOptions, DrawOptions {
  /** Format of the trace: `perfetto` (default, protobuf) or `json` (Chrome's Trace Event Format). */
  readonly to?: TraceKind | undefined
  /**
   * Clocks of inputs, by name or file name: a clock (`mono`, `boot`, `mono_raw`, `real`) if the input records none, an offset
   * from its times to the log's (`+1.2ms`), or its begin on the log's clock (`@1444.4s`).
   */
  readonly clocks?: Readonly<Record<string, string>> | undefined
  /**
   * A file that Perfetto reads itself, such as a perf.data with call stacks. The output is a ZIP archive of the trace, this file,
   * unchanged, and a `perfetto_manifest`, all on one clock. The file must be readable twice: bytes, a Blob, a file; no stream.
   */
  readonly bundle?: LogInput | undefined
  /**
   * Size of the trace, in bytes, that should not be exceeded. Where all calls do not fit, the first ones, prefills, the slowest ones and
   * evenly spread ones are in full; operators of the others are summed up, by worker and name. By default 96 MiB (JSON: 480 MiB),
   * which viewers open in some 10 s; a stream, of which nothing is known ahead, may take a quarter more of the default.
   */
  readonly budget?: number | undefined
  /** All calls in full, however large the trace gets. */
  readonly all?: boolean | undefined
  /** Called with the indexes of inputs that are read twice, before their first reading, and with undefined after it. */
  readonly onFirstReading?: ((inputs: readonly number[] | undefined) => void) | undefined
  /**
   * The rows of a log stay in its group, for a viewer that is asked to open the group, as `open` does. By default, those of a log are at the
   * top where the viewer has groups of its own, and would close that of the log.
   */
  readonly grouped?: boolean | undefined
  /** Also find what made the run slow, see {@link Summary.findings}. */
  readonly findings?: boolean | undefined
  /** Stop at the first issue: throws FormatError. */
  readonly strict?: boolean | undefined
}

/** Throws UsageError for an invalid value of an option, and if there is no input. */
export function checkOptions(
  inputs: readonly unknown[],
  { to, detail, opName, tokens, memory, barriers, flows, bundle, budget, all }: ConvertOptions,
): void {
  const oneOf = (option: string, value: string | undefined, allowed: readonly string[]) => {
    if (value === undefined || allowed.includes(value)) return
    throw new UsageError(`${option}: expected one of ${allowed.join(', ')}, found "${value}"`)
  }
  oneOf('to', to, TRACE_KINDS)
  oneOf('detail', detail, DETAILS)
  oneOf('opName', opName, OP_NAMINGS)
  oneOf('memory', memory, MEMORY_ROWS)
  oneOf('barriers', barriers, BARRIERS)
  if (bundle && to === 'json') throw new UsageError('bundle: requires a trace in the format of Perfetto, not json')
  if (flows && !(Number.isInteger(flows.token) && flows.token >= 0)) {
    throw new UsageError(`flows: expected the number of a call, 0 or more, found ${flows.token}`)
  }
  if (tokens && !(tokens[0] >= 0 && tokens[0] <= tokens[1])) {
    throw new UsageError(`tokens: expected [first, last], 0 or more, found [${tokens.join(', ')}]`)
  }
  if (budget !== undefined && !(budget > 0)) throw new UsageError(`budget: expected bytes, above 0, found ${budget}`)
  if (budget !== undefined && all) throw new UsageError('budget: has no meaning with all')
  if (inputs.length === 0) throw new UsageError('no input: there is nothing to convert')
  const wrong = inputs.find((input) => typeof input !== 'object' || input === null)
  if (wrong === undefined) return
  const hint = 'files are read by convertFile of ggml2perfetto/node, or by fileSource(path) as the source'
  throw new UsageError(
    `expected inputs with a name and a source or events, found ${JSON.stringify(wrong)}\nhint: ${hint}`,
  )
}
