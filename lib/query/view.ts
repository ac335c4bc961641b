import type { QueryResult } from './trace-processor.ts'

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
const WORKERS_PINNED = 8
/** A slow operator takes this many times the median of its kind. */
const SLOW = 3
const SLOW_OPERATORS_MAX = 500

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
  select (select min(ts) from shown), (select max(endTs) from shown), (select max(decode) from shown), n, shapes
  from operators`

/** What to show first of a trace of this library. `query` runs PerfettoSQL on the trace, or on its beginning. */
export function viewOf(query: (sql: string) => QueryResult): View {
  const [start, end, isDecode, operators, shapes] = query(FACTS).rows[0]!
  const span = start === null ? undefined : widened(BigInt(start as number), BigInt(end as number))
  if (!span && operators === 0) return { commands: [] }
  // If operators have no shapes, all those of a prompt would seem slow compared with those of single tokens.
  const fromTs = shapes === 0 && isDecode === 1 ? String(start) : undefined
  return { span, commands: [...TRACKS, ...(operators === 0 ? [] : [slowOperators(fromTs)])] }
}

function widened(start: bigint, end: bigint): readonly [bigint, bigint] {
  const margin = BigInt(Math.ceil(Number(end - start) * MARGIN))
  return [start - margin, end + margin]
}

const TRACKS: readonly ViewerCommand[] = [
  { id: 'dev.perfetto.ExpandTracksByRegex', args: ['^(LLM .*|Workers|Memory)$', 'name'] },
  {
    id: 'dev.perfetto.PinTracksByRegex',
    args: [`^(Phase|Tokens|worker [0-${WORKERS_PINNED - 1}])$`, 'name'],
  },
]

/** A track with operators that took far longer than others of the same name and shape; those that lost most time. */
function slowOperators(fromTs: string | undefined): ViewerCommand {
  const kind = fromTs === undefined ? "name, extract_arg(arg_set_id, 'debug.shape')" : 'name'
  const where = fromTs === undefined ? '' : ` and ts >= ${fromTs}`
  const sql = `select o.ts, o.dur, printf('%.1f× %s', o.dur / usual, o.name) as name, t.name as worker, usual as median_ns
from (select *, median(dur) over (partition by ${kind}) as usual from slice where category = 'operator'${where}) o
join track t on o.track_id = t.id where o.dur > ${SLOW} * usual order by o.dur - usual desc limit ${SLOW_OPERATORS_MAX}`
  return { id: 'dev.perfetto.AddDebugSliceTrack', args: [sql.replaceAll('\n', ' '), 'Slow operators (× median)'] }
}

/** The URL at which the Perfetto UI fetches a trace from `traceUrl` and shows this view. */
export function viewerUrl(traceUrl: string, { span, commands }: View): string {
  const parameters = [['url', traceUrl]]
  if (span) parameters.push(['visStart', String(span[0])], ['visEnd', String(span[1])])
  if (commands.length > 0) parameters.push(['startupCommands', JSON.stringify(commands)])
  return `${VIEWER}/#!/?${parameters.map(([key, value]) => `${key}=${encoded(value!)}`).join('&')}`
}

/** Encodes quotes and brackets too: terminals would take them for the end of a link. */
function encoded(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
}
