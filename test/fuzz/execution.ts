import { compareRuns, readAnalysis } from '../../lib/analysis.ts'
import {
  type Analysis,
  type AnalyzeOptions,
  analyze,
  type ConvertOptions,
  convert,
  eventsOf,
  type Input,
  isOwnError,
  Names,
  type PeakFigures,
} from '../../lib/index.ts'
import { openTrace, toChromeJson } from '../../lib/sql.ts'
import { ggufFile, SMALL_MODEL } from '../analyze/model/gguf-file.ts'
import { faultsOf as faultsOfTrace } from '../line/hostile.ts'
import { joined, plainBytes, randomOf } from '../line/support.ts'
import {
  faultsIn,
  faultsOfTables,
  faultsOfTexts,
  noNumbersIn,
  SERIES,
  tablesMade,
  textsOf,
  textsOfComparison,
  textsOfTrace,
} from '../read/made.ts'
import { corpusOf } from './corpus.ts'
import { mutated, repaired, restructured } from './mutate.ts'

/**
 * One execution of the fuzzer: a damaged input, alone or with another, read with random options in one of these ways. A fault is an
 * error of another class than ours, output that cannot be parsed, contains a number that is none or is too large, or an input that
 * takes too long.
 */

/** What is made of an input: `readers` only decode it. */
export const WAYS = ['readers', 'trace', 'analysis', 'tables'] as const
/** One of them. */
export type Way = (typeof WAYS)[number]

/** How often each way is chosen where none is given: the analysis has most code. */
const CHOSEN: readonly Way[] = ['analysis', 'trace', 'tables', 'analysis', 'trace', 'analysis', 'tables', 'readers']
/** One of so many executions has a second input. */
const PAIR_EVERY = 6
/** One of so many traces is opened, and written as Chrome JSON: that takes longest. */
const OPENED_EVERY = 24
/** One of so many analyses is compared with that of the undamaged input. */
const COMPARED_EVERY = 8
/** Time of the processor that an execution may take. */
const SLOW_MS = 2000
/** Limit of written bytes per read byte, and for an input of any size: its tracks, its issues. */
const OUTPUT_RATIO_MAX = 400
const OUTPUT_BYTES = 1 << 20

/** What a found word may be part of, where the input contains it. */
const WORDS = /NaN|Infinity|Inf|undefined|object Object/

/** The log that the samples of memory in the fixtures belong to. */
const SAMPLED = {
  formats: new Set(['perf-data', 'perf-script']),
  log: plainBytes('memory-samples/nano.ggtrace.gz'),
}
/** Descriptions of a model: a config.json, and a GGUF file. */
const MODELS = [
  new TextEncoder().encode(
    '{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":300}',
  ),
  ggufFile(SMALL_MODEL),
]

/** What an execution read and found. */
export interface Execution {
  readonly format: string
  readonly way: Way
  /** The inputs, damaged. */
  readonly inputs: readonly Uint8Array[]
  /** What is wrong; undefined: nothing. */
  readonly fault: string | undefined
}

/** Where executions choose from: a number below a limit, or one of some values. */
class Choices {
  constructor(readonly next: () => number) {}

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  of<T>(...values: readonly T[]): T {
    return values[this.below(values.length)]!
  }

  /** Once in so many times. */
  once(every: number): boolean {
    return this.below(every) === 0
  }
}

/** An input that can be read several times, whole or in pieces. */
interface Source {
  readonly name: string
  readonly bytes: Uint8Array
  readonly isInPieces: boolean
}

/** Executions by their numbers: the same seed, format and way give the same ones. */
export class Fuzzer {
  private readonly corpus: ReadonlyMap<string, readonly Uint8Array[]>
  /** Formats of which there are inputs. */
  readonly formats: readonly string[]

  constructor(
    private readonly seed: number,
    private readonly only: { readonly format?: string | undefined; readonly way?: Way | undefined } = {},
  ) {
    this.corpus = corpusOf(only.format)
    this.formats = [...this.corpus.keys()]
  }

  /** The execution with this number. */
  async execute(number: number): Promise<Execution> {
    const next = randomOf(this.seed * 0x9e3779b1 + number)
    const choices = new Choices(next)
    const format = this.formats[number % this.formats.length]!
    const way = this.only.way ?? choices.of(...CHOSEN)
    const { damaged, undamaged } = this.input(format, choices)
    const sources = [source('fuzz', damaged, choices)]
    if (SAMPLED.formats.has(format) && choices.once(3)) sources.push(source('log', SAMPLED.log, choices))
    else if (way !== 'readers' && choices.once(PAIR_EVERY)) sources.push(source('other', this.other(choices), choices))
    const from = sources.length === 1 && !choices.once(4) ? format : undefined
    const seed = choices.below(2 ** 32)
    const run = () => tried(way, sources, from, undamaged, new Choices(randomOf(seed)))
    const before = performance.now()
    let fault = await run()
    if (fault === undefined && performance.now() - before > SLOW_MS) {
      const cpu = process.cpuUsage()
      await run()
      const ms = process.cpuUsage(cpu).user / 1000
      if (ms > SLOW_MS) fault = `took ${ms.toFixed(0)} ms`
    }
    return { format, way, inputs: sources.map(({ bytes }) => bytes), fault }
  }

  private input(format: string, choices: Choices) {
    const corpus = this.corpus.get(format)!
    const undamaged = choices.of(...corpus)
    if (format === 'ggtrace' && choices.once(2)) return { undamaged, damaged: restructured(undamaged, choices.next) }
    const damaged = mutated(undamaged, choices.next, corpus)
    return { undamaged, damaged: format === 'ggtrace' && !choices.once(3) ? repaired(damaged) : damaged }
  }

  /** A second input of any format, often damaged. */
  private other(choices: Choices): Uint8Array {
    if (choices.once(10)) {
      const model = choices.of(...MODELS)
      return choices.once(2) ? model : mutated(model, choices.next, MODELS)
    }
    const { damaged, undamaged } = this.input(choices.of(...this.formats), choices)
    return choices.once(2) ? damaged : undamaged
  }
}

function source(name: string, bytes: Uint8Array, choices: Choices): Source {
  return { name, bytes, isInPieces: choices.once(3) }
}

/** What is wrong with all that is made of the inputs; undefined: nothing. */
async function tried(
  way: Way,
  sources: readonly Source[],
  from: string | undefined,
  undamaged: Uint8Array,
  choices: Choices,
): Promise<string | undefined> {
  try {
    const inputs = () => sources.map((of) => inputOf(of, choices))
    if (way === 'readers') await decode(inputs()[0]!, from)
    else if (way === 'trace') return await tryTrace(sources, inputs(), from, choices)
    else if (way === 'tables')
      return faultsOfTables_(sources, await tablesMade(inputs(), readingOf(sources, from, choices)))
    else return await tryAnalysis(sources, inputs(), from, undamaged, choices)
    return undefined
  } catch (error) {
    return isOwnError(error) ? undefined : (error as Error).stack
  }
}

function inputOf({ name, bytes, isInPieces }: Source, choices: Choices): Input {
  return { name, source: isInPieces ? pieces(bytes, choices) : bytes }
}

async function* pieces(bytes: Uint8Array, choices: Choices): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + choices.below(choices.once(4) ? 40 : 4000)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function decode(input: Input, from: string | undefined): Promise<void> {
  for await (const _ of eventsOf(input, new Names(), { from }));
}

const peaksOf = (choices: Choices): PeakFigures => ({
  device: null,
  flop_per_s: choices.of(null, 1, 1e12, 1e24, Number.MIN_VALUE),
  flop_type: 'any',
  int8_op_per_s: null,
  bytes_per_s: choices.of(null, 1, 1e11, 1e24),
  origin: 'given',
  source: 'fuzz',
})

/** Options of each way. */
function readingOf(sources: readonly Source[], from: string | undefined, choices: Choices): AnalyzeOptions {
  const clock = choices.of('mono', 'boot', 'mono_raw', 'real', '+1.2ms', '@1444.4s')
  const clocks = sources.length > 1 && !choices.once(3) ? { [choices.of(...sources).name]: clock } : undefined
  return { from, clocks, strict: choices.once(16) }
}

const hasWords = (sources: readonly Source[]) =>
  sources.some(({ bytes }) => WORDS.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')))

const shown = (faults: readonly string[]) => (faults.length === 0 ? undefined : faults.slice(0, 5).join('\n'))

/** Texts of inputs with these words contain them. */
function faultsOfTables_(sources: readonly Source[], made: Awaited<ReturnType<typeof tablesMade>>) {
  return shown(hasWords(sources) ? noNumbersIn([...made.rows, made.summaries]) : faultsOfTables(made))
}

async function tryTrace(
  sources: readonly Source[],
  inputs: readonly Input[],
  from: string | undefined,
  choices: Choices,
): Promise<string | undefined> {
  const first = choices.below(6)
  const options: ConvertOptions = {
    ...readingOf(sources, from, choices),
    to: choices.of('perfetto', 'json'),
    detail: choices.of('names', 'shapes', 'full'),
    opName: choices.of('role', 'op', 'tensor'),
    memory: choices.of('counters', 'lifetimes'),
    tokens: choices.once(8) ? [first, first + choices.below(3)] : undefined,
    flows: choices.once(4) ? { token: choices.below(4) } : undefined,
    allThreads: choices.once(2),
    osRuntime: choices.once(2),
    findings: choices.once(2),
    budget: choices.once(4) ? 1 + choices.below(1 << 16) : undefined,
  }
  const output = await joined(convert(inputs, options))
  const read = sources.reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (output.length > OUTPUT_BYTES + OUTPUT_RATIO_MAX * read) return `${output.length} bytes from ${read}`
  if (options.to === 'perfetto') {
    const faults = faultsOfTrace(output)
    const isOpened = faults.length === 0 && output.length <= OUTPUT_BYTES && choices.once(OPENED_EVERY)
    return shown(isOpened ? await faultsAsJson(output) : faults)
  }
  const json: unknown = JSON.parse(Buffer.from(output).toString())
  return hasWords(sources) ? undefined : shown(faultsOfTexts(textsOfTrace(json)))
}

/** What is wrong with a trace as Chrome JSON, by trace_processor's tables. */
async function faultsAsJson(output: Uint8Array): Promise<readonly string[]> {
  const trace = await openTrace(output)
  try {
    const json: unknown = JSON.parse(Buffer.concat([...toChromeJson(trace)]).toString())
    return noNumbersIn(json, 'as Chrome JSON')
  } finally {
    trace.close()
  }
}

async function tryAnalysis(
  sources: readonly Source[],
  inputs: readonly Input[],
  from: string | undefined,
  undamaged: Uint8Array,
  choices: Choices,
): Promise<string | undefined> {
  const options = readingOf(sources, from, choices)
  const analysis = await analyze(inputs, {
    ...options,
    series: choices.once(3) ? [choices.of(...SERIES)] : SERIES,
    call: choices.once(4) ? choices.below(6) : undefined,
    flopsPerToken: choices.once(8) ? choices.of(0, 1, 2e9, 1e24, Number.MAX_VALUE) : undefined,
    peaks: choices.once(4) ? peaksOf(choices) : undefined,
    cacheTypes: choices.once(8) ? { k: 'q8_0', v: 'f16' } : undefined,
  })
  const made = [...faultsOfAnalysis(sources, analysis)]
  const stored = await readAnalysis(JSON.stringify(analysis))
  made.push(...faultsOfAnalysis(sources, stored))
  if (choices.once(COMPARED_EVERY)) {
    const other = await analyze({ name: 'undamaged', source: undamaged }, { from })
    const sides = [analysis, other].map((of, i) => ({ name: `side ${i}`, runs: [of] }))
    const comparison = compareRuns(sides[choices.below(2)]!, sides[choices.below(2)]!)
    made.push(...noNumbersIn(comparison, 'comparison'))
    const texts = textsOfComparison(comparison)
    if (!hasWords(sources)) made.push(...faultsOfTexts(texts))
  }
  return shown(made)
}

function faultsOfAnalysis(sources: readonly Source[], analysis: Analysis): string[] {
  const texts = textsOf(analysis)
  return hasWords(sources) ? noNumbersIn(analysis) : [...faultsIn(analysis), ...faultsOfTexts(texts)]
}
