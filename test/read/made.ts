import { parquetReadObjects } from 'hyparquet'
import { comparisonSections } from '../../bin/compare/sections.ts'
import { dagSections } from '../../bin/dag/table.ts'
import { describeFinding } from '../../bin/findings.ts'
import { briefLines } from '../../bin/stats/brief.ts'
import { toMarkdown, toText } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { describeLogs } from '../../bin/summary.ts'
import { type Comparison, dagOf, draw, lookedAt, toDot, whyRequest } from '../../lib/analysis.ts'
import { type Analysis, type AnalyzeOptions, analyze, type Input, type Summary } from '../../lib/index.ts'
import { reportHtml } from '../../lib/report.ts'
import { type TableName, tablesOf } from '../../lib/tables.ts'
import { drawn } from '../printing-sink.ts'

/** All that ggml2perfetto makes of an input, and what must not be in it. */

const SHOWN = {
  by: ['role', 'op', 'phase'],
  top: 20,
  sort: 'wall',
  calls: true,
  experts: true,
  isPublic: false,
} as const

/** All series of an Analysis. */
export const SERIES = ['calls', 'requests', 'memory', 'offsets', 'graph'] as const satisfies AnalyzeOptions['series']

/** What is made of an input; undefined where it is refused with a message. */
export interface Made {
  readonly analysis: Analysis
  /** What people read of the Analysis. */
  readonly texts: readonly string[]
  /** What is drawn, with arguments. */
  readonly draws: readonly string[]
  /** Tables of the run and its summaries; undefined where it has none. */
  readonly tables: TablesMade | undefined
}

/** The rows of a run's tables. */
export interface TablesMade {
  readonly rows: ReadonlyMap<TableName, readonly Readonly<Record<string, unknown>>[]>
  readonly summaries: readonly Summary[]
}

/** All that is made of an input that can be read several times. Other errors than those with a message are thrown. */
export async function madeOf(of: Uint8Array | Input): Promise<Made | undefined> {
  const input = of instanceof Uint8Array ? { name: 'log', source: of } : of
  try {
    const analysis = await analyze(input, { series: SERIES })
    const draws = await drawn(input, { detail: 'full' }, { args: 'all' }).catch(withMessage)
    const tables = await tablesMade([input]).catch(withMessage)
    return { analysis, texts: textsOf(analysis), draws: draws ?? [], tables }
  } catch (error) {
    return withMessage(error)
  }
}

/** Undefined for an error with a message for people. */
function withMessage(error: unknown): undefined {
  if (!(error instanceof Error && /^(?:FormatError|UsageError)$/.test(error.name))) throw error
}

/** What the commands print of an Analysis: stats, stats --full, stats --markdown, why, why of each request, dag, report. */
export function textsOf(analysis: Analysis): string[] {
  const sections = sectionsOf(analysis, SHOWN)
  return [
    ...briefLines(analysis, 80),
    ...toText(sections, 200),
    ...toMarkdown(sections),
    ...analysis.findings.flatMap((finding, i) => describeFinding(finding, i + 1, 'query')),
    ...lookedAt(analysis).flatMap(({ figures }) => figures.map(({ figure }) => figure)),
    ...(analysis.series?.requests?.rows ?? []).flatMap(({ id }) =>
      whyRequest(analysis, { request: id })!.reasons.map(({ sentence }) => sentence),
    ),
    ...dagTexts(analysis),
    ...pageTexts(reportHtml(analysis)),
  ]
}

function dagTexts({ series }: Analysis): string[] {
  const dag = series?.graph && dagOf(series.graph, {})
  if (!dag || dag.nodes.length === 0) return []
  const table = dagSections(dag, { colorBy: 'time', values: undefined, top: undefined, views: true })
  return [...toText(table, 200), ...toDot(draw(dag, { name: 'log' })).split('\n')]
}

/** What the commands print of a comparison: compare, its report. */
export const textsOfComparison = (comparison: Comparison): string[] => [
  ...toText(comparisonSections(comparison, undefined), 200),
  ...pageTexts(reportHtml(comparison)),
]

/** The texts of a page and the places and sizes in its drawings. */
export function pageTexts(page: string): string[] {
  const places = page.matchAll(/ (?:[xy][12]?|c[xy]|d|r|width|height|transform|points|style)="([^"]*)"/g)
  const texts = page.replace(/<(style|script)[\s\S]*?<\/\1>/g, '').replace(/<[^>]*>/g, '\n')
  return [...texts.split('\n'), ...[...places].map(([, place]) => place!.replace(/[,()]/g, ' '))]
}

const UNCOMPRESSED = { codec: 'none', compress: (bytes: Uint8Array) => bytes } as const

/** The tables of a run, by an independent reader of Parquet. */
export async function tablesMade(inputs: readonly Input[], options: AnalyzeOptions = {}): Promise<TablesMade> {
  const { clocks, from, strict } = options
  const made = { traceId: '0'.repeat(32), compression: UNCOMPRESSED, clocks, from, strict }
  const pieces = tablesOf(inputs, made, { name: 'test', version: '1' })
  const files = new Map<TableName, Uint8Array[]>()
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next())
    files.set(next.value.table, [...(files.get(next.value.table) ?? []), next.value.bytes])
  const rows = new Map<TableName, Record<string, unknown>[]>()
  for (const [table, parts] of files) {
    const file = new Uint8Array(Buffer.concat(parts)).buffer
    rows.set(table, await parquetReadObjects({ file }))
  }
  return { rows, summaries: next.value.summaries }
}

/** Not the value of anything: a number that is none, or a name that is missing. */
const NOTHING = /(?<![\w/.'"-])-?(?:NaN|Infinity|undefined|\[object Object\]|function \w*\(\) \{)(?![\w'"]|-id)/
const ROW = /^(.*?) \| -?\d+(?:–-?\d+)? ?(.*)$/s

/** Paths of numbers that are none in a value; `path`: where it is. */
export function noNumbersIn(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [] : [`${path}: ${value}`]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, of]) => noNumbersIn(of, `${path}.${key}`))
}

/** The same, and paths of texts that name nothing and of empty names. */
export function faultsIn(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return noNumbersIn(value, path)
  if (typeof value === 'string') return NOTHING.test(value) ? [`${path}: ${value}`] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, of]) => [
    // An issue states what it found.
    ...(/\.issues\.\d+\.first$/.test(path) && key === 'detail' ? [] : faultsIn(of, `${path}.${key}`)),
    ...(key === '' ? [`${path}.(empty key)`] : []),
  ])
}

/** The texts in a trace as JSON. An issue states what it found. */
export function textsOfTrace(value: unknown, key = ''): string[] {
  if (typeof value === 'string') return key === 'detail' ? [] : [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, of]) => textsOfTrace(of, name))
}

/** Texts that contain what is nothing. */
export const faultsOfTexts = (texts: readonly string[]): string[] => texts.filter((line) => NOTHING.test(line))

/** What a conversion prints of a run, without its issues. */
export const textsOfTables = ({ summaries }: TablesMade): string[] =>
  describeLogs(
    summaries.map((_, i) => `log ${i}`),
    summaries,
  ).filter((line) => !/^ *!/.test(line))

/** What must not be in tables and summaries. */
export const faultsOfTables = (made: TablesMade): string[] => [
  ...faultsIn([...made.rows].map(([table, of]) => ({ [table]: of }))),
  ...faultsIn(made.summaries, 'summary'),
  ...faultsOfTexts(textsOfTables(made)),
]

/** What must not be in the results; none is right. */
export function faultsOf({ analysis, texts, draws, tables }: Made): string[] {
  const found = [...faultsOfTexts(texts), ...faultsIn(analysis), ...(tables ? faultsOfTables(tables) : [])]
  for (const line of draws) {
    const [, row = '', text = ''] = ROW.exec(line) ?? []
    const isIssue = row.startsWith('Issues')
    if (ROW.test(line) && !isIssue && (row === '' || /^\/|\/\/|\/$/.test(row) || text === '' || /^\{\w/.test(text)))
      found.push(`a name is empty: ${line}`)
    if (!isIssue && NOTHING.test(line)) found.push(line)
  }
  return found
}
