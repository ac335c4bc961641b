import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  convert,
  type InputOptions,
  type OpenTrace,
  openTrace,
  type Summary,
  summarize,
  UsageError,
} from '../../lib/index.ts'
import { type Opened, openInput, readInput, readWhole } from '../inputs.ts'
import { once, oneOf, READING, readOpTable } from '../options.ts'
import { formatRows, ROW_FORMATS } from '../rows.ts'
import { issueCount } from '../summary.ts'
import { note, send } from '../terminal.ts'
import { plural } from '../units.ts'

const OPTIONS = {
  format: {
    type: 'string',
    requiresArg: true,
    default: 'table',
    coerce: oneOf('--format', ROW_FORMATS),
    describe: 'table | csv | json; integers are exact in all three',
  },
  'csv-safe': {
    type: 'boolean',
    default: false,
    describe: "With --format csv: put a ' before texts that a spreadsheet would take for formulas (= + - @)",
  },
  file: {
    alias: 'f',
    type: 'string',
    requiresArg: true,
    coerce: once('--file'),
    describe: 'Read the SQL from this file',
  },
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  input: string
  sql?: string | undefined
}

/** `ggml2perfetto query <trace or log> "<SQL>"` */
export const queryCommand: CommandModule<object, Arguments> = {
  command: 'query <input> [sql]',
  describe: 'Query a trace or a log in SQL (PerfettoSQL); a log is converted in memory, with --detail full',
  builder: (yargs) =>
    yargs
      .positional('input', { type: 'string', demandOption: true, describe: 'Trace or log; - for stdin' })
      .positional('sql', { type: 'string', describe: "Statements; the last one's rows are printed; - for stdin" })
      .options(OPTIONS)
      .example(
        '$0 query run.csv "select name, count(*) n, sum(dur)/1e6 ms from slice where category=\'operator\' group by 1 order by 3 desc limit 10"',
        'ops by time',
      )
      .example(
        '$0 query run.csv "select name, dur/1e6 ms from slice where category=\'token\'"',
        'the llama_decode calls',
      )
      .example('$0 query run.pftrace --file waits.sql --format csv > waits.csv', 'for a spreadsheet'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { format, csvSafe } = args
  if (csvSafe && format !== 'csv') throw new UsageError(`--csv-safe: expected --format csv, found ${format}`)
  const sql = await readSql(args)
  const options = { from: args.from, opTable: await readOpTable(args.opTable), osRuntime: args.osrt }
  const trace = await open(await openInput(args.input), options)
  try {
    await sendLines(formatRows(trace.query(sql), { format, csvSafe, isTerminal: process.stdout.isTTY }))
  } finally {
    trace.close()
  }
}

async function readSql({ input, sql, file }: Arguments): Promise<string> {
  if ((sql === undefined) === (file === undefined)) {
    const what = sql === undefined ? 'the SQL is missing' : 'two SQLs: one as argument, one with --file'
    throw new UsageError(`${what}\nhint: ggml2perfetto query ${input} "select name, dur from slice limit 10"`)
  }
  const path = file ?? (sql === '-' ? '-' : undefined)
  if (path === undefined) return sql!
  if (path === '-' && input === '-') throw new UsageError('stdin (-) can be read only once: as the input or as the SQL')
  return Buffer.from(await readWhole(readInput(path))).toString('utf8')
}

/** Opens a trace as it is, or a log, converted while trace_processor reads it. A format we do not know is left to trace_processor. */
async function open({ name, kind, source }: Opened, options: InputOptions): Promise<OpenTrace> {
  if (kind === 'log' || options.from !== undefined) {
    return openTrace(noteIssues(name, convert({ name, source }, { ...options, detail: 'full' })))
  }
  if (kind === 'trace') return openTrace(source)
  const head: Uint8Array[] = []
  try {
    return await openTrace(copyFirst(source, head))
  } catch (error) {
    // An unknown format: the library's error lists the formats and shows the first bytes.
    await summarize({ name, source: head })
    throw error
  }
}

async function* copyFirst(source: AsyncIterable<Uint8Array>, head: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for await (const piece of source) {
    if (head.length === 0) head.push(piece)
    yield piece
  }
}

async function* noteIssues(name: string, trace: AsyncGenerator<Uint8Array, Summary[]>): AsyncGenerator<Uint8Array> {
  const [summary] = yield* trace
  const issues = issueCount(summary!)
  if (issues > 0) await note(`warning: ${name}: ${plural(issues, 'issue')}; they are slices of category 'issue'`)
}

/** Lines are collected: one write per line would cost more than the query. */
const BATCH_CHARACTERS = 1 << 16

async function sendLines(lines: Iterable<string>): Promise<void> {
  let batch = ''
  for (const line of lines) {
    batch += `${line}\n`
    if (batch.length < BATCH_CHARACTERS) continue
    await send(process.stdout, batch)
    batch = ''
  }
  if (batch !== '') await send(process.stdout, batch)
}
