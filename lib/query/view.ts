import { gpuViewOf, widened } from './gpu-view.ts'
import type { QueryResult } from './trace-processor.ts'
import { whySlow } from './why-slow.ts'

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
const EXPANDED = ['LLM .*', 'Workers', 'Memory']

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
