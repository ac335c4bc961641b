import { type Analysis, ofContexts } from '../../lib/cli.ts'
import { ofRuns } from '../summary.ts'
import { count, duration, percent, plural, threeDigits } from '../units.ts'
import { known, number, type Section, type StatsTable, shareOf, some, tableOf, text } from './section.ts'

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
  const { by_phase, failed, ttft_ns, drafts, tpot_ns, tpot, sequences } = calls
  if (calls.count + failed === 0 && Object.keys(by_phase).length === 0) return undefined
  const facts: [string, string][] = PHASES.flatMap((phase): [string, string][] => {
    const inPhase = by_phase[phase]
    if (!inPhase) return []
    const rate =
      phase === 'prefill' ? calls.prefill_tokens_per_s : phase === 'decode' ? calls.decode_tokens_per_s : null
    const parts = [plural(inPhase.calls, 'call'), ...(inPhase.tokens > 0 ? [plural(inPhase.tokens, 'token')] : [])]
    return [[phase, [...parts, ...(rate === null ? [] : [`${threeDigits(rate)} tok/s`])].join(', ')]]
  })
  if (failed > 0) facts.push(['failed', plural(failed, 'call')])
  if (sequences !== null && sequences !== 1) facts.push(['sequences', `${threeDigits(sequences)} at once`])
  if (ttft_ns !== null) facts.push(['TTFT', `${duration(ttft_ns)}${ofRuns(calls.ttft_runs)}`])
  if (tpot_ns !== null)
    facts.push([
      'TPOT',
      [`${duration(tpot_ns)}${ofContexts(calls.contexts)}`, ...(tpot ? [quantiles(tpot)] : [])].join(': '),
    ])
  if (drafts) facts.push(['drafts', acceptance(drafts)])
  const [context, ...further] = calls.contexts
  if (further.length > 0)
    facts.push(['contexts', `${calls.contexts.length}: numbers of calls, and parts of their time, are of all together`])
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

/** Only of several runs. */
function runsTable({ runs, further_runs }: Calls): StatsTable | undefined {
  if (runs.length === 0) return undefined
  const sum = (rest: Calls['runs']) => rest.reduce((sum, { runs }) => sum + runs, further_runs)
  const rest = (rest: Calls['runs']) => [`${plural(sum(rest), 'run')} more`]
  return tableOf(runs, { max: ROWS_MAX, further: further_runs, rest }, [
    number('depth', ({ depth }) => count(depth)),
    number('prompt', ({ prompt_tokens }) => count(prompt_tokens)),
    number('generated', ({ generated_tokens }) => count(generated_tokens)),
    number('runs', ({ runs }) => count(runs)),
    number('TTFT', ({ ttft_ns }) => known(ttft_ns, duration)),
    number('prefill tok/s', ({ prefill_tokens_per_s }) => known(prefill_tokens_per_s, threeDigits)),
    number('TPOT', ({ tpot_ns }) => known(tpot_ns, duration)),
    number('decode tok/s', ({ decode_tokens_per_s }) => known(decode_tokens_per_s, threeDigits)),
    number('tok/s', ({ tokens_per_s }) => known(tokens_per_s, threeDigits)),
  ])
}

/** Only of several contexts. */
function contextsTable({ contexts }: Calls): StatsTable | undefined {
  if (contexts.length < 2) return undefined
  return tableOf(contexts, { max: ROWS_MAX }, [
    text('context', ({ role }, i) => role ?? String(i + 1)),
    number('calls', ({ calls }) => count(calls)),
    number('TTFT', ({ ttft_ns }) => known(ttft_ns, duration)),
    number('prefill tok/s', ({ prefill_tokens_per_s }) => known(prefill_tokens_per_s, threeDigits)),
    number('TPOT', ({ tpot }) => known(tpot?.mean_ns, duration)),
    number('p99', ({ tpot }) => known(tpot?.p99_ns, duration)),
    number('decode tok/s', ({ decode_tokens_per_s }) => known(decode_tokens_per_s, threeDigits)),
    number('jitter', ({ jitter }) => some(jitter?.mean_difference_ns)),
  ])
}

/** Only of several sequences. */
function sequencesTable({ contexts }: Calls): StatsTable | undefined {
  const all = contexts.flatMap((context, i) =>
    context.by_sequence.map((figures) => ({ name: context.role ?? String(i + 1), ...figures })),
  )
  if (all.length < 2) return undefined
  const further = contexts.reduce((sum, context) => sum + context.further_sequences, 0)
  return tableOf(all, { max: ROWS_MAX, further }, [
    text('sequence', ({ name, sequence }) => (contexts.length > 1 ? `${sequence} (${name})` : String(sequence))),
    number('tokens', ({ tpot }) => count(tpot.count)),
    number('TPOT', ({ tpot }) => duration(tpot.mean_ns)),
    number('p50', ({ tpot }) => duration(tpot.p50_ns)),
    number('p90', ({ tpot }) => duration(tpot.p90_ns)),
    number('p99', ({ tpot }) => duration(tpot.p99_ns)),
    number('jitter', ({ jitter }) => known(jitter.mean_difference_ns, duration)),
  ])
}

/** The roles that cause the growth of TPOT. */
function rolesTable(slope: Calls['slope']): StatsTable | undefined {
  if (!slope?.operators || !slope.is_clear) return undefined
  const { parts, call } = slope.operators
  const nameOf = (part: (typeof parts)[number]) => (part.what === 'role' ? `${part.role} ${part.op}`.trim() : part.what)
  const rows: (Slope['tpot'] & { readonly name: string })[] = parts.map((part) => ({ ...part, name: nameOf(part) }))
  return tableOf(rows, { max: ROWS_MAX, sum: { ...call, name: 'all' } }, [
    text('growth of calls by operator', ({ name }) => name),
    number(
      'ms per 1 000 tokens',
      (fit) => `${threeDigits(fit.ms_per_1000_tokens)} ±${threeDigits(fit.standard_error_ms)}`,
    ),
    number('share', (fit) => shareOf(fit.ms_per_1000_tokens, call.ms_per_1000_tokens)),
    number('R²', ({ r_squared }) => known(r_squared, (value) => value.toFixed(2))),
    number('mean', ({ mean_ns }) => duration(mean_ns)),
  ])
}

/** A row per call; undefined where the Analysis does not contain them. */
export function callTable({ series }: Analysis): Section | undefined {
  if (!series?.calls) return undefined
  const { rows, every, count: all } = series.calls
  const hasContexts = new Set(rows.map(({ context }) => context)).size > 1
  const hasFailed = rows.some(({ result }) => result !== 0)
  const numeral = (value: number | null) =>
    value === null ? '' : Number.isInteger(value) ? count(value) : threeDigits(value)
  const figures: readonly (readonly [string, (row: CallRow) => string])[] = [
    ['call', ({ call }) => count(call)],
    ['phase', ({ phase }) => phase],
    ['tokens', ({ tokens }) => numeral(tokens)],
    ['sequences', ({ sequences }) => numeral(sequences)],
    ['context tokens', ({ context_tokens }) => numeral(context_tokens)],
    ['start', ({ start_ns }) => duration(start_ns)],
    ['time', ({ time_ns }) => duration(time_ns)],
    ['tpot', ({ tpot_ns }) => known(tpot_ns, duration)],
    [
      'operator time',
      ({ operator_time_ns: parts }) => known(parts && Object.values(parts).reduce((sum, ns) => sum + ns, 0), duration),
    ],
    ['wait', ({ wait_ns }) => known(wait_ns, duration)],
    ['context', ({ context }) => (hasContexts && context !== 0 ? `0x${context.toString(16)}` : '')],
    ['result', ({ result }) => (hasFailed ? numeral(result) : '')],
  ]
  const columns = figures.map(([title, cell], rank) => ({ title, isText: rank < 2, rank, cell }))
  const title = every === 1 ? 'each call' : `every ${every}th call of ${count(all)}`
  return { title, tables: [tableOf(rows, {}, columns)] }
}
