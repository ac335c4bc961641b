import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  clickHouseTables,
  type OpenDataset,
  openDataset,
  QUESTIONS,
  type QuestionName,
  TABLE_NAMES,
  UsageError,
} from '../../lib/cli.ts'
import { readInput, readWhole } from '../inputs.ts'
import { io } from '../io.ts'
import { flag, once, oneOf, valued, whole } from '../options.ts'
import { onSignals } from '../output.ts'
import { formatRows, ROW_FORMATS } from '../rows.ts'
import { note, print, quoted, sendLines } from '../terminal.ts'

const NAMES = Object.keys(QUESTIONS) as QuestionName[]

const OPTIONS = {
  question: {
    alias: 'q',
    ...valued(oneOf('--question', NAMES), `Ask this in place of SQL: ${NAMES.join(' | ')} (docs/fleet.md)`),
  },
  'show-sql': flag('Print the SQL of --question, which may be changed; it runs in DuckDB and ClickHouse'),
  clickhouse: valued(
    once('--clickhouse'),
    "Print ClickHouse's statements that load the dataset from a table function: file('dataset/{files}', 'Parquet')",
  ),
  format: {
    ...valued(oneOf('--format', ROW_FORMATS), 'table | csv | json; integers are exact in all three'),
    default: 'table',
  },
  'csv-safe': flag("With --format csv: put a ' before texts that a spreadsheet would take for formulas (= + - @)"),
  file: { alias: 'f', ...valued(once('--file'), 'Read the SQL from this file; - for stdin') },
  threads: valued(whole('--threads'), 'Threads of DuckDB', 'one per CPU'),
  quiet: flag('Do not describe the rows of --question on standard error'),
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  dataset?: string | undefined
  sql?: string | undefined
}

/** `ggml2perfetto ask <dataset> "<SQL>"` */
export const askCommand: CommandModule<object, Arguments> = {
  command: 'ask [dataset] [sql]',
  describe: 'Ask about many runs: SQL (DuckDB) on the tables that export wrote, or one of the questions of every fleet',
  builder: (yargs) =>
    yargs
      .usage('$0 ask <dataset> <SQL, or --question>')
      .positional('dataset', {
        type: 'string',
        describe: 'The folder that export wrote; or its URL in an object store, where DuckDB has its extension httpfs',
      })
      .positional('sql', {
        type: 'string',
        describe: `One SELECT; tables: ${TABLE_NAMES.join(', ')}`,
      })
      .options(OPTIONS)
      .example('$0 ask dataset/ --question regressions', 'builds that are slower than the one before')
      .example('$0 ask dataset/ "select host, median(decode_tok_per_s) from trace group by host"', '')
      .example('$0 ask --question outliers --show-sql', 'the SQL, for other engines'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { question, format, csvSafe, threads } = args
  if (csvSafe && format !== 'csv') throw new UsageError(`--csv-safe: expected --format csv, found ${format}`)
  if (args.clickhouse !== undefined) return print(clickHouseTables(args.clickhouse).map((sql) => `${sql};`))
  if (args.showSql) {
    if (question === undefined) throw new UsageError('--show-sql: expected --question, of which it prints the SQL')
    return print(QUESTIONS[question].sql)
  }
  const { dataset } = args
  if (dataset === undefined) throw new UsageError(`the dataset is missing\nhint: ${example('dataset/')}`)
  const sql = await sqlOf(dataset, args)
  let opened: OpenDataset | undefined
  // The process ends when the threads of the query do.
  const release = onSignals('interrupted', () => opened?.interrupt())
  try {
    opened = await openDataset(dataset, { threads })
    const rows = await opened.stream(sql)
    if (question !== undefined && !args.quiet) await note(QUESTIONS[question].about)
    await sendLines(formatRows(rows, { format, csvSafe, isTerminal: io().stdout.isTTY }))
  } finally {
    opened?.close()
    release()
  }
}

const example = (dataset: string) => `ggml2perfetto ask ${quoted(dataset)} --question by-build`

async function sqlOf(dataset: string, { question, sql, file }: Arguments): Promise<string> {
  const given = [
    ...(question === undefined ? [] : ['--question']),
    ...(sql === undefined ? [] : ['SQL']),
    ...(file === undefined ? [] : ['--file']),
  ]
  if (given.length === 0) throw new UsageError(`the SQL is missing\nhint: ${example(dataset)}`)
  if (given.length > 1) throw new UsageError(`expected SQL, --question or --file, found ${given.join(' and ')}`)
  if (question !== undefined) return QUESTIONS[question].sql
  return sql ?? Buffer.from(await readWhole(readInput(file!))).toString('utf8')
}
