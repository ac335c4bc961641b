import { stat } from 'node:fs/promises'
import type { ArgumentsCamelCase, InferredOptionTypes } from 'yargs'
import {
  clickHouseTables,
  type OpenDataset,
  openDataset,
  QUESTIONS,
  type QuestionName,
  UsageError,
} from '../../lib/cli.ts'
import { readInput, readWhole } from '../inputs.ts'
import { flag, once, oneOf, seldom, valued, whole } from '../options.ts'
import { printRows, type ROW_FORMATS } from '../rows.ts'
import { onSignals } from '../signals.ts'
import { note, print, quoted } from '../terminal.ts'

const NAMES = Object.keys(QUESTIONS) as QuestionName[]

/** Options of `query` that are for datasets. */
export const DATASET = {
  question: {
    alias: 'q',
    ...valued(oneOf('--question', NAMES), `Of a dataset, in place of SQL: ${NAMES.join(' | ')}`),
  },
  'show-sql': seldom(flag('Print the SQL of --question, which may be changed; it runs in DuckDB and ClickHouse')),
  clickhouse: seldom(
    valued(
      once('--clickhouse'),
      "Print ClickHouse's statements that load the dataset from a table function: file('dataset/{files}', 'Parquet')",
    ),
  ),
  threads: seldom(valued(whole('--threads'), 'Threads of DuckDB', 'one per CPU')),
  quiet: seldom(flag('Do not describe the rows of --question on standard error')),
} as const

interface Arguments extends InferredOptionTypes<typeof DATASET> {
  inputs: readonly string[]
  file: string | undefined
  format: (typeof ROW_FORMATS)[number]
  csvExact: boolean
}

/** Is it about a dataset, by its options or as the first input is a folder or a URL? */
export async function isOfDataset(
  args: Readonly<Record<string, unknown>> & { inputs: readonly string[] },
): Promise<boolean> {
  const [first = ''] = args.inputs
  if (
    ['question', 'showSql', 'clickhouse', 'threads'].some(
      (option) => args[option] !== undefined && args[option] !== false,
    )
  )
    return true
  return /^\w+:\/\//.test(first) || ((await stat(first).catch(() => undefined))?.isDirectory() ?? false)
}

/** Prints what SQL, or one of the questions of every fleet, finds in the tables that `export` wrote. */
export async function printOfDataset(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { question, format, csvExact, threads } = args
  if (args.clickhouse !== undefined) return print(clickHouseTables(args.clickhouse).map((sql) => `${sql};`))
  if (args.showSql) {
    if (question === undefined) throw new UsageError('--show-sql: expected --question, of which it prints the SQL')
    return print(QUESTIONS[question].sql)
  }
  const [dataset, sqlText, ...more] = args.inputs
  if (more.length > 0) throw new UsageError(`${more[0]}: one argument too many\nhint: ${example(dataset!)}`)
  if (dataset === undefined) throw new UsageError(`the dataset is missing\nhint: ${example('dataset/')}`)
  const sql = await sqlOf(dataset, sqlText, args)
  let opened: OpenDataset | undefined
  // The process ends when the threads of the query do.
  const release = onSignals('interrupted', () => opened?.interrupt())
  try {
    opened = await openDataset(dataset, { threads })
    const rows = await opened.stream(sql)
    if (question !== undefined && !args.quiet) await note(QUESTIONS[question].about)
    await printRows(rows, { format, csvExact })
  } finally {
    opened?.close()
    release()
  }
}

const example = (dataset: string) => `ggml2perfetto query ${quoted(dataset)} --question by-build`

async function sqlOf(dataset: string, sql: string | undefined, { question, file }: Arguments): Promise<string> {
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
