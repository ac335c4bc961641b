import { gpuViewOf, widened } from './gpu-view.ts'
import { otherViewOf } from './other-view.ts'
import type { QueryResult } from './trace-processor.ts'

/** A slow operator takes this many times the median of its kind. */
const SLOW = 3
/** Causes are searched for these only, so that the query is fast in a large trace, too. */
const SLOW_OPERATORS_MAX = 500
/** A cause explains more than this many percent of the operator's time. */
const SHARE_MIN = 5
/** A state of the worker's thread may begin this much before the operator that it is part of: clocks are not exact. */
const CLOCK_ERROR = '1e6'

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
 * thread (the thread named is the one that had the CPU longest), the rest of the waits inside the operator, and page faults: shares of its time. By `id`
 * and `track_id` the UI finds the operator. States before `runni` in the alphabet are those without a CPU. The query is part of a URL: it is as short as it can be.
 */
function whySlow({ fromTs, hasFaults, namesFirst }: OperatorFacts): string {
  const kind = fromTs === undefined ? `name, ${arg('shape')}` : 'name'
  const faults = `, ' · major faults ' || ${arg('major_faults')}, ' · ' || round(${arg('bytes_read')} / 1e6, 1) || ' MB read'`
  const sql = `
with o as (select *, median(dur) over (partition by ${kind}) m from slice
  where category = 'operator'${fromTs === undefined ? '' : ` and ts >= ${fromTs}`}),
s as (select o.*, r.id r, t.name k from o join track t on t.id = track_id
  left join track r on r.parent_id is t.parent_id and r.name = printf('worker %d: state', substr(t.name, 8))
  where dur > ${SLOW} * m order by dur - m desc limit ${SLOW_OPERATORS_MAX}),
c as (select s.id i, s.dur d, a.name c, ${arg(namesFirst ? 'taken_first_by' : 'taken_by', 'a.arg_set_id')} b,
  sum(min(a.ts + a.dur, s.ts + s.dur) - max(a.ts, s.ts)) n
  from s cross join slice a on a.ts > s.ts - ${CLOCK_ERROR} and a.ts < s.ts + s.dur and a.ts + a.dur > s.ts
  and a.track_id = r and a.name < 'runni' group by 1, 3, 4),
w as (select i, c, b, max(n), 1e2 * sum(n) / d p from c group by 1, 2
  union all select id, 'waiting', null, 0, 1e2 * min(${arg('inner_wait_ns')}, dur - (select total(n) from c where i = id)) / dur from s)
select id, ts, dur, track_id, m median, printf('%s: %s ×%.0f%s${hasFaults ? '%s%s' : ''}', k, name, dur / m,
  (select group_concat(printf(' · %s %.0f %%%s', iif(c glob '*p*', 'preempted', c), p, ' by ' || b), ''
  order by p desc) from w where i = id and p > ${SHARE_MIN})${hasFaults ? faults : ''}) name from s`
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
/** The path of the extension server: what follows the host in the address that users add in the UI's settings. */
export const EXTENSION_PATH = '/ggml'

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
/** As many are in view if the slowest call and a usual one are among them. */
const CALLS_SHOWN_MAX = 8
/** A call that takes this many times the median is in view, and has a note. */
const SLOW_CALL = 1.5
/** A usual call takes the median, but for this share of it. */
const USUAL_SHARE = 0.05
const NOTES_MAX = 3
/** Space before and after what is in view, as a share of its time. */
const MARGIN = 0.05
/** The workspace of the UI that contains the rows of a run. */
const WORKSPACE = 'ggml'

/** Names of the rows of a run, as far as it has them: Findings, …; those in its groups are not matched. */
const ROWS = 'Find.*|Phase|.ueue.*|slot.*|In .*|Benchmark|Tokens.*|tok/s|Graphs|Copies|G.*/s.*'
/** What the UI adds to names in Chrome JSON: the number of a thread, or the unit of a counter. */
const OF_JSON = '( [^>]*)?'
/** CPUs of the scheduler, as the UI draws them. */
const CPUS = 'C.* . Scheduling'
/** Browsers accept much more; what is between here and them may not. */
const URL_CHARS_MAX = 8000
/** Commands without which the others make no sense. */
const COMMANDS_MIN = 3

/** Calls of one kind, in order. */
interface CallSpan {
  readonly name: string
  readonly ts: bigint
  readonly endTs: bigint
}

/** The decode calls, or the other calls if there are none: only calls with recorded operators, of the first of several runs. */
const CALLS = `
  with operators as (select ifnull(min(ts), 0) as firstTs from slice where category = 'operator'),
  every as (
    select slice.name, slice.ts, slice.ts + slice.dur as endTs, slice.name glob 'decode [0-9]*' as decode, root.id as run,
      extract_arg(root.source_arg_set_id, 'sibling_order_rank') as rank
    from slice join track on track.id = track_id left join track root on root.id = track.parent_id, operators
    where slice.category = 'token' and dur > 0 and slice.ts + slice.dur > firstTs),
  calls as (select * from every where run is (select run from every order by rank limit 1))
  select name, ts, endTs, decode from calls where decode = (select max(decode) from calls) order by ts`

/** The times that the UI shows at most. */
const BOUNDS = `select start_ts, end_ts from trace_bounds`

/** The request that took longest. */
const SLOWEST_REQUEST = `select ts, ts + dur from slice where category = 'request' order by dur desc limit 1`

/** Facts about the operators, and what else there is. */
const FACTS = `
  select count(*), count(extract_arg(arg_set_id, 'debug.shape')),
    exists (select 1 from args where key in ('debug.minor_faults', 'debug.major_faults', 'debug.bytes_read')),
    exists (select 1 from args where key = 'debug.taken_first_by'),
    exists (select 1 from track where name in ('Phase', 'Tokens', 'slots busy', 'In flight', 'Benchmark')),
    exists (select 1 from slice where category = 'finding')
  from slice where category = 'operator'`

/** The findings, most time first, as a table below the timeline. */
const FINDINGS = `select name finding,extract_arg(arg_set_id,'debug.advice')advice,ts,dur from slice where category='finding'`

/** What to show first of a trace of this library. `query` runs PerfettoSQL on the trace, or on its beginning. */
export function viewOf(query: (sql: string) => QueryResult): View {
  const [operators, shapes, faults, first, isRun, hasFindings] = query(FACTS).rows[0]!
  const rows = query(CALLS).rows
  const calls = rows.map(([name, ts, endTs]): CallSpan => {
    return { name: `${name}`, ts: BigInt(ts as number), endTs: BigInt(endTs as number) }
  })
  const [request] = query(SLOWEST_REQUEST).rows
  const gpu = gpuViewOf(query)
  const timed = timedCalls(calls)
  const slow = slowCalls(timed)
  const usual = slow[0] && usualCall(timed, slow[0])
  const inView = request
    ? ([BigInt(request[0] as number), BigInt(request[1] as number)] as const)
    : shownOf(calls, slow[0], usual)
  const ofRun = `([^>]*> )?(${ROWS}|${request ? 'worker.*|.* tok/s' : '[bKw].*|layer.*|Memory|com.*'})${isRun === 1 ? '' : OF_JSON}`
  const others = isRun === 1 || operators !== 0 ? { expanded: [], rows: [ofRun, CPUS] } : otherViewOf(query, CPUS)
  const copied = [...others.rows, ...gpu.rows]
  if (copied.length === 0) return { commands: [] }
  const expanded = [...others.expanded, ...gpu.expanded]
  const commands = [
    command('CopyTracksToWorkspaceByRegexWithAncestors', `^(${copied.join('|')})$`, WORKSPACE, 'path'),
    command('SwitchWorkspace', WORKSPACE),
    command('ExpandTracksByRegex', expanded.length > 0 ? `^(.*LLM.*|${expanded.join('|')})$` : '.', 'name'),
  ]
  if (operators !== 0) {
    // If operators have no shapes, all those of a prompt would seem slow compared with those of single tokens.
    const isDecode = rows[0]?.[3] === 1
    const fromTs = shapes === 0 && isDecode ? `${calls[0]!.ts}` : undefined
    const sql = whySlow({ fromTs, hasFaults: faults === 1, namesFirst: first === 1 })
    commands.push(command('AddDebugSliceTrack', sql, 'Why slow'))
  }
  if (hasFindings === 1) commands.push(command('RunQueryAndShowTab', FINDINGS, 'Findings'))
  commands.push(...notesOf(slow, usual, inView))
  const span = inView ? widened(inView, MARGIN) : gpu.span
  return { span: span && withinTrace(span, query(BOUNDS)), commands }
}

/** A span without what is before or after the trace: the UI ignores one that is not within it. Source: Perfetto v55.3 and v58.2, plugins/dev.perfetto.DeeplinkQuerystring. */
function withinTrace([start, end]: readonly [bigint, bigint], bounds: QueryResult): readonly [bigint, bigint] {
  const [first, last] = bounds.rows[0]!.map((ts) => BigInt(ts as number))
  return [start < first! ? first! : start, end > last! ? last! : end]
}

const command = (name: string, ...args: string[]): ViewerCommand => ({ id: `dev.perfetto.${name}`, args })

interface TimedCall {
  readonly call: CallSpan
  /** Its place among the calls. */
  readonly nth: number
  /** Its time, as a multiple of the median. */
  readonly times: number
}

function timedCalls(calls: readonly CallSpan[]): TimedCall[] {
  const times = calls.map(({ ts, endTs }) => Number(endTs - ts))
  const median = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
  return calls.map((call, nth) => ({ call, nth, times: times[nth]! / median }))
}

/** The slowest calls, the slowest one first. */
function slowCalls(calls: readonly TimedCall[]): TimedCall[] {
  return calls
    .filter(({ times }) => times >= SLOW_CALL)
    .sort((a, b) => b.times - a.times)
    .slice(0, NOTES_MAX)
}

/** Of the calls that took the median, the one nearest to the slowest: what that is compared with. */
function usualCall(calls: readonly TimedCall[], slowest: TimedCall): TimedCall {
  const distance = ({ nth }: TimedCall) => Math.abs(nth - slowest.nth)
  return calls
    .filter(({ times }) => Math.abs(times - 1) < USUAL_SHARE)
    .reduce((nearest, call) => (distance(call) < distance(nearest) ? call : nearest))
}

/** The slowest call and those around it, with the usual one if that is near; the first calls if none is slow. */
function shownOf(
  calls: readonly CallSpan[],
  slowest: TimedCall | undefined,
  usual: TimedCall | undefined,
): readonly [bigint, bigint] | undefined {
  const at = slowest ? slowest.nth - 1 : 0
  const from = Math.max(0, Math.min(at, calls.length - CALLS_SHOWN))
  const to = from + CALLS_SHOWN
  const [first, end] = usual ? [Math.min(from, usual.nth), Math.max(to, usual.nth + 1)] : [from, to]
  const shown = end - first <= CALLS_SHOWN_MAX ? calls.slice(first, end) : calls.slice(from, to)
  if (shown.length === 0) return undefined
  return [shown[0]!.ts, shown.reduce((last, { endTs }) => (endTs > last ? endTs : last), 0n)]
}

/** Notes at the slow calls and at the usual one; that of the slowest names the usual one if it is not in view. */
function notesOf(
  slow: readonly TimedCall[],
  usual: TimedCall | undefined,
  inView: readonly [bigint, bigint] | undefined,
): ViewerCommand[] {
  const isSeen = usual && inView && usual.call.ts >= inView[0] && usual.call.endTs <= inView[1]
  return [...slow, ...(usual ? [usual] : [])].map(({ call, times }, i) => {
    const compared = usual && i === 0 && !isSeen ? `; compare with ${usual.call.name}` : ''
    return command('AddNoteAtTimestamp', `${call.ts}`, `${call.name}: ${times.toFixed(1)} × the median${compared}`)
  })
}

/**
 * The URL at which the Perfetto UI fetches a trace from `traceUrl` and shows this view; undefined: a page passes the trace to it. Its last commands are
 * left out if it would have more than `charsMax` characters.
 */
export function viewerUrl(traceUrl: string | undefined, { span, commands }: View, charsMax = URL_CHARS_MAX): string {
  const parameters = traceUrl === undefined ? [] : [['url', traceUrl]]
  if (span) parameters.push(['visStart', String(span[0])], ['visEnd', String(span[1])])
  if (commands.length > 0) parameters.push(['startupCommands', JSON.stringify(commands)])
  const url = `${VIEWER}/#!/?${parameters.map(([key, value]) => `${key}=${encoded(value!)}`).join('&')}`
  if (url.length <= charsMax || commands.length <= COMMANDS_MIN) return url
  return viewerUrl(traceUrl, { span, commands: commands.slice(0, -1) }, charsMax)
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
