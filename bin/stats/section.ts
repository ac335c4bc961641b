import { aligned, oneLine, table } from '../terminal.ts'
import { count, duration, percent } from '../units.ts'

/** A part of the statistics: facts, tables, sentences. */
export interface Section {
  readonly title: string
  readonly facts?: readonly (readonly [string, string])[]
  readonly tables?: readonly StatsTable[]
  readonly lines?: readonly string[]
}

/** A table; columns without any text are not shown. */
export interface StatsTable {
  readonly title?: string
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly string[])[]
}

/** A column. */
export interface Column {
  readonly title: string
  /** Texts are aligned to the left, numbers to the right. */
  readonly isText?: boolean
  /** Columns with a higher number are left out first where the terminal is narrow; 0 is never. */
  readonly rank?: number
  /** It draws what other columns contain: not listed where it is left out. */
  readonly isDrawing?: boolean
}

/**
 * Sections as lines of text. Columns are left out where a table would be wider than `width` characters; the last line lists them, and
 * `where` they are.
 */
export function toText(sections: readonly Section[], width: number, where = '--csv and --json contain'): string[] {
  const left = new Set<string>()
  const lines = sections.flatMap(({ title, facts = [], tables = [], lines = [] }, i) => [
    ...(i > 0 ? [''] : []),
    title,
    ...aligned(facts),
    ...tables.flatMap((table) => [
      ...(table.title === undefined ? [] : [`  ${table.title}`]),
      ...textTable(table, width, left),
    ]),
    ...lines.map((line) => `  ${line}`),
  ])
  if (left.size === 0) return lines
  return [...lines, '', `columns left out at a width of ${width} characters: ${[...left].join(', ')} (${where} them)`]
}

function textTable(statsTable: StatsTable, width: number, left: Set<string>): string[] {
  let shown = withoutEmpty(statsTable)
  for (;;) {
    const { columns, rows } = shown
    const texts = columns.flatMap(({ isText }, i) => (isText ? [i] : []))
    const lines = table([columns.map(({ title }) => title), ...rows], texts)
    const last = Math.max(...columns.map(rankOf))
    if (last === 0 || lines.every((line) => line.length <= width)) return lines
    const at = columns.findLastIndex((column) => rankOf(column) === last)
    if (!columns[at]!.isDrawing) left.add(columns[at]!.title)
    shown = columnsOf(shown, (i) => i !== at)
  }
}

const rankOf = ({ rank = 0 }: Column) => rank

function columnsOf({ columns, rows, ...rest }: StatsTable, isShown: (index: number) => boolean): StatsTable {
  const shown = <T>(cells: readonly T[]) => cells.filter((_, i) => isShown(i))
  return { ...rest, columns: shown(columns), rows: rows.map(shown) }
}

function withoutEmpty(table: StatsTable): StatsTable {
  return columnsOf(table, (i) => table.rows.some((row) => row[i] !== ''))
}

/** Columns of a higher rank are not in Markdown. */
const MARKDOWN_RANK_MAX = 5

/** Lines of Markdown that are shown at once. */
const MARKDOWN_LINES = 20
/** Of these, those around what is folded. */
const FOLD_LINES = 4

/** Sections as Markdown, for an issue on GitHub: the first ones, as many as fit 20 lines; the others are folded. */
export function toMarkdown(sections: readonly Section[]): string[] {
  const blocks = sections.map(markdownSection)
  let [shown, lines] = [0, 0]
  for (; shown < blocks.length; shown++) {
    const isLast = shown === blocks.length - 1
    lines += blocks[shown]!.length + (shown > 0 ? 1 : 0)
    if (shown > 0 && lines > MARKDOWN_LINES - (isLast ? 0 : FOLD_LINES)) break
  }
  const joined = (some: readonly string[][]) => some.flatMap((block, i) => [...(i > 0 ? [''] : []), ...block])
  const folded = blocks.slice(shown)
  if (folded.length === 0) return joined(blocks)
  const summary = '<details><summary>All figures</summary>'
  return [...joined(blocks.slice(0, shown)), '', summary, '', ...joined(folded), '', '</details>']
}

function markdownSection({ title, facts = [], tables = [], lines = [] }: Section): string[] {
  return [
    `**${inMarkdown(title)}**`,
    ...(facts.length > 0 ? ['', ...facts.map(([key, value]) => `- ${inMarkdown(key)}: ${inMarkdown(value)}`)] : []),
    ...tables.flatMap((table) => [
      '',
      ...(table.title === undefined ? [] : [inMarkdown(table.title), '']),
      ...markdownTable(table),
    ]),
    ...(lines.length > 0 ? ['', ...lines.map((line) => `- ${inMarkdown(line)}`)] : []),
  ]
}

function markdownTable(table: StatsTable): string[] {
  const { columns, rows } = withoutEmpty(columnsOf(table, (i) => rankOf(table.columns[i]!) <= MARKDOWN_RANK_MAX))
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    line(columns.map(({ title }) => inMarkdown(title))),
    line(columns.map(({ isText }) => (isText ? '---' : '---:'))),
    ...rows.map((row) => line(row.map(inMarkdown))),
  ]
}

/** A text in Markdown. Names in logs may contain anything: nothing of it is markup, a character by its number, a link or a mention. */
export function inMarkdown(text: string): string {
  return text
    .replace(/[\r\n]+/g, ' ')
    .replace(/[\\`*|[\]<>&]/g, '\\$&')
    .replace(/@(?=\w)/g, '@&#8203;')
}

/** Lines of text within a block of code, which none of them ends. */
export const fenced = (lines: readonly string[]): string[] => [
  '```',
  ...lines.map((line) => oneLine(line).replaceAll('```', "'''")),
  '```',
]

/** A column, with the text of its cells. */
export interface CellsOf<Row> extends Column {
  readonly cell: (row: Row, i: number) => string
}

/** A column of texts. */
export const text = <Row>(title: string, cell: CellsOf<Row>['cell'], rank = 0): CellsOf<Row> => {
  return { title, isText: true, rank, cell }
}

/** A column of numbers. */
export const number = <Row>(title: string, cell: CellsOf<Row>['cell'], rank = 0): CellsOf<Row> => ({
  title,
  rank,
  cell,
})

/** What is shown of rows. `further`: rows that are not among them. `rest`: the first cells of the row that counts the others. */
interface Rest<Row> {
  readonly max?: number
  readonly further?: number
  readonly rest?: (rest: readonly Row[]) => readonly string[]
  /** Shown behind all others. */
  readonly sum?: Row
}

/** A table with a row for each of these, and one that counts those that are not shown. */
export function tableOf<Row>(all: readonly Row[], what: Rest<Row>, columns: readonly CellsOf<Row>[]): StatsTable {
  const { max = Infinity, further = 0, rest: restOf = (rest) => [`${count(rest.length + further)} more`], sum } = what
  const { shown, rest } = firstRows(all, max)
  const cellsOf = (row: Row, i: number) => columns.map(({ cell }) => cell(row, i))
  const left = rest.length + further > 0 ? restOf(rest) : []
  const rows = [...shown.map(cellsOf), ...(left.length > 0 ? [columns.map((_, i) => left[i] ?? '')] : [])]
  return { columns, rows: sum === undefined ? rows : [...rows, cellsOf(sum, rows.length)] }
}

/** The text of a value that is known. */
export const known = <T>(value: T | null | undefined, textOf: (value: T) => string) =>
  value === null || value === undefined ? '' : textOf(value)

/** The share of a whole, if that is not 0. */
export const shareOf = (part: number, whole: number) => (whole > 0 ? percent(part / whole) : '')

/** The text of a value that is neither unknown nor 0. */
export const some = (value: number | null | undefined, textOf: (value: number) => string = duration) =>
  value ? textOf(value) : ''

/** The first rows, and one that counts the others; `rest` makes it. */
export function firstRows<T>(all: readonly T[], max: number): { shown: readonly T[]; rest: readonly T[] } {
  // One row is not replaced by a row that counts it.
  return all.length <= max + 1 ? { shown: all, rest: [] } : { shown: all.slice(0, max), rest: all.slice(max) }
}

/** `31 more`. */
export const more = (rest: readonly unknown[]) => `${count(rest.length)} more`
