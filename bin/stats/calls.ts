import type { Analysis } from '../../lib/cli.ts'
import { ofRuns } from '../summary.ts'
import { count, duration, percent, plural, threeDigits } from '../units.ts'
import { type Column, firstRows, more, type Section, type StatsTable } from './section.ts'

type Calls = Analysis['calls']
type Context = Calls['contexts'][number]
type CallRow = NonNullable<NonNullable<Analysis['series']>['calls']>['rows'][number]
type Slope = NonNullable<Calls['slope']>
type Drafts = Pick<NonNullable<Analysis['speculation']>, 'accepted_tokens' | 'drafted_tokens' | 'acceptance_share'>

const PHASES = ['encode', 'prefill', 'mixed', 'decode', 'compute', 'warm-up'] as const
/** Rows of a table of contexts, of sequences, and of roles. */
const ROWS_MAX = 8

/** The number of calls, and the times of tokens. */
export function callsSection({ calls }: Analysis): Section | undefined {
  const {
    by_phase,
    failed,
    ttft_ns,
    ttft_runs,
    drafts,
    prefill_tokens_per_s,
    tpot_ns,
    tpot,
    decode_tokens_per_s,
    sequences,
  } = calls
  if (calls.count + failed === 0 && Object.keys(by_phase).length === 0) return undefined
  const facts: [string, string][] = PHASES.flatMap((phase): [string, string][] => {
    const inPhase = by_phase[phase]
    if (!inPhase) return []
    const rate = phase === 'prefill' ? prefill_tokens_per_s : phase === 'decode' ? decode_tokens_per_s : null
    const parts = [plural(inPhase.calls, 'call'), ...(inPhase.tokens > 0 ? [plural(inPhase.tokens, 'token')] : [])]
    return [[phase, [...parts, ...(rate === null ? [] : [`${threeDigits(rate)} tok/s`])].join(', ')]]
  })
  if (failed > 0) facts.push(['failed', plural(failed, 'call')])
  if (sequences !== null && sequences !== 1) facts.push(['sequences', `${threeDigits(sequences)} at once`])
  if (ttft_ns !== null) facts.push(['TTFT', `${duration(ttft_ns)}${ofRuns(ttft_runs)}`])
  if (tpot_ns !== null) facts.push(['TPOT', [duration(tpot_ns), ...(tpot ? [quantiles(tpot)] : [])].join(': ')])
  if (drafts) facts.push(['drafts', acceptance(drafts)])
  const [context, ...further] = calls.contexts
  if (context?.jitter && further.length === 0) facts.push(['jitter', jitterText(context.jitter)])
  if (calls.slope) facts.push(['growth', slopeText(calls.slope)])
  const tables = [runsTable(calls), contextsTable(calls), sequencesTable(calls), rolesTable(calls.slope)]
  return { title: 'calls', facts, tables: tables.filter((table) => table !== undefined) }
}

/** Accepted tokens of drafts. */
export function acceptance({ accepted_tokens, drafted_tokens, acceptance_share }: Drafts): string {
  const tokens = `${count(accepted_tokens)} of ${plural(drafted_tokens, 'drafted token')}`
  return acceptance_share === null ? tokens : `${tokens}, ${percent(acceptance_share)}`
}

function quantiles({ p50_ns, p90_ns, p99_ns, max_ns }: NonNullable<Calls['tpot']>): string {
  return `p50 ${duration(p50_ns)}, p90 ${duration(p90_ns)}, p99 ${duration(p99_ns)}, max ${duration(max_ns)}`
}

function jitterText({ standard_deviation_ns, mean_difference_ns }: NonNullable<Context['jitter']>): string {
  const deviation = `${duration(standard_deviation_ns)} standard deviation`
  return mean_difference_ns === null ? deviation : `${deviation}, ${duration(mean_difference_ns)} from call to call`
}

/** The growth of TPOT, with what is needed to judge it. */
function slopeText({ tpot, points, from_tokens, to_tokens, is_clear }: Slope): string {
  const range = `${plural(points, 'call')} at ${count(from_tokens)} to ${plural(to_tokens, 'token')}`
  if (!is_clear) return `TPOT does not clearly change with the context; ${range}`
  const fit = tpot.r_squared === null ? '' : `, R² ${tpot.r_squared.toFixed(2)}`
  const error = `±${threeDigits(tpot.standard_error_ms)}`
  const growth = `${threeDigits(tpot.ms_per_1000_tokens)} ms (${error}) of TPOT per 1 000 tokens of context`
  return `${growth}${fit}; ${range}`
}

const text = (title: string): Column => ({ title, isText: true })
const numbers = (...titles: readonly string[]): Column[] => titles.map((title) => ({ title }))

/** Only of several runs. */
function runsTable({ runs, further_runs }: Calls): StatsTable | undefined {
  if (runs.length === 0) return undefined
  const { shown, rest } = firstRows(runs, ROWS_MAX)
  const columns = numbers(
    'depth',
    'prompt',
    'generated',
    'runs',
    'TTFT',
    'prefill tok/s',
    'TPOT',
    'decode tok/s',
    'tok/s',
  )
  const time = (ns: number | null) => (ns === null ? '' : duration(ns))
  const rate = (perS: number | null) => (perS === null ? '' : threeDigits(perS))
  const rows = shown.map((figures) => [
    ...[figures.depth, figures.prompt_tokens, figures.generated_tokens, figures.runs].map(count),
    ...[
      time(figures.ttft_ns),
      rate(figures.prefill_tokens_per_s),
      time(figures.tpot_ns),
      rate(figures.decode_tokens_per_s),
    ],
    rate(figures.tokens_per_s),
  ])
  const left = rest.reduce((sum, { runs }) => sum + runs, further_runs)
  return { columns, rows: withRest(rows, left > 0 ? `${plural(left, 'run')} more` : '', columns) }
}

/** Only of several contexts. */
function contextsTable({ contexts }: Calls): StatsTable | undefined {
  if (contexts.length < 2) return undefined
  const { shown, rest } = firstRows(contexts, ROWS_MAX)
  const columns = [
    text('context'),
    ...numbers('calls', 'TTFT', 'prefill tok/s', 'TPOT', 'p99', 'decode tok/s', 'jitter'),
  ]
  const rows = shown.map((figures, i) => [
    figures.role ?? String(i + 1),
    count(figures.calls),
    figures.ttft_ns === null ? '' : duration(figures.ttft_ns),
    figures.prefill_tokens_per_s === null ? '' : threeDigits(figures.prefill_tokens_per_s),
    figures.tpot ? duration(figures.tpot.mean_ns) : '',
    figures.tpot ? duration(figures.tpot.p99_ns) : '',
    figures.decode_tokens_per_s === null ? '' : threeDigits(figures.decode_tokens_per_s),
    figures.jitter?.mean_difference_ns ? duration(figures.jitter.mean_difference_ns) : '',
  ])
  return { columns, rows: withRest(rows, rest.length > 0 ? more(rest) : '', columns) }
}

/** Only of several sequences. */
function sequencesTable({ contexts }: Calls): StatsTable | undefined {
  const all = contexts.flatMap((context, i) =>
    context.by_sequence.map((sequence) => ({ name: context.role ?? String(i + 1), sequence })),
  )
  if (all.length < 2) return undefined
  const { shown } = firstRows(all, ROWS_MAX)
  const left = all.length - shown.length + contexts.reduce((sum, context) => sum + context.further_sequences, 0)
  const columns = [text('sequence'), ...numbers('tokens', 'TPOT', 'p50', 'p90', 'p99', 'jitter')]
  const rows = shown.map(({ name, sequence: { sequence, tpot, jitter } }) => [
    contexts.length > 1 ? `${sequence} (${name})` : String(sequence),
    count(tpot.count),
    ...[tpot.mean_ns, tpot.p50_ns, tpot.p90_ns, tpot.p99_ns].map(duration),
    jitter.mean_difference_ns === null ? '' : duration(jitter.mean_difference_ns),
  ])
  return { columns, rows: withRest(rows, left > 0 ? `${count(left)} more` : '', columns) }
}

/** The roles that cause the growth of TPOT. */
function rolesTable(slope: Calls['slope']): StatsTable | undefined {
  if (!slope?.operators || !slope.is_clear) return undefined
  const { parts, call } = slope.operators
  const { shown, rest } = firstRows(parts, ROWS_MAX)
  const columns = [text('growth of calls by operator'), ...numbers('ms per 1 000 tokens', 'share', 'R²', 'mean')]
  const cells = (name: string, fit: Slope['tpot']) => [
    name,
    `${threeDigits(fit.ms_per_1000_tokens)} ±${threeDigits(fit.standard_error_ms)}`,
    call.ms_per_1000_tokens > 0 ? percent(fit.ms_per_1000_tokens / call.ms_per_1000_tokens) : '',
    fit.r_squared === null ? '' : fit.r_squared.toFixed(2),
    duration(fit.mean_ns),
  ]
  const rows = shown.map((slopePart) =>
    cells(slopePart.what === 'role' ? `${slopePart.role} ${slopePart.op}`.trim() : slopePart.what, slopePart),
  )
  return { columns, rows: [...withRest(rows, rest.length > 0 ? more(rest) : '', columns), cells('all', call)] }
}

function withRest(rows: string[][], rest: string, columns: readonly Column[]): string[][] {
  return rest === '' ? rows : [...rows, columns.map((_, i) => (i === 0 ? rest : ''))]
}

/** A row per call; undefined where the Analysis does not contain them. */
export function callTable({ series }: Analysis): Section | undefined {
  if (!series?.calls) return undefined
  const { rows, every, count: all } = series.calls
  const hasContexts = new Set(rows.map(({ context }) => context)).size > 1
  const hasFailed = rows.some(({ result }) => result !== 0)
  const time = (ns: number | null) => (ns === null ? '' : duration(ns))
  const number = (value: number | null) =>
    value === null ? '' : Number.isInteger(value) ? count(value) : threeDigits(value)
  const figures: readonly (readonly [string, (row: CallRow) => string])[] = [
    ['call', ({ call }) => count(call)],
    ['phase', ({ phase }) => phase],
    ['tokens', ({ tokens }) => number(tokens)],
    ['sequences', ({ sequences }) => number(sequences)],
    ['context tokens', ({ context_tokens }) => number(context_tokens)],
    ['start', ({ start_ns }) => duration(start_ns)],
    ['time', ({ time_ns }) => duration(time_ns)],
    ['tpot', ({ tpot_ns }) => time(tpot_ns)],
    [
      'operator time',
      ({ operator_time_ns: parts }) => time(parts && Object.values(parts).reduce((sum, ns) => sum + ns, 0)),
    ],
    ['wait', ({ wait_ns }) => time(wait_ns)],
    ['context', ({ context }) => (hasContexts && context !== 0 ? `0x${context.toString(16)}` : '')],
    ['result', ({ result }) => (hasFailed ? number(result) : '')],
  ]
  const columns = figures.map(([title], rank) => ({ title, isText: rank < 2, rank }))
  const title = every === 1 ? 'each call' : `every ${every}th call of ${count(all)}`
  return { title, tables: [{ columns, rows: rows.map((row) => figures.map(([, textOf]) => textOf(row))) }] }
}
