import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Analysis,
  type Finding,
  findings,
  lookedAt,
  notRecorded,
  type RequestRow,
  removalOf,
  requestsWith,
  type ScalingFigures,
  threadScaling,
  UsageError,
  WHAT_IF_SERIES,
  type WhichRequest,
  whyRequest,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { coloursOf, describeFinding } from '../findings.ts'
import { CLOCKS, flag, inputsOf, READING, valued, whole } from '../options.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'
import { notKnown, runsOf, scalingOf } from '../stats/scaling.ts'
import { type Coloured, printJson, printText, quoted } from '../terminal.ts'
import { duration } from '../units.ts'
import { clockLines, verdictLines } from '../verdict.ts'

const OPTIONS = {
  request: valued(
    whole('--request', 1),
    'What the time of one answer went to: the number of the request in the log, the first column of stats --by request',
  ),
  task: valued(whole('--task', 0), "The same, by the server's number of its task, as its log has it"),
  checks: flag('Also how to check each finding: SQL on the trace, or a command'),
  json: flag('Print the findings as JSON; docs/reference/findings.md describes them'),
  ...MACHINE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto why <logs…>` */
export const whyCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.why,
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
      .example('$0 why server.ggtrace --task 17', 'what the time of one answer of a server went to')
      .example('$0 why t1.ggtrace t2.ggtrace t4.ggtrace', 'runs with 1, 2 and 4 threads: where more stop paying')
      .example('$0 why run.ggtrace run.sched.dat', 'also names the programs that took the CPUs'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const runs = await runsOf(args)
  if (runs.length > 1) return printOfRuns(await scalingOf(runs, args), args)
  const { request, task } = args
  const isOfOne = request !== undefined || task !== undefined
  const series = isOfOne ? (['requests'] as const) : args.json ? [] : WHAT_IF_SERIES
  const analysis = await analysisOf(args, { series, ...(await machineOf(args)) })
  if (isOfOne) return printRequest(analysis, { request, task }, args)
  const found = findings(analysis)
  if (args.json) return printJson(JSON.stringify(found, null, 2))
  const names = analysis.inputs.map(({ name }) => name)
  const query = args.checks ? `ggml2perfetto query ${names.map(quoted).join(' ')}` : undefined
  const [first, ...rest] = verdictLines(analysis.verdict, names)
  const colours = coloursOf(analysis.verdict, found)
  const verdict = [{ text: first!, colour: colours.verdict }, ...rest, ...clockLines(analysis)]
  const all = describeAll(found, query, colours.findings, (finding) => removalOf(analysis, finding)?.sentence)
  await printText([...verdict, '', ...all, ...describeFigures(analysis)])
}

/** What the time of one answer went to. */
async function printRequest(analysis: Analysis, which: WhichRequest, { json }: Arguments): Promise<void> {
  const why = whyRequest(analysis, which)
  if (!why) throw new UsageError(notOne(analysis, which))
  if (json) return printJson(JSON.stringify(why, null, 2))
  const { request, reasons, remarks } = why
  const { id, task, slot, type, outcome, latency_ns, ttft_ns, tpot_ns } = request
  const names = [
    ...(task === null ? [] : [`task ${task}`]),
    `request ${id}`,
    ...(slot === null ? [] : [`slot ${slot}`]),
  ]
  const times = [
    `latency ${latency_ns === null ? 'not known' : duration(latency_ns)}`,
    ...(ttft_ns === null ? [] : [`TTFT ${duration(ttft_ns)}`]),
    ...(tpot_ns === null ? [] : [`TPOT ${duration(tpot_ns)}`]),
  ]
  await printText([
    `${names.join(', ')}: ${type === 'unknown' ? '' : `${type}, `}${outcome}; ${times.join(', ')}`,
    ...reasons.map(({ sentence }, i) => `${i + 1}. ${sentence}`),
    ...remarks.map((remark) => `   ${remark}`),
  ])
}

/** Why these numbers are not those of one request. */
function notOne(analysis: Analysis, which: WhichRequest): string {
  const { request, task } = which
  const options = [
    ...(request === undefined ? [] : [`--request ${request}`]),
    ...(task === undefined ? [] : [`--task ${task}`]),
  ].join(' ')
  if (analysis.requests === null) return `${options}: the log contains no requests`
  const found = requestsWith(analysis, which)
  if (found.length > 1)
    return `${options}: ${listOf(found)} have this number of a task\nhint: give the number of one of them in the log, such as --request ${found[0]!.id}`
  const near = [
    ...(request === undefined ? [] : requestsWith(analysis, { request })),
    ...(task === undefined ? [] : requestsWith(analysis, { task })),
  ]
  if (near.length > 0) return `${options}: expected the numbers of one request, found those of ${listOf(near)}`
  const [other] =
    request === undefined || task === undefined ? requestsWith(analysis, { request: task, task: request }) : []
  if (other && request === undefined)
    return `${options}: no task has this number, but ${listOf([other])} does\nhint: --request ${other.id}`
  if (other)
    return `${options}: no request has this number, but ${listOf([other])} has this task\nhint: --task ${other.task}`
  const all = requestsWith(analysis, {})
  const range = (values: readonly number[]) => `${Math.min(...values)} to ${Math.max(...values)}`
  const tasks = all.flatMap(({ task }) => task ?? [])
  const known = [`requests ${range(all.map(({ id }) => id))}`, ...(tasks.length > 0 ? [`tasks ${range(tasks)}`] : [])]
  return `${options}: no such request among ${known.join(', ')}\nhint: ggml2perfetto stats <logs> --by request lists them`
}

const listOf = (rows: readonly RequestRow[]) =>
  rows.map(({ id, task }) => `request ${id}${task === null ? '' : ` (task ${task})`}`).join(' and ')

/** What the numbers of threads of several runs show. */
async function printOfRuns(figures: ScalingFigures, { json, checks }: Arguments): Promise<void> {
  const { findings } = figures
  if (json) return printJson(JSON.stringify(findings, null, 2))
  const looked = threadScaling.look(figures).filter(({ finding }) => !finding)
  await printText([
    ...(findings.length > 0 ? describeAll(findings, checks ? 'ggml2perfetto query' : undefined) : ['no findings', '']),
    ...looked.map(({ figure }) => figure),
    ...notKnown(figures),
    'findings of each run: ggml2perfetto why, with its log alone',
  ])
}

function describeAll(
  found: readonly Finding[],
  query: string | undefined,
  colours: readonly Coloured['colour'][] = [],
  removalOf: (finding: Finding) => string | undefined = () => undefined,
): (string | Coloured)[] {
  if (found.length === 0) return ['no findings: nothing that was checked is unusual', '']
  return found.flatMap((finding, i) => {
    const [text, ...lines] = describeFinding(finding, i + 1, query, removalOf(finding))
    return [{ text: text!, colour: colours[i] }, ...lines, '']
  })
}

/** The figures below the limits of their rules, each once, and what the log lacks. */
function describeFigures(analysis: Analysis): string[] {
  const figures = lookedAt(analysis).flatMap(({ figures }) =>
    figures.filter(({ finding }) => !finding).map(({ figure }) => `  ${figure}`),
  )
  const lacking = notRecorded(analysis)
  return [
    ...(figures.length > 0 ? ['also checked, not reported:', ...new Set(figures)] : []),
    ...(lacking.length > 0 ? ['not in this log, so not checked:'] : []),
    ...lacking.map(({ what, record }) => `  ${what} (${record})`),
  ]
}
