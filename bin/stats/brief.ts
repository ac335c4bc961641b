import {
  type Analysis,
  groupOperators,
  hasOtherBackend,
  type OperatorGroup,
  partsOfWorker,
  type WorkerPart,
} from '../../lib/cli.ts'
import { oneLine, quoted, wrapped } from '../terminal.ts'
import { duration, percent, plural } from '../units.ts'
import { clockLines, verdictLines } from '../verdict.ts'
import { firstTokenText } from './first-token.ts'
import { placementText } from './placement.ts'
import { firstRows, known, more, number, type Section, some, tableOf, text, toText } from './section.ts'
import { sectionsOf } from './sections.ts'

/** Lines of statistics for a first look. */
const BRIEF_LINES = 25
/** Rows of its tables. */
const OPERATORS = 5
const WORKERS = 3
const FINDINGS = 3
/** Characters of the name of a phase, with what is around it. */
const PHASE = 11
/** The same of `first token`. */
const FIRST_TOKEN = 15
/** Characters of an operator's name. */
const NAME_MAX = 30

/** Statistics for a first look: verdict, where the time goes, the first operators, workers, findings, and what shows more. */
export function briefLines(analysis: Analysis, width: number): string[] {
  const names = analysis.inputs.map(({ name }) => name)
  const first = [...verdictLines(analysis.verdict, names), ...clockLines(analysis)]
  const head = first.flatMap((line) => wrapped(oneLine(line), width))
  const found = analysis.findings.slice(0, FINDINGS).map(({ sentence }, i) => cut(`  ${i + 1}. ${sentence}`, width))
  const logs = names.map((name) => ` ${quoted(name)}`).join('')
  const tail = [
    ...(found.length > 0 ? ['findings', ...found] : []),
    ...wrapped(`more: --full, --by layer | type | shape, --calls; ggml2perfetto why${logs}`, width),
  ]
  const isOfCalls = analysis.call_time.length > 0
  const middle = isOfCalls ? toText(callSections(analysis, width), width) : toText(otherSections(analysis), width)
  // Lines between sections would be a quarter of all.
  const lines = middle.filter((line) => line !== '' && !line.startsWith('columns left out '))
  const shown = lines.map((line) => cut(line, width))
  const room = BRIEF_LINES - head.length - tail.length
  return [...head, ...(shown.length > room ? [...shown.slice(0, room - 1), '  …'] : shown), ...tail]
}

const cut = (line: string, width: number) => (line.length > width ? `${line.slice(0, width - 1)}…` : line)

/** Of a run with calls. */
function callSections(analysis: Analysis, width: number): Section[] {
  return [timesSection(analysis, width), ...operatorsSection(analysis), ...workersSection(analysis)]
}

/** Of what else can be analysed: its own sections, as far as there is room. */
function otherSections(analysis: Analysis): Section[] {
  const shown = { by: [], top: OPERATORS, sort: 'wall', calls: false, experts: false, isPublic: false } as const
  const left = [analysis.verdict.sentence, 'run', 'findings', 'not known']
  return sectionsOf(analysis, shown).filter(({ title }) => !left.includes(title))
}

/** Parts of the time of each phase: they sum to it. */
function timesSection({ calls, call_time, first_token, placement, run }: Analysis, width: number): Section {
  const { ttft_ns, tpot_ns, tpot } = calls
  const p99 = tpot ? ` (p99 ${duration(tpot.p99_ns)})` : ''
  const times = [
    ...(ttft_ns === null ? [] : [`TTFT ${duration(ttft_ns)}`]),
    ...(tpot_ns === null ? [] : [`TPOT ${duration(tpot_ns)}${p99}`]),
  ]
  const facts = call_time.map(({ phase, time_ns, calls, parts }): [string, string] => {
    const named = parts.map(({ what, share }) => `${what} ${percent(share)}`)
    const whole = `${duration(time_ns)} in ${plural(calls, 'call')}: `
    let shown = named.length
    while (shown > 1 && whole.length + named.slice(0, shown).join(', ').length > width - PHASE) shown--
    return [phase, `${whole}${named.slice(0, shown).join(', ')}`]
  })
  const first = firstTokenText(first_token, width - FIRST_TOKEN)
  if (first !== undefined) facts.push(['first token', first])
  if (placement && hasOtherBackend(placement)) facts.push(['placement', placementText(placement)])
  return { title: [run.left_out ? 'time of the calls that were kept' : 'time of calls', ...times].join(', '), facts }
}

/** The operators with most time in the phase that takes longest. */
function operatorsSection(analysis: Analysis): Section[] {
  const byTime = analysis.call_time.toSorted((a, b) => b.time_ns - a.time_ns)
  const groups = groupOperators(analysis, ['role', 'op', 'phase'])
  const phase = byTime.map(({ phase }) => phase).find((phase) => groups.some((group) => group.phase === phase))
  if (phase === undefined) return []
  const own = groups.filter((group) => group.phase === phase).toSorted((a, b) => (b.wall_ns ?? 0) - (a.wall_ns ?? 0))
  const all = groupOperators(analysis, ['phase']).filter((group) => group.phase === phase)
  const { shown, rest } = firstRows(own, OPERATORS)
  const rows = shown.map((group) => [nameOf(group), ...figuresOf(group)])
  if (rest.length > 0) rows.push([more(rest), ...figuresOf(...rest)])
  if (own.length > 1) rows.push(['all', ...figuresOf(...all)])
  const columns = [`operators of ${phase}`, 'share', 'wall', 'computing', 'preempted', 'blocked'].map((title, i) => ({
    title,
    isText: i === 0,
    rank: i < 4 ? 0 : i,
  }))
  return [{ title: WALL_NOTE, tables: [{ columns, rows }] }]
}

/** Why the column of computing exceeds that of time. */
const WALL_NOTE = 'operators: wall is from start to end, computing the sum of all workers'

const nameOf = ({ role, op }: OperatorGroup) => {
  const name = `${role} ${op}`.trim() || '(unnamed)'
  return name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name
}

function figuresOf(...groups: readonly OperatorGroup[]): string[] {
  const sum = (value: (group: OperatorGroup) => number | null) =>
    groups.reduce((all, group) => all + (value(group) ?? 0), 0)
  const time = (ns: number) => (ns === 0 ? '' : duration(ns))
  const share = groups.reduce((all, { shares, phase }) => all + (shares[phase!]?.wall_share ?? 0), 0)
  return [
    percent(share),
    time(sum(({ wall_ns }) => wall_ns)),
    time(sum(({ computing_ns }) => computing_ns)),
    time(sum(({ preempted_ns }) => preempted_ns)),
    time(sum(({ blocked_ns }) => blocked_ns)),
  ]
}

/** What each worker did in its calls; preempted time is not computing. */
function workersSection({ workers }: Analysis): Section[] {
  if (workers.length === 0) return []
  const time = ({ time_ns, share }: WorkerPart) =>
    some(time_ns, (ns) => `${duration(ns)}${known(share, (share) => ` ${percent(share)}`)}`)
  const rows = workers.map((worker) => ({ ...worker, parts: partsOfWorker(worker) }))
  const table = tableOf(rows, { max: WORKERS }, [
    text('workers', ({ worker }) => `worker ${worker}`),
    ...rows[0]!.parts.map(({ what }, i) => number<(typeof rows)[number]>(what, ({ parts }) => time(parts[i]!))),
  ])
  return [{ title: '', tables: [table] }]
}
