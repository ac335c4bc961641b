import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Analysis,
  closest,
  type ExpertCacheSize,
  GROUP_KEYS,
  type GroupKey,
  type ScalingFigures,
  type SeriesName,
  UsageError,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { io } from '../io.ts'
import { bytes, CLOCKS, flag, inputsOf, once, oneOf, READING, seldom, valued, whole } from '../options.ts'
import { CSV_EXACT, printRows, refuseExact } from '../rows.ts'
import { briefLines } from '../stats/brief.ts'
import { FIGURES } from '../stats/columns.ts'
import { printContents } from '../stats/contents.ts'
import { csvOf } from '../stats/csv.ts'
import { analysisOf } from '../stats/inputs.ts'
import { MACHINE, machineOf } from '../stats/machine.ts'
import { leadersOf } from '../stats/operators.ts'
import { type RequestKey, requestCsv, requestTable } from '../stats/requests.ts'
import { runsOf, scalingOf, scalingSections } from '../stats/scaling.ts'
import { toMarkdown, toText } from '../stats/section.ts'
import { headOf, otherCsv, sectionsOf } from '../stats/sections.ts'
import { print, printJson } from '../terminal.ts'

/** Rows of a table of operators, for people; in Markdown, which is read next to other texts. */
const TOP = 20
const TOP_MARKDOWN = 10
/** Characters of a line where the output is no terminal. */
const WIDTH = 120
/** The most characters of a line of a first look. */
const BRIEF_WIDTH = 80

const FORMATS = ['json', 'csv', 'markdown'] as const
const SERIES = ['calls', 'requests', 'offsets', 'memory', 'graph', 'steps'] as const satisfies readonly SeriesName[]
/** What a table may be of, instead of operators. */
const REQUEST_KEYS = ['request', 'slot'] as const satisfies readonly RequestKey[]
const SORTS = FIGURES.map(({ key }) => key)

const OPTIONS = {
  by: valued(
    tableKeys,
    `Operators by one or more of: ${GROUP_KEYS.join(', ')}; or a table of requests: ${REQUEST_KEYS.join(' | ')}`,
    'role,op of each phase',
  ),
  top: valued(whole('--top'), 'Rows of each table', `${TOP}; ${TOP_MARKDOWN} in Markdown; all in CSV`),
  sort: seldom(valued(oneOf('--sort', SORTS), `Order of operators, the most first: ${SORTS.join(' | ')}`, 'wall')),
  full: flag('All sections, with more rows; without it, a first look in 25 lines'),
  contents: flag('In place of statistics, what is in the logs: format, clock, calls, issues'),
  calls: flag('Also a table of calls'),
  experts: seldom(flag('Also tables of experts: each layer in each phase, and the most used experts')),
  'expert-cache': seldom(
    valued(
      expertCaches,
      'Sizes of simulated caches of experts, separated by commas: bytes of all layers (8GB), experts a layer (16), or a share (25%)',
      '12.5%,25%,50%,75%',
    ),
  ),
  series: seldom(valued(seriesNames, `With --json, also figures over time: some of ${SERIES.join(', ')}`)),
  call: seldom(valued(whole('--call', 0), 'The call that the series graph and memory show', 'a decode call')),
  json: flag('Print the Analysis as JSON (docs/reference/analysis.md)'),
  csv: flag(
    'Print the operators as CSV, with all figures; of a log of GPU work or of a BLAS library, its kernels or calls',
  ),
  ...CSV_EXACT,
  markdown: flag('Print Markdown for an issue, without the name of the host'),
  ...MACHINE,
  ...CLOCKS,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** `ggml2perfetto stats <logs…>` */
export const statsCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.stats,
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          'Logs of one run, and its model (GGUF or config.json), or an Analysis that --json wrote; - for stdin. Several runs are compared by numbers of threads',
        ),
      )
      .options(OPTIONS)
      .example('$0 stats model.gguf', 'a model: its weights, and what a token costs')
      .example('$0 stats run.ggtrace --by layer,role --top 10', 'which layers are slow')
      .example('$0 stats server.ggtrace --by request', 'where the time of each answer went')
      .example('$0 stats run.ggtrace --json > run.json', 'for scripts; again: ggml2perfetto stats run.json')
      .example('$0 stats t1.ggtrace t2.ggtrace t4.ggtrace', 'runs with 1, 2 and 4 threads: where more stop paying'),
  handler,
}

/** For yargs' `coerce`: keys of operators, separated by commas, or one of requests. */
function tableKeys(value: string): GroupKey[] | RequestKey {
  const keys = listOf('--by', 'key', [...GROUP_KEYS, ...REQUEST_KEYS], value)
  const key = REQUEST_KEYS.find((key) => keys.includes(key))
  if (key === undefined) return keys as GroupKey[]
  if (keys.length > 1) throw new UsageError(`--by "${value}": ${key} is a table of requests; expected it alone`)
  return key
}

/** The same for names of series. */
function seriesNames(value: string): SeriesName[] {
  return listOf('--series', 'series', SERIES, value)
}

/** Words of a list, separated by commas. */
function listOf<T extends string>(option: string, noun: string, words: readonly T[], value: string): T[] {
  const found = once(option)(value)
    .split(',')
    .map((word) => word.trim())
  for (const word of found) {
    if (words.some((known) => known === word)) continue
    const meant = closest(word, words)
    const hint = meant === undefined ? '' : `\nhint: did you mean ${meant}?`
    throw new UsageError(
      `${option} "${value}": no ${noun} is called "${word}"; expected some of ${words.join(',')}${hint}`,
    )
  }
  return [...new Set(found)] as T[]
}

/** For yargs' `coerce`: sizes of caches. */
function expertCaches(value: string): ExpertCacheSize[] {
  return once('--expert-cache')(value)
    .split(',')
    .map((word): ExpertCacheSize => {
      const text = word.trim()
      const [, share] = /^(\d{1,3}(?:\.\d+)?) ?%$/.exec(text) ?? []
      if (share !== undefined && Number(share) > 0 && Number(share) <= 100) return { share: Number(share) / 100 }
      if (/^[1-9]\d{0,5}$/.test(text)) return { experts: Number(text) }
      if (/[a-z]$/i.test(text)) return { bytes: bytes('--expert-cache')(text), text }
      throw new UsageError(`--expert-cache "${value}": expected sizes such as 8GB, 16 (experts a layer) or 25%`)
    })
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  refuseCombinations(args)
  if (args.contents) return printContents(args)
  const runs = await runsOf(args)
  if (runs.length > 1) return printScaling(await scalingOf(runs, args), args)
  const series = seriesOf(args)
  const { call, expertCache: expertCaches } = args
  const analysis = await analysisOf(args, { series, call, expertCaches, ...(await machineOf(args)) })
  refuseMissing(analysis, series, args)
  if (args.json) return printJson(JSON.stringify(analysis, null, 2))
  const { csv, markdown, calls, experts, sort = 'wall' } = args
  if (isBrief(args)) return print(briefLines(analysis, Math.min(io().stdout.columns ?? BRIEF_WIDTH, BRIEF_WIDTH)))
  if (typeof args.by === 'string') return printRequests(analysis, args.by, args)
  if (csv) return printCsv(analysis, { by: args.by, top: args.top ?? Infinity, sort }, args)
  const top = args.top ?? (markdown ? TOP_MARKDOWN : TOP)
  const sections = sectionsOf(analysis, {
    by: args.by ?? ['role', 'op', 'phase'],
    top,
    sort,
    calls,
    experts,
    isPublic: markdown,
  })
  const leaders = args.by && leadersOf(analysis, args.by)
  const answered = leaders === undefined ? sections : [{ title: leaders }, ...sections]
  await print(markdown ? toMarkdown(answered) : toText(answered, io().stdout.columns ?? WIDTH))
}

/** Are no details asked for? */
function isBrief(args: ArgumentsCamelCase<Arguments>): boolean {
  const { full, by, top, sort, csv, markdown, calls, experts, expertCache } = args
  const details = [full, by, top, sort, csv, markdown, calls, experts, expertCache]
  return details.every((detail) => detail === undefined || detail === false)
}

/** Figures over time that are asked for, or that a table is of. */
function seriesOf({ series = [], calls, by }: Arguments): SeriesName[] {
  return [
    ...new Set<SeriesName>([
      ...series,
      ...(calls ? (['calls'] as const) : []),
      ...(by === 'request' ? (['requests'] as const) : []),
    ]),
  ]
}

/** A table of requests or slots only. */
function printRequests(
  analysis: Analysis,
  by: RequestKey,
  { csv, csvExact, markdown, top }: ArgumentsCamelCase<Arguments>,
): Promise<void> {
  if (analysis.requests === null) throw new UsageError(`--by ${by}: the log contains no requests`)
  if (csv) return printRows(requestCsv(analysis, by, top ?? Infinity), { format: 'csv', csvExact })
  const sections = [
    headOf(analysis, markdown === true),
    requestTable(analysis, by, top ?? (markdown ? TOP_MARKDOWN : TOP)),
  ]
  return print(markdown ? toMarkdown(sections) : toText(sections, io().stdout.columns ?? WIDTH))
}

function printScaling(figures: ScalingFigures, { json, markdown }: Arguments): Promise<void> {
  if (json) return printJson(JSON.stringify(figures, null, 2))
  const sections = scalingSections(figures)
  return print(markdown ? toMarkdown(sections) : toText(sections, io().stdout.columns ?? WIDTH))
}

/** Operators; of logs without any, what else they contain, unless an order was asked for, which only operators have. */
function printCsv(
  analysis: Analysis,
  grouping: Parameters<typeof csvOf>[1],
  { sort, csvExact }: ArgumentsCamelCase<Arguments>,
): Promise<void> {
  const isOfOther = analysis.operators.rows.length === 0 && grouping.by === undefined && sort === undefined
  const rows = (isOfOther && otherCsv(analysis, grouping.top)) || csvOf(analysis, grouping)
  return printRows(rows, { format: 'csv', csvExact })
}

/** Throws UsageError where the Analysis lacks what was asked for: a stored one may, and a log may not contain the call. */
function refuseMissing({ series = {}, undetermined }: Analysis, names: readonly SeriesName[], args: Arguments): void {
  // A stored Analysis has the slowest requests; a log may have none.
  const missing = names.find(
    (name) => series[name] === undefined && (name !== 'requests' || args.series?.includes(name)),
  )
  if (missing === undefined) return
  const reason = undetermined.find(({ what }) => what === `series.${missing}`)
  if (reason) throw new UsageError(`--series ${missing}: ${reason.why}`)
  const [what, option] =
    missing === 'calls' && args.calls ? ['table of calls', '--calls'] : [`series of ${missing}`, `--series ${missing}`]
  throw new UsageError(
    `${args.inputs[0]}: contains no ${what}\nhint: ggml2perfetto stats <logs> ${option} --json writes an Analysis with one`,
  )
}

/** Throws UsageError for options of which one would have no effect. */
function refuseCombinations(args: ArgumentsCamelCase<Arguments>): void {
  const other = (['by', 'top', 'sort', 'calls', 'experts', 'expert-cache', 'series', 'csv', 'markdown'] as const).find(
    (option) => args[option] !== undefined && args[option] !== false,
  )
  if (args.contents && other !== undefined) throw new UsageError(`--contents: prints no statistics; found --${other}`)
  refuseExact(args.csvExact, args.csv === true, '--csv')
  const formats = FORMATS.filter((format) => args[format])
  if (formats.length > 1) throw new UsageError(`--${formats.join(' and --')}: expected one of them`)
  const given = (['by', 'top', 'sort'] as const).find((option) => args[option] !== undefined)
  if (args.json && given !== undefined)
    throw new UsageError(`--${given} is for tables; --json is the whole Analysis\nhint: --csv is a table`)
  if (args.series && !args.json) throw new UsageError('--series is for --json; --calls prints a table of calls')
  if (args.call !== undefined && !args.series?.some((name) => name === 'graph' || name === 'memory'))
    throw new UsageError('--call is for --series graph and --series memory')
  if (typeof args.by === 'string' && args.sort !== undefined)
    throw new UsageError(`--sort is for operators; --by ${args.by} is in order of starts`)
  if (args.csv && args.calls) throw new UsageError('--csv is a table of operators; --calls is for the other formats')
}
