import { gpuViewOf, widened } from './gpu-view.ts'
import type { QueryResult } from './trace-processor.ts'

/** A slow operator takes this many times the median of its kind. */
const SLOW = 3
/** Causes are searched for these only, so that the query is fast in a large trace, too. */
const SLOW_OPERATORS_MAX = 500
/** A cause explains more than this many percent of the operator's time. */
const SHARE_MIN = 5
/** A state of the worker's thread may begin this much before the operator that it is part of: clocks are not exact. */
const CLOCK_ERROR_NS = 1e6

const arg = (name: string, argSet = 'arg_set_id') => `extract_arg(${argSet}, 'debug.${name}')`

/** What a trace contains, as far as the query depends on it. */
interface OperatorFacts {
  /** Operators are compared from this time on, by name only; by default all of them, by name and shape. */
  readonly fromTs: string | undefined
  /** Operators have counts of page faults. */
  readonly hasFaults: boolean
  /** States name the thread that took the CPU first, instead of the one that had it longest. */
  readonly namesFirst: boolean
}

/**
 * PerfettoSQL for a track with the operators that lost most time, compared with the median of their kind. Names contain the
 * cause: `Qcur MUL_MAT ×2522 · preempted 66 % by git 14917`, as far as the trace contains it: from the states of the worker's
 * thread (the thread named is the one that had the CPU longest), waits inside the operator, and page faults. By `id`
 * and `track_id` the UI finds the operator. The query is part of a URL: it is as short as it can be.
 */
function whySlow({ fromTs, hasFaults, namesFirst }: OperatorFacts): string {
  const kind = fromTs === undefined ? `name, ${arg('shape')}` : 'name'
  const faults = `, ' · major faults ' || ${arg('major_faults')}, ' · ' || round(${arg('bytes_read')} / 1e6, 1) || ' MB read'`
  const sql = `
with o as (select *, median(dur) over (partition by ${kind}) m from slice
  where category = 'operator'${fromTs === undefined ? '' : ` and ts >= ${fromTs}`}),
s as (select o.*, r.id r from o join track t on t.id = track_id
  left join track r on r.parent_id = t.parent_id and r.name = t.name || ': state'
  where dur > ${SLOW} * m order by dur - m desc limit ${SLOW_OPERATORS_MAX}),
c as (select s.id i, s.dur d, a.name c, ${arg(namesFirst ? 'taken_first_by' : 'taken_by', 'a.arg_set_id')} b,
  sum(min(a.ts + a.dur, s.ts + s.dur) - max(a.ts, s.ts)) n
  from s cross join slice a on a.ts > s.ts - ${CLOCK_ERROR_NS} and a.ts < s.ts + s.dur and a.ts + a.dur > s.ts
  and a.track_id = r and a.name not glob 'running*' group by 1, 3, 4
  union all select id, dur, 'waiting for other workers', null, ${arg('inner_wait_ns')} from s),
w as (select *, max(n), 1e2 * sum(n) / d p from c group by i, c)
select id, ts, dur, track_id, m median_ns, printf('%s ×%.0f%s${hasFaults ? '%s%s' : ''}', name, dur / m,
  (select group_concat(printf(' · %s %.0f %%%s', iif(c glob '*p*', 'preempted', c), p, ' by ' || b), ''
  order by c > 'w', p desc) from w where i = id and p > ${SHARE_MIN})${hasFaults ? faults : ''}) name from s`
  return shortened(sql)
}

/** SQL without the spaces that it can do without; texts in it are not changed. */
function shortened(sql: string): string {
  const shorter = (part: string) => part.replace(/\s+/g, ' ').replace(/ ?([-+*/|,()=<>]) ?/g, '$1')
  return sql
    .trim()
    .split("'")
    .map((part, i) => (i % 2 === 0 ? shorter(part) : part))
    .join("'")
}

// The parameters of the Perfetto UI's URL determine what it shows. They contain commands that it runs when the trace is
// loaded. It runs only commands on its list of stable ones, and ignores parameters that it cannot parse.
// Source: Perfetto v58, ui/src/public/route_schema.ts and ui/src/core/startup_command_allowlist.ts.

/** The address of the Perfetto UI; also the origin of what it fetches. */
export const VIEWER = 'https://ui.perfetto.dev'

/** A command of the Perfetto UI; all its arguments are strings. */
export interface ViewerCommand {
  readonly id: `dev.perfetto.${string}`
  readonly args: readonly string[]
}

/** What the Perfetto UI shows of a trace at first. */
export interface View {
  /** From … to, in ns of the trace's clock (`ts` in SQL); by default the whole trace. */
  readonly span?: readonly [bigint, bigint] | undefined
  /** Run once the trace is loaded. */
  readonly commands: readonly ViewerCommand[]
}

/** Number of calls in view at first. */
const CALLS_SHOWN = 3
/** Space before and after them, as a share of their time. */
const MARGIN = 0.05
/** Pinned tracks are always visible: more would leave no room for others. */
const PINNED_MAX = 12
const WORKERS_PINNED = 8

/** The most important first, then as many workers as there is room for. */
const PINNED = ['Findings', 'Phase', 'Tokens(: (target|draft))?', 'tok/s', 'GB/s']
const EXPANDED = ['LLM .*', 'Memory']

/**
 * The first decode calls, or the first other calls if there are none: only calls with recorded operators. And facts about the
 * operators.
 */
const FACTS = `
  with operators as (
    select count(*) as n, ifnull(min(ts), 0) as firstTs, count(extract_arg(arg_set_id, 'debug.shape')) as shapes
    from slice where category = 'operator'),
  calls as (
    select slice.ts, slice.ts + slice.dur as endTs, slice.name glob 'decode [0-9]*' as decode
    from slice, operators where category = 'token' and dur > 0 and slice.ts + slice.dur > firstTs),
  shown as (
    select * from calls where decode = (select max(decode) from calls) order by ts limit ${CALLS_SHOWN})
  select (select min(ts) from shown), (select max(endTs) from shown), (select max(decode) from shown), n, shapes,
    exists (select 1 from args where key in ('debug.minor_faults', 'debug.major_faults', 'debug.bytes_read')),
    exists (select 1 from args where key = 'debug.taken_first_by'), (select count(*) from track where name = 'Phase')
  from operators`

/** What to show first of a trace of this library. `query` runs PerfettoSQL on the trace, or on its beginning. */
export function viewOf(query: (sql: string) => QueryResult): View {
  const [start, end, isDecode, operators, shapes, faults, first, runs] = query(FACTS).rows[0]!
  const hasCalls = start !== null || operators !== 0
  const gpu = gpuViewOf(query)
  const span = start === null ? gpu.span : widened([BigInt(start as number), BigInt(end as number)], MARGIN)
  const pinned = hasCalls ? pinnedOfEach((PINNED_MAX - gpu.pinned.length) / Math.max(1, Number(runs))) : []
  const commands = [
    ...tracks('ExpandTracksByRegex', [...(hasCalls ? EXPANDED : []), ...gpu.expanded]),
    ...tracks('PinTracksByRegex', [...pinned, ...gpu.pinned]),
  ]
  if (operators !== 0) {
    // If operators have no shapes, all those of a prompt would seem slow compared with those of single tokens.
    const fromTs = shapes === 0 && isDecode === 1 ? String(start) : undefined
    const sql = whySlow({ fromTs, hasFaults: faults === 1, namesFirst: first === 1 })
    commands.push({ id: 'dev.perfetto.AddDebugSliceTrack', args: [sql, 'Why slow'] })
  }
  return { span, commands }
}

/** Names of at most so many tracks to pin: in a trace of several runs, each name is that of several tracks. */
function pinnedOfEach(room: number): string[] {
  const workers = Math.min(Math.floor(room) - PINNED.length, WORKERS_PINNED)
  return [...PINNED.slice(0, room), ...(workers > 0 ? [`worker [0-${workers - 1}]`] : [])]
}

/** A command for all tracks with one of these names; none for no name. */
function tracks(command: string, names: readonly string[]): ViewerCommand[] {
  if (names.length === 0) return []
  return [{ id: `dev.perfetto.${command}`, args: [`^(${names.join('|')})$`, 'name'] }]
}

/** The URL at which the Perfetto UI fetches a trace from `traceUrl` and shows this view. */
export function viewerUrl(traceUrl: string, { span, commands }: View): string {
  const parameters = [['url', traceUrl]]
  if (span) parameters.push(['visStart', String(span[0])], ['visEnd', String(span[1])])
  if (commands.length > 0) parameters.push(['startupCommands', JSON.stringify(commands)])
  return `${VIEWER}/#!/?${parameters.map(([key, value]) => `${key}=${encoded(value!)}`).join('&')}`
}

/**
 * Encodes quotes and brackets too: terminals would take them for the end of a link. Spaces and commas are shorter than their usual
 * encoding, because some programs do not accept long URLs.
 */
function encoded(value: string): string {
  return encodeURIComponent(value)
    .replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
    .replaceAll('%2C', ',')
}
