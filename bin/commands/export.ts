import { availableParallelism } from 'node:os'
import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type ExportedRun,
  exportArrow,
  exportRun,
  isDay,
  removeLeftOvers,
  TABLE_NAMES,
  UsageError,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { attempt, exportByProcesses, INTERRUPTED, type Outcome, serve, type Task } from '../export/workers.ts'
import { io } from '../io.ts'
import { CLOCKS, conversionOf, FORCE, flag, inputsOf, once, oneOf, READING, seldom, valued, whole } from '../options.ts'
import { checkOutput } from '../output.ts'
import { interruptible } from '../signals.ts'
import { note, print } from '../terminal.ts'
import { count, plural, size } from '../units.ts'
import { version } from '../version.ts'

const OPTIONS = {
  output: { alias: 'o', demandOption: true, ...valued(once('--output'), 'Folder, new or known') },
  to: valued(
    oneOf('--to', ['parquet', 'arrow']),
    'parquet: a dataset | arrow: streams of Arrow (IPC), of one run',
    'parquet',
  ),
  table: seldom(valued(oneOf('--table', TABLE_NAMES), 'With --to arrow: only this table; --output is its file', 'all')),
  together: flag('All logs are of one run, such as a log and a recording of the scheduler'),
  day: valued(parseDay, 'Day of the runs, YYYY-MM-DD, where their logs contain no real time'),
  again: seldom(flag('Also write runs that are in the dataset already')),
  'allow-empty': seldom(flag('Also add runs whose logs contain nothing that is drawn; by default, that is an error')),
  jobs: valued(whole('--jobs'), 'Processes that export at the same time', 'one for each CPU'),
  quiet: { alias: 'q', ...flag('Print failures only') },
  worker: { ...flag('One of the processes of another export'), hidden: true },
  ...FORCE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto export <logs…> -o dataset/` */
export const exportCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.export,
  builder: (yargs) =>
    yargs
      .positional('inputs', inputsOf("Logs, each of one run, as for convert, gzip'ed or not"))
      .options(OPTIONS)
      .example('$0 export run.ggtrace -o dataset/', 'adds a run: one file for each table')
      .example('$0 export logs/*.ggtrace -o dataset/', 'adds many runs, by all CPUs')
      .example('$0 export run.ggtrace run.sched.dat --together -o dataset/', 'one run, with its threads')
      .example('$0 export run.ggtrace --to arrow --table operator -o operator.arrows', 'one table, for polars and R')
      .example(`duckdb -c "select phase, sum(dur_ns) from 'dataset/call/**/*.parquet' group by 1"`, 'a question'),
  handler,
}

function parseDay(value: string): string {
  const day = once('--day')(value)
  if (isDay(day)) return day
  throw new UsageError(`--day "${day}": expected a day, such as 2026-01-31`)
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { inputs, output, together, day, again, allowEmpty } = args
  const tasks: readonly Task[] = together ? [inputs] : inputs.map((input) => [input])
  if (!args.worker) refuse(args, tasks)
  const { from, opTable, clocks, osRuntime } = await conversionOf(args)
  const reading = { from, opTable, clocks, osRuntime, allowEmpty }
  const isArrow = args.to === 'arrow'
  if (isArrow && args.table) await checkOutput(output, args.inputs, 'arrow', args.force)
  const exportOne = (task: Task): Promise<ExportedRun> =>
    isArrow
      ? exportArrow(task, output, version, { ...reading, table: args.table })
      : exportRun(task, output, version, { ...reading, day, again })
  if (args.worker) return serve(exportOne)
  if (!isArrow) await removeLeftOvers(output)
  const jobs = Math.min(args.jobs ?? availableParallelism(), tasks.length)
  const report = new Report(args.quiet, tasks.length, isArrow ? 'written' : 'added')
  const startedAt = performance.now()
  const one = async () => {
    for (const task of tasks) await report.done(task, await attempt(() => exportOne(task)))
  }
  if (jobs === 1) await interruptible(INTERRUPTED, one)
  else {
    const done = (task: Task, outcome: Outcome) => report.done(task, outcome)
    await exportByProcesses(tasks, jobs, io().argv.slice(1), done, () => removeLeftOvers(output))
  }
  await report.finish((performance.now() - startedAt) / 1e3, output)
}

/** Throws UsageError for options that do not fit together. */
function refuse(args: ArgumentsCamelCase<Arguments>, tasks: readonly Task[]): void {
  if (args.inputs.includes('-')) throw new UsageError('export reads files, twice; found - for standard input')
  if (args.to === 'arrow' && tasks.length > 1)
    throw new UsageError(
      `--to arrow writes one run; found ${tasks.length} logs\nhint: --together if they are of one run; a folder for each, or a dataset of Parquet files, if not`,
    )
  if (args.to !== 'arrow' && args.table) throw new UsageError('--table is an option of --to arrow')
  const ofDataset = args.day !== undefined ? '--day' : args.again ? '--again' : undefined
  if (args.to === 'arrow' && ofDataset)
    throw new UsageError(`${ofDataset} is an option of datasets; found it with --to arrow`)
}

/** For logs such as results of benchmarks, calls of BLAS libraries and definitions of buffers. */
const BARE = 'hint: only the run itself has a table; `ggml2perfetto stats` and traces show what else its log contains'

/** What became of the runs. */
class Report {
  private readonly sums = { written: 0, bare: 0, known: 0, failed: 0, bytes: 0, operators: 0 }

  constructor(
    private readonly isQuiet: boolean,
    private readonly tasks: number,
    private readonly what: string,
  ) {}

  async done(task: Task, outcome: Outcome): Promise<void> {
    const { sums } = this
    const name = task.join(' ')
    if ('failure' in outcome) {
      sums.failed++
      io().exitCode = 1
      const { message, isOwn } = outcome.failure
      const what = isOwn ? message : `a bug in ggml2perfetto: ${message}`
      return note(`error: ${what.startsWith(task[0]!) ? what : `${name}: ${what}`}`)
    }
    const { isNew, bytes, rows, traceId } = outcome.run
    if (isNew) sums.written++
    else sums.known++
    const isBare = isNew && Object.keys(rows).join() === 'trace'
    if (isBare) sums.bare++
    sums.bytes += bytes
    sums.operators += rows.operator ?? 0
    if (this.isQuiet || this.tasks > 1) return this.showProgress()
    const tables = Object.entries(rows).map(([table, count]) => `${table} ${count}`)
    await print([
      isNew
        ? `${name}: run ${traceId}, rows: ${tables.join(', ')}`
        : `${name}: run ${traceId} is in the dataset already`,
      ...(isBare ? [BARE] : []),
    ])
  }

  /** One line that is replaced, on a terminal. */
  private async showProgress(): Promise<void> {
    if (this.isQuiet || !io().stderr.isTTY) return
    const { written, known, failed } = this.sums
    io().stderr.write(`\r${written + known + failed} of ${this.tasks} logs\x1b[K`)
  }

  async finish(seconds: number, output: string): Promise<void> {
    const { written, bare, known, failed, bytes, operators } = this.sums
    if (this.isQuiet) return
    if (this.tasks > 1 && io().stderr.isTTY) io().stderr.write('\r\x1b[K')
    const parts = [`${plural(written, 'run')} ${this.what} to ${output}`]
    if (bare > 0 && this.tasks > 1) parts.push(`${count(bare)} of them with the table trace only`)
    if (known > 0) parts.push(`${count(known)} there already`)
    if (failed > 0) parts.push(`${count(failed)} failed`)
    await print([`${parts.join(', ')}: ${size(bytes)}, ${plural(operators, 'operator')}, ${seconds.toFixed(1)} s`])
  }
}
