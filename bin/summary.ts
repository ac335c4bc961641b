import {
  describePosition,
  FORMATS,
  hasCalls,
  isCpuBackend,
  LEFT_CALL,
  type Summary,
  type TokenTimes,
  UsageError,
  WITHOUT_TIMES,
} from '../lib/cli.ts'
import { note } from './terminal.ts'
import { count, duration, plural, threeDigits } from './units.ts'

/** Results of failed calls that are listed. */
const RESULTS_SHOWN = 3

/** The number of issues of all kinds. */
export function issueCount(...summaries: readonly Summary[]): number {
  return summaries.flatMap(({ issues }) => issues).reduce((sum, { count }) => sum + count, 0)
}

/** The number of issues that are losses. */
export function lossCount({ issues }: Summary): number {
  return issues.reduce((sum, { count, is_loss }) => (is_loss ? sum + count : sum), 0)
}

/** All that is printed about logs with `--quiet`. */
export async function warnOfIssues(names: readonly string[], summaries: readonly Summary[]): Promise<void> {
  const issues = issueCount(...summaries)
  if (issues > 0) await note(`warning: ${names.join(', ')}: ${plural(issues, 'issue')}, on the Issues track`)
}

/** The contents of the logs of a trace. */
export function describeLogs(names: readonly string[], summaries: readonly Summary[]): string[] {
  const where = issueCount(...summaries) > 0 ? ['  the Issues track shows where'] : []
  return [...summaries.flatMap((summary, i) => describeLog(names[i]!, summary)), ...where]
}

/** The content of a log, in a few lines. `lost`: losses, also of what was recorded with it; null: a later line states them. */
export function describeLog(name: string, summary: Summary, lost: number | null = lossCount(summary)): string[] {
  const { contents } = summary
  const lines = [
    `${name}: ${describeCalls(summary)}`,
    `  ${describeTimes(summary)}`,
    `  ${describeSize(summary, lost)}`,
  ]
  const scheduler = describeScheduler(summary)
  if (contents !== undefined)
    lines.splice(
      0,
      3,
      `${name}: ${contents}`,
      ...(hasCalls(summary) ? [`  ${describeCalls(summary)}`, `  ${describeTimes(summary)}`] : []),
    )
  else if (scheduler && summary.operators === 0)
    lines.splice(0, 3, `${name}: ${scheduler}`, `  duration ${describeDuration(summary)}`)
  else if (scheduler) lines.push(`  ${scheduler}`)
  lines.push(...describeContexts(summary).map((line) => `  ${line}`))
  if (summary.ends_are_open) lines.push(`  ${OPEN_ENDS}`)
  const leftOut = describeLeftOut(summary)
  const isBrief = contents !== undefined || (scheduler !== undefined && summary.operators === 0)
  if (leftOut !== undefined && isBrief) lines.push(`  ${leftOut}`)
  if (summary.relation) lines.push(`  clock: ${describeRelation(summary.relation)}`)
  return [
    ...lines,
    ...missingParts(summary).map((line) => `  note: ${line}`),
    ...describeIssues(summary).map((line) => `  ${line}`),
  ]
}

/** Why something that recordings usually contain is missing, and what to do; one line each. */
export function missingParts(summary: Summary): string[] {
  const { format, graphs, operators, attributes } = summary
  const leftOut = format === 'ggtrace' ? leftOutBy(summary) : undefined
  if (format !== 'ggtrace') return []
  const lines = [leftOut, whyNoCalls(summary), refusedFunctions(summary), partsOfServer(summary)].flatMap(
    (line) => line ?? [],
  )
  if (graphs === 0) return leftOut === undefined ? [...lines, ...whyNoGraphs(summary)] : lines
  const [missing, end, library] = [
    attributes['operators.missing'],
    attributes['operators.end'],
    attributes['operators.library'],
  ]
  if (attributes['level'] === 'op' && !/--sync/.test(`${attributes['note']}`)) {
    const others = summary.backends.filter((name) => !isCpuBackend(name))
    const sync = 'record --sync computes and times node by node'
    if (leftOut !== undefined) return lines
    if (operators === 0 && missing !== undefined) lines.push(`no operators were seen: ${missing} (${library}); ${sync}`)
    else if (others.length > 0 && summary.gpu_operators === 0) {
      const isRecorded = others.every((name) => /^(?:CUDA|ROCm|Vulkan)/.test(name))
      const why = (isRecorded ? attributes['gpu.missing'] : undefined) ?? 'there is no operator hook'
      lines.push(`operators of ${others.join(', ')} were not seen: ${why}; ${sync}`)
    } else if (operators + summary.gpu_operators === 0) lines.push(`no operators: ${whyNoOperators(summary)}`)
  }
  const [times, why] = [attributes['gpu.times'], attributes['gpu.missing']]
  if (times !== undefined && !lines.some((line) => line.includes(`${why}`))) lines.push(`${why}`)
  if (end !== undefined) lines.push(`ends of operators are ${end} (${library})`)
  if (attributes['graphs'] !== undefined) lines.push(`graphs are ${attributes['graphs']}`)
  return lines
}

/** Of a program that contains ggml (native/recorder/program.h). */
function refusedFunctions({ attributes }: Summary): string | undefined {
  const refused = attributes['program.refused']
  return refused === undefined ? undefined : `functions of the program that are not seen: ${refused}`
}

/** Of llama-server: parts of its work that this build does not export, or calls without passing a hook. */
function partsOfServer({ attributes }: Summary): string | undefined {
  const parts = ['server.missing', 'server.not_seen'].flatMap((key) => attributes[key] ?? [])
  return parts.length > 0 ? `of the server's tasks, these are not seen: ${parts.join(', ')}` : undefined
}

function whyNoOperators(summary: Summary): string {
  if (isWithoutEnd(summary)) return `${LOG_ENDS} the first one was complete`
  const less = summary.issues.find(({ code }) => code === 'recorded-less')
  return less === undefined ? 'none passed a hook, and the log does not contain why' : less.first.detail
}

/** Calls without graphs, at a level that records graphs. */
function whyNoGraphs(summary: Summary): string[] {
  if (!['graph', 'op'].includes(`${summary.attributes['level']}`)) return []
  const { by_phase } = summary.calls
  if (Object.keys(by_phase).length + summary.gpu_operators === 0) return []
  const bound = 'functions of ggml that are bound inside their library pass no hook'
  return [`no graphs: none was computed while recording was on, or none was seen: ${bound}`]
}

/** Why a log contains no calls of llama.cpp; undefined if it contains some, or nothing that shows why. */
function whyNoCalls(summary: Summary): string | undefined {
  const { graphs, calls_by_graph, llama_seen } = summary
  const areGraphs = calls_by_graph > 0 && calls_by_graph === summary.calls.count
  if (hasCalls(summary) && !areGraphs) return undefined
  const byGraph = areGraphs
    ? '; a call is a graph that a scheduler computes, its kind and tokens are from the inputs of the graph'
    : ''
  const isCut = isWithoutEnd(summary)
  if (llama_seen === 'calls')
    return `no call of llama.cpp is complete in the log: ${isCut ? `${LOG_ENDS} the first one, other than a warm-up, was complete` : incompleteBecause(summary)}`
  if (llama_seen === 'loading' && isCut) return `no calls of llama.cpp: the log ends while the program loads a model`
  if (llama_seen !== undefined && isCut) return `no calls of llama.cpp: ${LOG_ENDS} the first one`
  if (llama_seen !== undefined && graphs === 0) return 'no calls of llama.cpp: the program ended before the first one'
  if (llama_seen !== undefined)
    return `no calls of llama.cpp were seen, though it loaded a model: they are bound inside its library, or the graphs were computed before the first one${byGraph}`
  if (graphs === 0) return undefined
  const ended = isCut && !areGraphs ? `, or ${LOG_ENDS} the first one was complete` : ''
  return `no calls of llama.cpp were seen: the program uses ggml alone, or libllama is built into it (or bound inside its library), where its functions cannot be seen${ended}${byGraph}`
}

const isWithoutEnd = ({ issues }: Summary) => issues.some(({ code }) => code === 'run-without-end')
const LOG_ENDS = 'the log ends before'

/** Why what began is not in the log of a run that ended by itself. */
function incompleteBecause(summary: Summary): string {
  const full = fullLog(summary)
  return full === undefined ? 'the program ended within it' : `${full} before that`
}

/** Why the log had no space, if it had none. */
const fullLog = ({ issues }: Summary) =>
  issues.find(({ code }) => code === 'log-full' || code === 'disk-full' || code === 'process-limit')?.title

/** Which option of `record` left out all operators, or all but the calls; undefined if none did. */
function leftOutBy(summary: Summary): string | undefined {
  const { attributes, graphs, operators, gpu_operators, calls } = summary
  const option = (name: string) => attributes[`recorded.${name}`]
  if (operators + gpu_operators > 0 || attributes['level'] !== 'op') return undefined
  const [from, tokens, ops] = [option('from'), option('tokens'), option('ops')]
  const full = fullLog(summary)
  if (full !== undefined) return `no operators: ${full} before the first one was written`
  if (graphs === 0 && from !== undefined)
    return 'only calls: recording was paused (--paused), and nothing resumed it (--toggle, or ggml2perfetto_resume in the program)'
  if (graphs === 0 && tokens !== undefined && hasCalls(summary))
    return `only calls: none of its ${plural(calls.count, 'call')} is in --tokens ${tokens}`
  if (graphs > 0 && ops !== undefined) return `no operators: no node of the graphs has an op of --ops ${ops}`
  return undefined
}

/** `2 345 switches on 2 CPUs · 1 200 wakings`, or undefined without scheduler events. */
export function describeScheduler({ scheduler }: Summary): string | undefined {
  if (!scheduler) return undefined
  const { switches, wakings, cpus } = scheduler
  return `${count(switches)} ${switches === 1 ? 'switch' : 'switches'} on ${plural(cpus, 'CPU')} · ${plural(wakings, 'waking')}`
}

/** How a relation of clocks was found, and how exact it is. */
export function describeRelation({ how, bound_ns }: NonNullable<Summary['relation']>): string {
  return bound_ns ? `${how}; right to ±${duration(bound_ns)}` : how
}

/** Printed for logs that do not contain when the last operator of a call ended. */
export const OPEN_ENDS = 'times end at the start of the last operator: this log does not contain its end'

/** `9 calls: prefill 16 tokens, decode 8 tokens · 2 calls failed (result 1: no slot in the KV cache)` */
export function describeCalls({ calls: { count: computed, by_phase, failed }, failures }: Summary): string {
  const { compute, 'warm-up': warmUp } = by_phase
  const parts = (['encode', 'prefill', 'mixed', 'decode'] as const).flatMap((phase) =>
    describePhase(phase, by_phase[phase]),
  )
  if (compute) parts.push(`${plural(compute.calls, 'graph')} of unknown kind`)
  if (warmUp) parts.push(`${plural(warmUp.calls, 'warm-up call')} excluded`)
  const succeeded = parts.length > 0 ? [`${plural(computed, 'call')}: ${parts.join(', ')}`] : []
  const described = [...succeeded, ...(failed > 0 ? [describeFailed(failed, failures)] : [])]
  return described.length > 0 ? described.join(' · ') : 'no llama_decode calls'
}

/** `2 calls failed (result 1: no slot in the KV cache)`; for several results, how often each was returned. */
function describeFailed(failed: number, failures: Summary['failures']): string {
  const times = (calls: number) => (failures.length > 1 ? `${count(calls)} × ` : '')
  const each = failures
    .slice(0, RESULTS_SHOWN)
    .map(
      ({ calls, result, meaning }) =>
        `${times(calls)}${result === LEFT_CALL ? meaning : `result ${result}: ${meaning}`}`,
    )
  return `${plural(failed, 'call')} failed (${each.join(', ')}${failures.length > RESULTS_SHOWN ? ', …' : ''})`
}

function describePhase(phase: string, counted: Summary['calls']['by_phase']['decode']): string | never[] {
  if (!counted) return []
  const { calls, tokens } = counted
  if (tokens === 0) return `${phase} ${plural(calls, 'call')} of unknown size`
  const split = phase === 'decode' ? calls !== tokens : calls > 1
  return `${phase} ${plural(tokens, 'token')}${split ? ` in ${plural(calls, 'call')}` : ''}`
}

function describeTimes(summary: Summary): string {
  const parts = describeTokenTimes({ ...summary.calls, decoding: summary.decoding }, summary.calls.ttft_runs)
  return parts.length > 0 ? parts.join(' · ') : `duration ${describeDuration(summary)}`
}

/** From the first event to the last, or why it is not known. */
export function describeDuration({ duration_ns, times }: Pick<Summary, 'duration_ns' | 'times'>): string {
  return duration_ns === null ? `not known: ${WITHOUT_TIMES[times]}` : duration(duration_ns)
}

function describeTokenTimes(times: TokenTimes, ttftRuns = 1): string[] {
  const { ttft_ns, tpot_ns } = times
  const parts = []
  if (ttft_ns !== null) parts.push(`TTFT ${duration(ttft_ns)}${ofRuns(ttftRuns)}`)
  if (tpot_ns !== null) parts.push(`TPOT ${duration(tpot_ns)}`, describeRate(times))
  return parts
}

/** After a figure that is the mean of several runs: ` (mean of 3 runs)`. */
export function ofRuns(runs: number): string {
  return runs > 1 ? ` (mean of ${count(runs)} runs)` : ''
}

/** Number of contexts that get a line each. */
const CONTEXTS_SHOWN = 4

/** `target: 12 calls · TTFT 30 ms · …`, a line for each of several contexts. */
function describeContexts({ contexts }: Summary): string[] {
  if (contexts.length < 2) return []
  const lines = contexts.slice(0, CONTEXTS_SHOWN).map((context, i) => {
    const parts = [plural(context.calls, 'call'), ...describeTokenTimes(context)]
    return `${context.role ?? `context ${i + 1}`}: ${parts.join(' · ')}`
  })
  return contexts.length > CONTEXTS_SHOWN ? [...lines, `${plural(contexts.length, 'context')} in all`] : lines
}

/** `637 tok/s decode`, or `9.64 tok/s decode (4 sequences)`; empty if nothing was decoded. */
export function describeRate({ decode_tokens_per_s, sequences, decoding }: TokenTimes): string {
  if (decode_tokens_per_s === null || sequences === null) return ''
  const isMean = Math.abs(sequences - Math.round(sequences)) > 0.005
  const number = isMean ? `${threeDigits(sequences)} sequences on average` : plural(sequences, 'sequence')
  const assumed = decoding?.is_assumed ? `, assumed: one for each token` : ''
  const at = number === '1 sequence' && assumed === '' ? '' : ` (${number}${assumed})`
  return `${threeDigits(decode_tokens_per_s)} tok/s decode${at}`
}

function describeSize(summary: Summary, lost: number | null): string {
  const { operators, gpu_operators, workers, graphs, layers, nvtx } = summary
  return [
    ...(operators > 0 ? [`${plural(operators, 'operator')} on ${plural(workers, 'worker')}`] : []),
    ...(gpu_operators > 0 ? [`${plural(gpu_operators, 'operator')} on GPUs`] : []),
    ...(graphs > 0 ? [plural(graphs, 'graph')] : []),
    ...(layers > 0 ? [plural(layers, 'layer')] : []),
    ...(nvtx > 0 ? [plural(nvtx, 'NVTX event')] : []),
    [describeLosses(summary, lost), describeLeftOut(summary)].filter((text) => text).join('; '),
  ]
    .filter((text) => text !== '')
    .join(' · ')
}

/** `no losses`, `2 losses; 1 other issue` */
export function describeLosses(summary: Summary, lost: number | null = lossCount(summary)): string {
  if (lost === null) return ''
  const others = issueCount(summary) - lossCount(summary)
  const losses = lost === 0 ? 'no losses' : plural(lost, 'loss')
  return others === 0 ? losses : `${losses}; ${plural(others, lost === 0 ? 'issue' : 'other issue')}`
}

/** Number of kinds of events listed in a line. */
const KINDS_MAX = 4

/** `not drawn: 1 203 tracing_mark_write, 96 cpu_frequency`, or undefined if all events are drawn. */
function describeLeftOut({ left_out }: Summary): string | undefined {
  return left_out.length === 0 ? undefined : `not drawn: ${listOf(left_out)}`
}

function listOf(left_out: Summary['left_out']): string {
  const named = left_out.slice(0, KINDS_MAX).map((kind) => `${count(kind.count)} ${kind.what}`)
  const rest = left_out.length - named.length
  return [...named, ...(rest > 0 ? [`and ${plural(rest, 'more kind')}`] : [])].join(', ')
}

/** Which program draws the events that are not drawn here, one line each. */
export function leftOutHints({ left_out }: Summary): string[] {
  return [...new Set(left_out.flatMap(({ hint }) => hint ?? []))].map((hint) => `hint: ${hint}`)
}

/** Throws UsageError for a log of which nothing is drawn: a trace without it would look as if nothing had happened. */
export function refuseEmpty(names: readonly string[], summaries: readonly Summary[]): void {
  const isCompanion = ({ format }: Summary) => FORMATS.find(({ name }) => name === format)?.isCompanion === true
  const logs = summaries.every(isCompanion) ? summaries : summaries.filter((summary) => !isCompanion(summary))
  const empty = logs.filter(({ drawn }) => drawn === 0)
  if (empty.length === 0) return
  const lines = empty.flatMap((summary) => {
    const { format, left_out } = summary
    const contents = left_out.length > 0 ? listOf(left_out) : (summary.contents ?? 'no events')
    const name = names[summaries.indexOf(summary)]
    return [
      `${name}: nothing in it can be drawn: as ${format} it contains ${contents}`,
      ...leftOutHints(summary),
      ...describeIssues(summary),
    ]
  })
  throw new UsageError(lines.join('\n'))
}

/** How often each kind of issue occurred, the first of each kind with its position, and advice. */
export function describeIssues({ issues }: Summary): string[] {
  return issues.flatMap(({ title, count: times, first, hint }) => {
    const which = times === 1 ? '' : `${count(times)} × `
    const line = `! ${which}${title}: ${times === 1 ? '' : 'first at '}${describePosition(first.at)}: ${first.detail}`
    return hint === undefined ? [line] : [line, `  hint: ${hint}`]
  })
}
