import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { type Analysis, analyze, type LogInput, UsageError } from '../../lib/index.ts'
import { logOf } from '../inputs.ts'
import { CLOCKS, conversionOf, flag, inputsOf, READING } from '../options.ts'
import { print, printJson, table } from '../terminal.ts'
import { count, duration, percent } from '../units.ts'

const OPTIONS = {
  json: flag('Print the Analysis as JSON; docs/analysis.md describes it'),
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto stats <logs…>` */
export const statsCommand: CommandModule<object, Arguments> = {
  command: 'stats <inputs..>',
  describe: 'Print statistics: speed, where the time of calls goes, operators, workers',
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf("Log, gzip'ed or not; - for stdin. Several logs must be of one run, as in convert"),
      )
      .options(OPTIONS)
      .example('$0 stats run.ggtrace', 'for people')
      .example('$0 stats run.ggtrace --json > run.json', 'for scripts'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const options = await conversionOf(args)
  if (args.inputs.filter((input) => input === '-').length > 1) throw new UsageError('stdin (-) can be read only once')
  const logs: LogInput[] = []
  for (const input of args.inputs) logs.push(await logOf(input))
  const analysis = await analyze(logs, options)
  if (args.json) return printJson(JSON.stringify(analysis, null, 2))
  await print(describe(analysis))
}

function describe({ call_time, operators }: Analysis): string[] {
  const lines: string[] = []
  for (const { phase, calls, time_ns, parts } of call_time) {
    lines.push(`${phase}: ${count(calls)} calls, ${duration(time_ns)}`)
    lines.push(...table(parts.map(({ what, time_ns, share }) => [what, duration(time_ns), percent(share)])), '')
  }
  const rows = operators.rows.slice(0, 20)
  const cells = rows.map((row) => [
    `${row.role} ${row.op}`,
    row.phase,
    row.type,
    row.shape,
    count(row.executions),
    duration(row.operator_time_ns),
    duration(row.duration?.p99_ns ?? 0),
  ])
  return [...lines, ...table([['operator', 'phase', 'type', 'shape', 'count', 'time', 'p99'], ...cells])]
}
