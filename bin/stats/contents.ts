import { convert, FORMATS, hasCalls, type LogInput, type Summary, summarize, UsageError } from '../../lib/cli.ts'
import { logOf } from '../inputs.ts'
import { conversionOf } from '../options.ts'
import {
  describeCalls,
  describeDuration,
  describeIssues,
  describeLosses,
  describeRate,
  describeRelation,
  describeScheduler,
  leftOutHints,
  OPEN_ENDS,
  ofRuns,
} from '../summary.ts'
import { aligned, print, printJson, table } from '../terminal.ts'
import { count, duration, percent, plural, size } from '../units.ts'

/** Options that decide how logs are read. */
type Reading = Parameters<typeof conversionOf>[0]

/** Prints what logs contain, without statistics: their formats, clocks, calls, operators by time, issues. */
export async function printContents(args: Reading & { inputs: string[]; json: boolean }): Promise<void> {
  const options = await conversionOf(args)
  const { from, opTable, osRuntime } = options
  if (args.inputs.filter((input) => input === '-').length > 1) throw new UsageError('stdin (-) can be read only once')
  const logs: LogInput[] = []
  for (const input of args.inputs) logs.push(await logOf(input))
  const isAlone = logs.length === 1 && args.clock === undefined
  const summaries = isAlone
    ? [await summarize(logs[0]!, { from, opTable, osRuntime })]
    : await summarizeAll(convert(logs, { ...options, detail: 'names' }))
  if (args.json) return printJson(JSON.stringify(logs.length === 1 ? summaries[0] : summaries, null, 2))
  await print(summaries.flatMap((summary, i) => [...(i > 0 ? [''] : []), ...describe(logs[i]!.name, summary)]))
}

/** The relation of inputs is known only after a conversion to one trace, which is discarded. */
async function summarizeAll(trace: AsyncGenerator<Uint8Array, Summary[]>): Promise<Summary[]> {
  let next = await trace.next()
  while (!next.done) next = await trace.next()
  return next.value
}

function describe(name: string, summary: Summary): string[] {
  const { issues, attributes } = summary
  const lines = [name, ...aligned(factsOf(summary))]
  const { ops, gpu_ops = [], operators, gpu_operators } = summary
  if (ops.length > 0) lines.push('', ...opLines(ops, ['all workers', operators]))
  if (gpu_ops.length > 0) lines.push('', ...opLines(gpu_ops, ['all GPUs', gpu_operators]))
  const read = Object.entries(attributes)
    .filter(([key]) => key !== 'holds')
    .map(([key, value]) => [key.replaceAll('_', ' '), String(value)] as const)
  if (read.length > 0) lines.push('', 'how it was read', ...aligned(read))
  if (issues.length > 0) lines.push('', 'issues', ...describeIssues(summary).map((line) => `  ${line}`))
  const { left_out } = summary
  lines.push('', left_out.length === 0 ? describeLosses(summary) : `${describeLosses(summary)}; not drawn`)
  const counted = left_out.map(({ what, count: times }) => [what, count(times)] as const)
  lines.push(...aligned(counted), ...leftOutHints(summary).map((line) => `  ${line}`))
  return lines
}

function factsOf(summary: Summary): [string, string][] {
  const { format, clock, start_ns, with_experts, threads } = summary
  const title = FORMATS.find(({ name }) => name === format)?.title
  const facts: [string, string][] = [['format', title === undefined ? format : `${format} (${title})`]]
  const { contents } = summary
  if (contents !== undefined && clock === 'none' && !summary.relation) return [...facts, ['holds', contents]]
  facts.push(
    ['clock', `${clock === 'unknown' ? 'unknown' : `CLOCK_${clock}`}, from ${start_ns} ns`],
    ['duration', describeDuration(summary)],
  )
  if (summary.relation) facts.splice(2, 0, ...relationFacts(summary.relation))
  if (contents !== undefined) return [...facts, ['holds', contents], ...(hasCalls(summary) ? callFacts(summary) : [])]
  const scheduler = describeScheduler(summary)
  if (scheduler) facts.push(['scheduler', scheduler])
  if (scheduler && summary.operators === 0) return facts
  facts.push(...callFacts(summary))
  if (summary.ends_are_open) facts.push(['', OPEN_ENDS])
  facts.push(['workers', `${count(summary.workers)}, on ${plural(threads, 'thread')}`])
  facts.push(['graphs', count(summary.graphs)], ['layers', count(summary.layers)])
  if (summary.nvtx > 0)
    facts.push(['nvtx', summary.nvtx === 1 ? '1 range or mark' : `${count(summary.nvtx)} ranges and marks`])
  facts.push(['operators', count(summary.operators)])
  if (summary.gpu_operators > 0) facts.push(['  on GPUs', count(summary.gpu_operators)])
  for (const counter of summary.counters) facts.push([counter.name, describeTotal(counter)])
  if (with_experts > 0) facts.push(['experts', `ids on ${plural(with_experts, 'operator')}`])
  return facts
}

/** The number of calls, and the time per token. */
function callFacts(summary: Summary): [string, string][] {
  const { ttft_ns, ttft_runs, tpot_ns } = summary.calls
  const facts: [string, string][] = [['calls', describeCalls(summary)]]
  if (ttft_ns !== null)
    facts.push(['TTFT', `${duration(ttft_ns)} to the end of the last prefill call${ofRuns(ttft_runs)}`])
  if (tpot_ns !== null) {
    const rate = describeRate({ ...summary.calls, decoding: summary.decoding })
    facts.push(['TPOT', `${duration(tpot_ns)} per token of a sequence · ${rate}`])
  }
  return facts
}

/** How an input was put on the clock of the first one. */
function relationFacts(relation: NonNullable<Summary['relation']>): [string, string][] {
  const { to, offset_ns } = relation
  if (offset_ns === '0') return [['put on', `CLOCK_${to}: ${describeRelation(relation)}`]]
  const added = `${offset_ns.startsWith('-') ? '' : '+'}${offset_ns} ns`
  return [
    ['put on', to === 'unknown' ? 'the first input' : `CLOCK_${to}`],
    ['  by', `${added} to its first time`],
    ['  as', describeRelation(relation)],
  ]
}

/** The total of a counter over all operators. */
function describeTotal({ unit, total }: Summary['counters'][number]): string {
  const text = unit === 'ns' ? duration(total) : unit === 'bytes' ? size(total) : count(total)
  return `${text}, in operators of all workers`
}

/** The ops with the most compute time; all others in one row. */
function opLines(ops: Summary['ops'], [where, operators]: readonly [string, number]): string[] {
  const shown = ops.length > 13 ? ops.slice(0, 12) : ops
  const rest = ops.slice(shown.length)
  const total = ops.reduce((sum, { time_ns }) => sum + time_ns, 0)
  const row = (op: string, time_ns: number, times: number) => [
    op,
    duration(time_ns),
    percent(total === 0 ? 0 : time_ns / total),
    count(times),
  ]
  const cells = [
    ['op', 'time', 'share', 'count'],
    ...shown.map(({ op, time_ns, count }) => row(op || '(unnamed)', time_ns, count)),
  ]
  if (rest.length > 0) {
    const sum = (key: 'time_ns' | 'count') => rest.reduce((sum, op) => sum + op[key], 0)
    cells.push(row(plural(rest.length, 'other op'), sum('time_ns'), sum('count')))
  }
  cells.push(row(where, total, operators))
  return table(cells)
}
