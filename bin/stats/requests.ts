import type { Analysis, QueryResult, RequestParts, RequestRow, SlotFigures } from '../../lib/cli.ts'
import { count, duration, percent, plural, size, threeDigits } from '../units.ts'
import { acceptance } from './calls.ts'
import { known, number, type Section, type StatsTable, shareOf, some, tableOf, text } from './section.ts'

type Requests = NonNullable<Analysis['requests']>
type Speculation = NonNullable<Analysis['speculation']>
type Distribution = NonNullable<Analysis['calls']['tpot']>

/** Rows of a table of stalls, and of samplers. */
const ROWS_MAX = 8

/** Parts of a latency, as they are shown, in the order of a request. */
const PARTS: readonly (readonly [title: string, key: keyof RequestParts])[] = [
  ['waits for a call', 'call_wait_ns'],
  ['waits for a slot', 'deferred_ns'],
  ['queued', 'queued_ns'],
  ['prepare', 'prepare_ns'],
  ['prefill', 'prefill_ns'],
  ['draft', 'draft_ns'],
  ['decode', 'decode_ns'],
  ['verify', 'verify_ns'],
  ['sampling', 'sample_ns'],
  ['text', 'text_ns'],
  ['stalled', 'stalled_ns'],
  ['preempted', 'preempted_ns'],
  ['send', 'send_ns'],
  ['other', 'other_ns'],
]

/** The requests of a server: percentiles, where their time goes, reuse, stalls. */
export function requestsSections({ requests, sampling, speculation, load, functions }: Analysis): Section[] {
  const sections = [
    requests && requestsSection(requests),
    sampling && samplingSection(sampling),
    speculation && speculationSection(speculation),
    load && loadSection(load),
    functions.length > 0 ? functionsSection(functions) : null,
  ]
  return sections.filter((section) => section !== null)
}

function requestsSection(requests: Requests): Section {
  const { reuse, cancelled, stalls, parts } = requests
  const facts: [string, string][] = [
    [
      'requests',
      Object.entries(requests.outcomes)
        .map(([outcome, n]) => `${count(n)} ${outcome}`)
        .join(', '),
    ],
  ]
  for (const [type, figures] of Object.entries(requests.by_type)) {
    const prefix = Object.keys(requests.by_type).length > 1 ? `${type}: ` : ''
    for (const [title, key] of [
      ['latency', 'latency'],
      ['TTFT', 'ttft'],
      ['TPOT', 'tpot'],
      ['queued', 'queued'],
    ] as const)
      if (figures[key] && figures[key].max_ns > 0) facts.push([`${prefix}${title}`, quantiles(figures[key])])
  }
  if (reuse.reused_share !== null) {
    const text = `${count(reuse.reused_tokens)} of ${plural(reuse.prompt_tokens, 'token')} of prompts, ${percent(reuse.reused_share)}`
    facts.push(['reused', text])
  }
  if (reuse.processed_again > 0) {
    const again = `${plural(reuse.processed_again, 'token')} of ${plural(reuse.lost_requests, 'request')}`
    facts.push(['lost reuse', `${again} were processed in place of others in the cache: ${duration(reuse.lost_ns)}`])
  }
  if (stalls.by_prompts_ns > 0) {
    const inferred = stalls.inferred_ns > 0 ? `, of which ${duration(stalls.inferred_ns)} are inferred` : ''
    facts.push([
      'stalled',
      `${known(parts.stalled_ns, duration)}, by prompts of others ${duration(stalls.by_prompts_ns)}${inferred}`,
    ])
  }
  if (requests.drafts) facts.push(['drafts', acceptance(requests.drafts)])
  if (cancelled) facts.push(['not complete', `${plural(cancelled.requests, 'request')}: ${workOf(cancelled)}`])
  return { title: 'requests', facts, tables: [partsTable(requests), ...stallsTable(requests)] }
}

function workOf({ requests, timed, time_ns, prompt_tokens, generated_tokens }: NonNullable<Requests['cancelled']>) {
  const tokens = [
    ...(prompt_tokens === null ? [] : [`${plural(prompt_tokens, 'token')} of prompts`]),
    ...(generated_tokens === null ? [] : [`${plural(generated_tokens, 'token')} generated`]),
  ]
  const some = timed < requests ? ` for ${timed} of them, that for others is not in the log` : ''
  const work = time_ns === null ? 'the time of their work is not in the log' : `${duration(time_ns)} of work${some}`
  return [work, ...tokens].join('; ')
}

const quantiles = ({ mean_ns, p50_ns, p90_ns, p99_ns, max_ns }: Distribution) =>
  `${duration(mean_ns)}: p50 ${duration(p50_ns)}, p90 ${duration(p90_ns)}, p99 ${duration(p99_ns)}, max ${duration(max_ns)}`

function partsTable({ parts, latency_ns }: Requests): StatsTable {
  const shown = PARTS.filter(([, key]) => (parts[key] ?? 0) > 0)
  return tableOf(shown, {}, [
    text('latency of all requests', ([title]) => title),
    number('time', ([, key]) => duration(parts[key]!)),
    number('share', ([, key]) => shareOf(parts[key]!, latency_ns)),
  ])
}

function stallsTable({ stalls: { pairs } }: Requests): StatsTable[] {
  if (pairs.length === 0) return []
  return [
    tableOf(pairs, { max: ROWS_MAX }, [
      text('waited', ({ stalled_id, stalled_task }) => nameOf(stalled_id, stalled_task)),
      text('for', ({ id, task }) => nameOf(id, task)),
      number('time', ({ time_ns }) => duration(time_ns)),
      number('of its latency', ({ share }) => percent(share)),
      number('in its prompt', ({ prefill_ns }) => some(prefill_ns)),
      number('tokens', ({ prefill_tokens }) => some(prefill_tokens, count)),
    ]),
  ]
}

/** `task 12`, as the server's log has it; else the request's number. */
const nameOf = (id: number, task: number | null) => (task === null ? `request ${id}` : `task ${task}`)

function samplingSection({
  tokens,
  time_ns,
  per_token_ns,
  share,
  samplers,
}: NonNullable<Analysis['sampling']>): Section {
  const each = per_token_ns === null ? '' : `, ${duration(per_token_ns)} a token`
  const facts: [string, string][] = [['time', `${duration(time_ns)}, ${percent(share)} of decoding${each}`]]
  if (tokens !== null) facts.push(['tokens', count(tokens)])
  const table = tableOf(samplers, { max: ROWS_MAX }, [
    text('sampler', ({ what, name }) => `${what} ${name}`.trim()),
    number('calls', ({ calls }) => count(calls)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('a token', ({ per_token_ns }) => known(per_token_ns, duration)),
    number('share', ({ share }) => percent(share)),
    number('max', ({ max_ns }) => duration(max_ns)),
  ])
  return { title: 'sampling', facts, tables: [table] }
}

function speculationSection(figures: Speculation): Section {
  const facts: [string, string][] = [
    ['accepted', acceptance(figures)],
    [
      'with drafts',
      `${duration(figures.with_token_ns)} a token: draft ${duration(figures.draft_ns)}, verify ${duration(figures.verify_ns)}, sampling ${duration(figures.sample_ns)}`,
    ],
  ]
  if (figures.without_token_ns !== null)
    facts.push([
      'without',
      `${duration(figures.without_token_ns)} a token, inferred from ${figures.without_calls} ${figures.without_from}`,
    ])
  if (figures.speedup !== null) facts.push(['speedup', `× ${threeDigits(figures.speedup)}`])
  const table = tableOf(figures.by_length, { max: 2 * ROWS_MAX }, [
    text('tokens of a draft', ({ drafted }) => count(drafted)),
    number('drafts', ({ cycles }) => count(cycles)),
    number('accepted', ({ accepted_tokens }) => count(accepted_tokens)),
    number('share', ({ acceptance_share }) => percent(acceptance_share)),
    number('verify (mean)', ({ verify_mean_ns }) => duration(verify_mean_ns)),
  ])
  return { title: 'speculative decoding', facts, tables: [table] }
}

function loadSection({ time_ns, stages }: NonNullable<Analysis['load']>): Section {
  const table = tableOf(stages, {}, [
    text('stage', ({ stage }) => stage),
    number('calls', ({ calls }) => count(calls)),
    number('time', (stage) => duration(stage.time_ns)),
    number('share', (stage) => percent(time_ns > 0 ? stage.time_ns / time_ns : 0)),
    number('bytes', ({ bytes }) => known(bytes, size)),
    number('rate', ({ bytes_per_s }) => known(bytes_per_s, (rate) => `${threeDigits(rate / 1e9)} GB/s`)),
  ])
  return { title: 'loading', facts: [['time', duration(time_ns)]], tables: [table] }
}

function functionsSection(functions: Analysis['functions']): Section {
  const table = tableOf(functions, { max: 2 * ROWS_MAX }, [
    text('function', ({ what, name }) => `${what} ${name}`.trim()),
    number('calls', ({ calls }) => count(calls)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('max', ({ max_ns }) => duration(max_ns)),
    number('tokens', ({ tokens }) => known(tokens, count)),
    number('bytes', ({ bytes }) => known(bytes, size)),
  ])
  return { title: 'functions around calls', tables: [table] }
}

/** A figure of a row, as a column of a table and of CSV. */
type Figure<Row> = readonly [
  title: string,
  key: string,
  of: (row: Row) => number | string | null,
  as: (value: number) => string,
]

const partFigures = <Row>(partsOf: (row: Row) => RequestParts | null): Figure<Row>[] =>
  PARTS.map(([title, key]) => [title, key, (row) => partsOf(row)?.[key] ?? null, some])

const REQUEST: readonly Figure<RequestRow>[] = [
  ['request', 'id', ({ id }) => id, String],
  ['task', 'task', ({ task }) => task, String],
  ['slot', 'slot', ({ slot }) => slot, String],
  ['type', 'type', ({ type }) => type, String],
  ['outcome', 'outcome', ({ outcome }) => outcome, String],
  ['start', 'start_ns', ({ start_ns }) => start_ns, duration],
  ['latency', 'latency_ns', ({ latency_ns }) => latency_ns, duration],
  ['TTFT', 'ttft_ns', ({ ttft_ns }) => ttft_ns, duration],
  ['TPOT', 'tpot_ns', ({ tpot_ns }) => tpot_ns, duration],
  ['prompt', 'prompt_tokens', ({ prompt_tokens }) => prompt_tokens, count],
  ['reused', 'reused_tokens', ({ reused_tokens }) => reused_tokens, count],
  ['generated', 'generated_tokens', ({ generated_tokens }) => generated_tokens, count],
  ['drafted', 'drafted_tokens', ({ drafted_tokens }) => drafted_tokens, (n) => (n === 0 ? '' : count(n))],
  ['accepted', 'accepted_tokens', ({ accepted_tokens }) => accepted_tokens, (n) => (n === 0 ? '' : count(n))],
  ...partFigures<RequestRow>(({ parts }) => parts),
  ['stalled by', 'stalled_by', ({ stalled_by: [by] }) => (by ? nameOf(by.id, by.task) : null), String],
  ['processed again', 'processed_again', ({ lost }) => lost?.processed_again ?? null, (n) => (n === 0 ? '' : count(n))],
]

const SLOT: readonly Figure<SlotFigures>[] = [
  ['slot', 'slot', ({ slot }) => slot, String],
  ['requests', 'requests', ({ requests }) => requests, count],
  ['busy', 'busy_ns', ({ busy_ns }) => busy_ns, duration],
  ['prompt', 'prompt_tokens', ({ prompt_tokens }) => prompt_tokens, count],
  ['reused', 'reused_tokens', ({ reused_tokens }) => reused_tokens, count],
  ['generated', 'generated_tokens', ({ generated_tokens }) => generated_tokens, count],
  ...partFigures<SlotFigures>(({ parts }) => parts),
]

/** Columns that are left out first where the terminal is narrow. */
const RANKS: Readonly<Record<string, number>> = {
  ...{
    send: 13,
    text: 12,
    'waits for a call': 12,
    prepare: 11,
    drafted: 10,
    accepted: 9,
    start: 8,
    preempted: 8,
    other: 7,
    'processed again': 6,
  },
  ...{ type: 5, verify: 4, draft: 4, 'stalled by': 3, outcome: 2, sampling: 2 },
}

/** What a table of requests is of. */
export type RequestKey = 'request' | 'slot'

interface Rows<Row> {
  readonly figures: readonly Figure<Row>[]
  readonly rows: readonly Row[]
}

function rowsOf({ series, requests }: Analysis, by: RequestKey): Rows<RequestRow> | Rows<SlotFigures> {
  if (by === 'slot') return { figures: SLOT, rows: requests?.slots ?? [] }
  return { figures: REQUEST, rows: series?.requests?.rows ?? requests?.slowest ?? [] }
}

/** A row per request, or per slot. */
export function requestTable(analysis: Analysis, by: RequestKey, top: number): Section {
  const made = <Row>({ figures, rows }: Rows<Row>): StatsTable =>
    tableOf(
      rows,
      { max: top },
      figures.map(([title, , figureOf, as]) => ({
        title,
        rank: RANKS[title] ?? 0,
        cell: (row) => cellOf(figureOf(row), as),
      })),
    )
  const found = rowsOf(analysis, by)
  const { every = 1, count: all = 0 } = analysis.series?.requests ?? {}
  const title = by === 'slot' ? 'slots' : every === 1 ? 'requests' : `every ${every}th of ${count(all)} requests`
  return { title, tables: [made(found as Rows<RequestRow>)] }
}

function cellOf(value: number | string | null, as: (value: number) => string): string {
  return value === null ? '' : typeof value === 'string' ? value : as(value)
}

/** The same with all figures, for CSV. */
export function requestCsv(analysis: Analysis, by: RequestKey, top: number): QueryResult {
  const { figures, rows } = rowsOf(analysis, by) as Rows<RequestRow>
  return {
    columns: figures.map(([, key]) => key),
    rows: rows.slice(0, top).map((row) => figures.map(([, , cellOf]) => cellOf(row))),
  }
}
