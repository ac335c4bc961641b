import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Analysis,
  type Finding,
  findings,
  lookedAt,
  type ScalingFigures,
  threadScaling,
  UsageError,
  whyRequest,
} from '../../lib/index.ts'
import { describeFinding } from '../findings.ts'
import { CLOCKS, flag, inputsOf, READING, valued, whole } from '../options.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'
import { runsOf, scalingOf } from '../stats/scaling.ts'
import { print, printJson, quoted } from '../terminal.ts'
import { duration } from '../units.ts'

const OPTIONS = {
  request: valued(
    whole('--request', 0),
    "What the time of one answer went to: the server's number of its task, or its number in the log",
  ),
  json: flag('Print the findings as JSON; docs/findings.md describes them'),
  ...MACHINE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto why <logs…>` */
export const whyCommand: CommandModule<object, Arguments> = {
  command: 'why <inputs..>',
  describe: 'Print what made the run slow: findings, each with its evidence and a check',
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Logs of one run, as for convert, gzip'ed or not, or an Analysis (stats --json); - for stdin. Logs of several runs, or several Analyses, are compared by numbers of threads",
        ),
      )
      .options(OPTIONS)
      .example('$0 why run.ggtrace', 'the findings, most time first')
      .example('$0 why server.ggtrace --request 17', 'what the time of one answer of a server went to')
      .example('$0 why t1.ggtrace t2.ggtrace t4.ggtrace', 'runs with 1, 2 and 4 threads: where more stop paying')
      .example('$0 why run.ggtrace run.sched.dat', 'also names the programs that took the CPUs'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const runs = await runsOf(args)
  if (runs.length > 1) return printOfRuns(await scalingOf(runs, args), args)
  const { request } = args
  const series = request === undefined ? [] : (['requests'] as const)
  const analysis = await analysisOf(args, { series, ...(await machineOf(args)) })
  if (request !== undefined) return printRequest(analysis, request, args)
  const found = findings(analysis)
  if (args.json) return printJson(JSON.stringify(found, null, 2))
  const query = `ggml2perfetto query ${analysis.inputs.map(({ name }) => quoted(name)).join(' ')}`
  await print([...describeAll(found, query), ...describeFigures(lookedAt(analysis))])
}

/** What the time of one answer went to. */
async function printRequest(analysis: Analysis, number: number, { json }: Arguments): Promise<void> {
  const why = whyRequest(analysis, number)
  if (!why) throw new UsageError(`--request ${number}: ${unknownRequest(analysis)}`)
  if (json) return printJson(JSON.stringify(why, null, 2))
  const { request, reasons, remarks } = why
  const { id, task, slot, type, outcome, latency_ns, ttft_ns, tpot_ns } = request
  const names = [
    ...(task === null ? [] : [`task ${task}`]),
    `request ${id}`,
    ...(slot === null ? [] : [`slot ${slot}`]),
  ]
  const times = [
    `latency ${duration(latency_ns)}`,
    ...(ttft_ns === null ? [] : [`TTFT ${duration(ttft_ns)}`]),
    ...(tpot_ns === null ? [] : [`TPOT ${duration(tpot_ns)}`]),
  ]
  await print([
    `${names.join(', ')}: ${type === 'unknown' ? '' : `${type}, `}${outcome}; ${times.join(', ')}`,
    ...reasons.map(({ sentence }, i) => `${i + 1}. ${sentence}`),
    ...remarks.map((remark) => `   ${remark}`),
  ])
}

function unknownRequest({ requests, series }: Analysis): string {
  if (requests === null) return 'the log contains no requests'
  const rows = series?.requests?.rows ?? requests.slowest
  const tasks = rows.flatMap(({ task }) => task ?? [])
  const range = (of: readonly number[]) => `${Math.min(...of)} to ${Math.max(...of)}`
  const known = tasks.length > 0 ? `tasks ${range(tasks)}` : `requests ${range(rows.map(({ id }) => id))}`
  return `no such request among ${known}\nhint: ggml2perfetto stats <logs> --by request lists them`
}

/** What the numbers of threads of several runs show. */
async function printOfRuns(figures: ScalingFigures, { json }: Arguments): Promise<void> {
  const { findings } = figures
  if (json) return printJson(JSON.stringify(findings, null, 2))
  await print([
    ...describeAll(findings, 'ggml2perfetto query'),
    ...describeFigures([{ rule: threadScaling.id, figures: threadScaling.look(figures) }]),
    'findings of each run: ggml2perfetto why, with its log alone',
  ])
}

function describeAll(found: readonly Finding[], query: string): string[] {
  if (found.length === 0) return ['no findings: nothing is unusual in what was recorded', '']
  return found.flatMap((finding, i) => [...describeFinding(finding, i + 1, query), ''])
}

/** The figures within what a quiet run shows, and what could not be looked at. */
function describeFigures(rules: ReturnType<typeof lookedAt>): string[] {
  const figures = rules.flatMap(({ figures }) =>
    figures.filter(({ finding }) => !finding).map(({ figure }) => `  ${figure}`),
  )
  const without = rules.filter(({ figures }) => figures.length === 0).map(({ rule }) => rule)
  return [
    ...(figures.length > 0 ? ['looked at, and within what a quiet run shows:', ...figures] : []),
    ...(without.length > 0 ? [`not looked at, as the log does not contain it: ${without.join(', ')}`] : []),
  ]
}
