import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type ConvertOptions,
  convert,
  fileRange,
  hasCalls,
  type Input,
  inputOf,
  type LogInput,
  type Summary,
  sizeBeside,
  TRACE_KINDS,
  type TraceKind,
  traceKindOf,
  UsageError,
  VIEWER,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { describeFindings } from '../findings.ts'
import { defaultOutput, inputName, openInput, zipOutput } from '../inputs.ts'
import { io } from '../io.ts'
import { refuseSwapped } from '../mistakes.ts'
import {
  CLOCKS,
  conversionOf,
  DRAWING,
  FORCE,
  flag,
  inputsOf,
  once,
  oneOf,
  READING,
  seldom,
  valued,
} from '../options.ts'
import { checkOutput, writeTrace } from '../output.ts'
import { type Progress, progressOf } from '../progress.ts'
import { describeLogs, refuseEmpty, warnOfIssues } from '../summary.ts'
import { note, print, quoted } from '../terminal.ts'
import { noteThinned } from '../thinned.ts'
import { traceForJson, writeAsJson } from '../trace-json.ts'
import { size } from '../units.ts'
import { verdictOfLogs } from '../verdict.ts'

const OPTIONS = {
  output: {
    alias: 'o',
    ...valued(
      once('--output'),
      "Trace to write, gzip'ed if its name ends in .gz; - for stdout",
      '<first input>.pftrace in this folder; .zip with --bundle',
    ),
  },
  to: valued(
    oneOf('--to', TRACE_KINDS),
    'Kind of trace: perfetto | json (for chrome://tracing and others)',
    'perfetto; json where the output is called *.json',
  ),
  ...FORCE,
  ...DRAWING,
  ...CLOCKS,
  bundle: seldom(
    valued(
      once('--bundle'),
      'Pack the trace and this file, as it is, into one .zip that Perfetto opens, on one clock: a perf.data (call stacks), or ' +
        "ftrace's text",
    ),
  ),
  ...READING,
  'allow-empty': seldom(flag('Also write a trace in which nothing is drawn of a log; by default, that is an error')),
  strict: seldom(flag('Stop at the first issue in a log, and write no trace')),
  quiet: { alias: 'q', ...flag('No progress bar, no summary; issues are still reported') },
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto <inputs…>` */
export const convertCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.convert,
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf("Logs of one run, its scheduler events, and companion files, gzip'ed or not; - for stdin"),
      )
      .options(OPTIONS)
      .example('$0 run.csv', 'writes run.csv.pftrace; then: ggml2perfetto open run.csv.pftrace')
      .example('$0 run.bin --tokens 3..5 --detail full -o small.pftrace', 'three decode steps, with all arguments')
      .example('$0 run.csv --to json', 'writes run.csv.json: for chrome://tracing; of a Perfetto trace, too')
      .example('$0 tensor_trace.bin buffer_stats.jsonl memory-map.json', 'with names of weights, and buffers')
      .example(
        '$0 run.ggtrace --bundle perf.data',
        'writes run.ggtrace.zip: with the samples of perf record -g -k mono',
      ),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { inputs, quiet, strict } = args
  if (inputs.filter((input) => input === '-').length > 1) throw new UsageError('stdin (-) can be read only once')
  refuseSwapped(inputs)
  const options = await conversionOf(args)
  const progress = await progressOf(inputs, quiet)
  const to = args.to ?? traceKindOf(args.output ?? '')
  const output = args.output ?? (args.bundle === undefined ? defaultOutput(inputs[0]!, to) : zipOutput(inputs[0]!))
  const bundle = bundleOf(args, output, to)
  await checkOutput(output, bundle ? [...inputs, bundle.name] : inputs, to, args.force)
  const trace = to === 'json' ? await traceForJson(inputs) : undefined
  if (trace) return writeAsJson(trace, output, quiet)
  if (io().stdin.isTTY && inputs.includes('-')) await note('reading a log from the terminal; Ctrl-D ends it')

  try {
    const logs = inputs.map((input, i) => logOf(input, progress.onRead(i)))
    const trace = within(
      { ...options, allowEmpty: args.allowEmpty },
      inputs.map(inputName),
      convert(logs, { ...options, to, strict, bundle, findings: true, onFirstReading: progress.onFirstReading }),
    )
    const { result, bytes } = await writeTrace(output, trace, progress.stop)
    progress.stop()
    await printSummary({ ...args, to }, output, result, bytes)
  } finally {
    progress.stop()
  }
}

/** The file to bundle with the trace. Throws UsageError if the options do not permit one. */
function bundleOf({ bundle, inputs }: Arguments, output: string, to: TraceKind): LogInput | undefined {
  if (bundle === undefined) return undefined
  if (bundle === '-')
    throw new UsageError('--bundle -: a file is needed, it is read twice; stdin can be read only once')
  if (to === 'json') throw new UsageError('--bundle requires a trace in the format of Perfetto, not --to json')
  if (/\.gz$/i.test(output)) throw new UsageError(`--bundle writes a ZIP, which is compressed; found -o ${output}`)
  if (inputs.includes(bundle) && inputs.length === 1) {
    throw new UsageError(`--bundle ${bundle}: is the only input\nhint: ggml2perfetto <log> --bundle ${bundle}`)
  }
  return inputOf(bundle)
}

/** A log as an input. Files permit access to any part: some formats contain at their end what must be known before. */
export function logOf(path: string, onRead: ReturnType<Progress['onRead']>): Input {
  const range = path === '-' ? undefined : fileRange(path, onRead)
  const source = readLog(path, onRead)
  return { name: inputName(path), source: range ? Object.assign(source, { range, beside: sizeBeside(path) }) : source }
}

async function* readLog(path: string, onRead: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const { name, kind, source } = await openInput(path, onRead)
  try {
    if (kind === 'trace') {
      throw new UsageError(
        `${name}: is a trace already, there is nothing to convert\n` +
          `hint: ggml2perfetto open ${name}, or: ggml2perfetto query ${name} "<SQL>"; as Chrome JSON: ggml2perfetto ${name} --to json`,
      )
    }
    yield* source
  } finally {
    await source.return()
  }
}

/**
 * Passes a trace on. At its end, throws UsageError if nothing of a log (its name is in `names`) is drawn, if no call of the logs
 * is within `tokens`, or if `flows` matches no call.
 */
export async function* within(
  { tokens, flows, allowEmpty }: Pick<ConvertOptions, 'tokens' | 'flows'> & { readonly allowEmpty?: boolean },
  names: readonly string[],
  trace: AsyncGenerator<Uint8Array, Summary[]>,
): AsyncGenerator<Uint8Array, Summary[]> {
  if (flows && tokens && (flows.token < tokens[0] || flows.token > tokens[1])) {
    throw new UsageError(`--flows token=${flows.token} is not among --tokens ${rangeText(tokens)}`)
  }
  const summaries = yield* trace
  const calls = Math.max(...summaries.map((summary) => summary.calls.count + summary.calls.failed))
  const isWithin = !tokens || tokens[0] < calls
  if (!allowEmpty && (isWithin || calls === 0)) refuseEmpty(names, summaries.slice(0, names.length))
  const known = calls === 0 ? 'no calls' : `the calls 0..${calls - 1}`
  if (flows && flows.token >= calls) {
    throw new UsageError(`--flows token=${flows.token}: there is no such call, the log has ${known}`)
  }
  if (isWithin) return summaries
  throw new UsageError(`--tokens ${rangeText(tokens)}: nothing to convert, the log has ${known}`)
}

function rangeText([first, last]: readonly [number, number]): string {
  return first === last ? `${first}` : `${first}..${Number.isFinite(last) ? last : ''}`
}

/** Prints the summary, to stderr, because stdout may contain the trace. */
async function printSummary(
  args: Arguments & { to: TraceKind },
  output: string,
  summaries: readonly Summary[],
  bytes: number,
): Promise<void> {
  const { tokens, quiet, bundle } = args
  const names = args.inputs.map(inputName)
  const ofInputs = summaries.slice(0, names.length)
  await noteThinned(names, ofInputs, bytes)
  if (quiet) return warnOfIssues(names, ofInputs)
  const lines = [...verdictOfLogs(summaries, args.inputs), ...describeLogs(names, ofInputs)]
  if (tokens) lines.push(`  only the calls ${rangeText(tokens)} are in the trace; the figures are of the whole log`)
  if (bundle !== undefined)
    lines.push(`${bundle}: packed as it is, ${clockOf(summaries.at(-1)!)}; the trace is on its clock`)
  const found = summaries.flatMap(({ findings = [] }) => findings)
  const areEstimates = summaries.some(({ findings_are_estimates }) => findings_are_estimates)
  lines.push(...describeFindings(found, `ggml2perfetto why ${args.inputs.map(quoted).join(' ')}`, areEstimates))
  if (output === '-') return note(lines)
  const trace = quoted(output)
  const viewers = args.to === 'json' ? `chrome://tracing or ${VIEWER}` : VIEWER
  lines.push(`wrote ${output} (${size(bytes)}): drag it into ${viewers}, or: ggml2perfetto open ${trace}`)
  lines.push(`next: ggml2perfetto query ${trace} "${nextQuery(summaries, args)}"`)
  return print(lines)
}

function clockOf({ clock, format }: Summary): string {
  return clock === 'unknown' ? `${format} with an unknown clock` : `on CLOCK_${clock}`
}

/** A query that the trace of these logs has an answer to. With `tokens`, it contains calls, but perhaps no operators. */
export function nextQuery(
  summaries: readonly Summary[],
  { to, tokens }: Pick<ConvertOptions, 'to' | 'tokens'>,
): string {
  const times = (name: string, from: string) =>
    `select ${name}, sum(dur)/1e6 as ms from ${from} group by 1 order by 2 desc limit 10`
  const [isSummed, operator] = [summaries.some(({ thinned }) => thinned), "category in ('operator','operator_sum')"]
  if (!tokens && isSummed && to !== 'json')
    return times("coalesce(extract_arg(arg_set_id,'debug.summed'),name) as op", `slice where ${operator}`)
  if (!tokens && summaries.some(({ operators }) => operators > 0))
    return times('name', "slice where category='operator'")
  const isPerfetto = to !== 'json'
  if (isPerfetto && summaries.every(({ gpu_work }) => gpu_work > 0)) return times('name', 'gpu_slice')
  const hasCpus = ({ scheduler, issues }: Summary) =>
    scheduler?.switches && !issues.some(({ code }) => code === 'no-cpu')
  if (isPerfetto && summaries.every(hasCpus)) return times('name', 'sched_slice join thread using (utid) where tid > 0')
  if (summaries.some((summary) => hasCalls(summary) || summary.graphs + summary.nvtx > 0))
    return 'select category, name, sum(dur)/1e6 as ms from slice group by 1, 2 order by 3 desc limit 10'
  return (
    "select kind, name, count(*) as n from (select 'slice' as kind, name from slice union all select 'counter', name from counter " +
    "join track on track.id = track_id union all select 'event', name from ftrace_event union all select 'thread', name from thread) group by 1, 2 order by 3 desc limit 10"
  )
}
