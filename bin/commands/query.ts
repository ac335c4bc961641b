import { existsSync } from 'node:fs'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Cell,
  type ConvertOptions,
  convert,
  GGML_SUMMARY,
  type MetricBundle,
  type OpenTrace,
  openTrace,
  type QueryResult,
  type Summary,
  summarize,
  UsageError,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { type Opened, openInput, readInput, readWhole } from '../inputs.ts'
import { CLOCKS, conversionOf, DRAWING, flag, once, oneOf, READING, refuseDrawing, seldom, valued } from '../options.ts'
import { DATASET, isOfDataset, printOfDataset } from '../query/dataset.ts'
import { printPackage } from '../query/package.ts'
import { CSV_EXACT, printRows, ROW_FORMATS, refuseExact } from '../rows.ts'
import { issueCount } from '../summary.ts'
import { note, quoted } from '../terminal.ts'
import { noteThinned } from '../thinned.ts'
import { plural } from '../units.ts'
import { within } from './convert.ts'

const OPTIONS = {
  format: {
    ...valued(oneOf('--format', ROW_FORMATS), 'table | csv | json', 'table'),
    default: 'table',
  },
  ...CSV_EXACT,
  file: { alias: 'f', ...valued(once('--file'), 'Read the SQL from this file; with --summary the spec') },
  package: {
    type: 'string',
    describe:
      'Print the SQL package ggml for the Perfetto UI; with a folder, write it there for other tools of Perfetto',
  },
  ...DATASET,
  summary: flag('Print the metrics of a trace summary instead: those of ggml, or of the spec (textproto) in --file'),
  ...DRAWING,
  tokens: seldom(DRAWING.tokens),
  budget: seldom(DRAWING.budget),
  all: seldom(DRAWING.all),
  detail: seldom({ ...DRAWING.detail, describe: 'As of convert (default: full)' }),
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[] | undefined
}

type WithInputs = Arguments & { inputs: string[] }

/** `ggml2perfetto query <trace, or logs> "<SQL>"` */
export const queryCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.query,
  builder: (yargs) =>
    yargs
      .usage('$0 query <trace, logs, or dataset> <SQL>')
      .positional('inputs', {
        type: 'string',
        array: true,
        describe: 'A trace, logs of one run, or the folder (or URL) of a dataset that export wrote; then the SQL',
      })
      .options(OPTIONS)
      .example(
        '$0 query run.csv "select name, sum(dur) ns from slice where category=\'operator\' group by 1 order by 2 desc limit 10"',
        'ops by time',
      )
      .example(
        '$0 query run.csv "select name, dur/1e6 ms from slice where category=\'token\'"',
        'the llama_decode calls',
      )
      .example(
        '$0 query run.ggtrace run.sched.dat "select name, sum(dur) ns from sched join thread using (utid) group by 1"',
        'several logs, on one clock',
      )
      .example(
        '$0 query run.ggtrace "include perfetto module ggml.calls; select * from ggml_decoding"',
        'docs/reference/sql.md',
      )
      .example('$0 query run.pftrace --file waits.sql --format csv > waits.csv', 'for a spreadsheet'),
  handler,
}

async function handler(given: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { format, csvExact } = given
  const args = { ...given, inputs: given.inputs ?? [] }
  refuseExact(csvExact, format === 'csv', '--format csv')
  if (args.package !== undefined) {
    if (args.inputs.length > 0) throw new UsageError(`--package: expected no inputs, found ${args.inputs[0]}`)
    return printPackage(args.package)
  }
  if (await isOfDataset(args)) {
    refuseDrawing(args, args.inputs[0] ?? '--question', 'a dataset')
    return printOfDataset(args)
  }
  if (args.inputs.length === 0) throw new UsageError('no input is given\nhint: ggml2perfetto query --help')
  const { inputs, sql } = args.summary ? await withSpec(args) : await splitSql(args)
  const options = { ...(await conversionOf(args)), detail: args.detail ?? 'full' }
  const opened: Opened[] = []
  for (const input of inputs) opened.push(await openInput(input))
  const trace = await open(opened, options, args)
  try {
    await printRows(args.summary ? metricRows(trace.summarize(sql)) : trace.query(sql), { format, csvExact })
  } finally {
    trace.close()
  }
}

/** All inputs, and the spec in place of SQL. */
async function withSpec({ inputs, file }: WithInputs): Promise<{ inputs: readonly string[]; sql: string }> {
  const sql = inputs.find(isSql)
  if (sql !== undefined) throw new UsageError(`--summary: expected inputs, found SQL: ${sql}`)
  return { inputs, sql: file === undefined ? GGML_SUMMARY : await textOf(file) }
}

/** One row for each value: `ggml_calls_tokens  phase=decode  8`. */
function metricRows(bundles: readonly MetricBundle[]): QueryResult {
  const rows = bundles.flatMap(({ metrics, dimensions, rows }) =>
    metrics.flatMap((metric, i) =>
      rows.map((row): Cell[] => {
        const named = dimensions.map((name, d) => `${name}=${row.dimensions[d] ?? ''}`)
        return [metric, named.join(' '), row.values[i] ?? null]
      }),
    ),
  )
  return { columns: ['metric', 'dimensions', 'value'], rows: rows.sort(([a], [b]) => (a! < b! ? -1 : a === b ? 0 : 1)) }
}

const textOf = async (path: string) => Buffer.from(await readWhole(readInput(path))).toString('utf8')

/** The inputs, and the SQL: the last argument, if it is not in a file. */
async function splitSql({ inputs: words, file }: WithInputs): Promise<{ inputs: readonly string[]; sql: string }> {
  const last = words.at(-1)!
  const example = (input: string) => `hint: ggml2perfetto query ${quoted(input)} "select name, dur from slice limit 10"`
  if (file !== undefined && words.length > 1 && isSql(last))
    throw new UsageError(`two SQLs: one as argument, one with --file\n${example(words[0]!)}`)
  const inputs = file === undefined ? words.slice(0, -1) : words
  if (inputs.length === 0) throw new UsageError(`the SQL is missing\n${example(last)}`)
  const swapped = inputs.find(isSql)
  if (swapped !== undefined || (file === undefined && !isSql(last) && existsSync(last))) {
    const what = swapped === undefined ? 'the SQL is missing' : 'the SQL comes after the inputs'
    throw new UsageError(`${what}\n${example(swapped === undefined ? inputs[0]! : last)}`)
  }
  const path = file ?? (last === '-' ? '-' : undefined)
  if ([...inputs, path].filter((input) => input === '-').length > 1)
    throw new UsageError('stdin (-) can be read only once: as an input or as the SQL')
  return { inputs, sql: path === undefined ? last : await textOf(path) }
}

/** SQL has blanks; a file of that name would be an input. */
const isSql = (word: string) => /\s/.test(word) && !existsSync(word)

/** Opens a trace as it is, or logs, converted while trace_processor reads them. A format we do not know is left to trace_processor. */
async function open(
  opened: readonly Opened[],
  options: ConvertOptions,
  args: Readonly<Record<string, unknown>>,
): Promise<OpenTrace> {
  const [{ name, kind, source, head }] = opened as [Opened]
  if (opened.length > 1 || kind === 'log' || options.from !== undefined) {
    const trace = opened.find((input) => input.kind === 'trace')
    if (trace) throw new UsageError(`${trace.name}: is a trace, and only logs can be queried together`)
    const names = opened.map((input) => input.name)
    return openTrace(
      noteIssues(names, within(options, names, convert(opened, { ...options, findings: true, grouped: true }))),
    )
  }
  refuseDrawing(args, name)
  if (kind === 'trace') return openTrace(source)
  try {
    return await openTrace(source)
  } catch (error) {
    // An unknown format: the library's error lists the formats and shows the first bytes.
    await summarize({ name, source: head })
    throw error
  }
}

async function* noteIssues(
  names: readonly string[],
  trace: AsyncGenerator<Uint8Array, Summary[]>,
): AsyncGenerator<Uint8Array> {
  const summaries = yield* trace
  await noteThinned(names, summaries)
  for (const [i, name] of names.entries()) {
    const issues = issueCount(summaries[i]!)
    if (issues > 0) await note(`warning: ${name}: ${plural(issues, 'issue')}; they are slices of category 'issue'`)
  }
}
