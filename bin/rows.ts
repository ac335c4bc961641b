import { type DatasetCell, type DatasetRows, type DatasetStream, UsageError, visibleJson } from '../lib/cli.ts'
import { io } from './io.ts'
import { flag, seldom } from './options.ts'
import { inCell, sendLines } from './terminal.ts'
import { plural } from './units.ts'

/** The formats of a query's result. */
export const ROW_FORMATS = ['table', 'csv', 'json'] as const

/** One of {@link ROW_FORMATS}. */
export type RowFormat = (typeof ROW_FORMATS)[number]

/** How rows are printed. */
export interface RowOptions {
  readonly format: RowFormat
  /** In CSV, texts exactly as they are. */
  readonly csvExact?: boolean | undefined
}

/** The option of all commands that print CSV: it is the same text for all, which a spreadsheet may open, or which is exact. */
export const CSV_EXACT = {
  'csv-exact': seldom(
    flag(
      'In CSV, texts exactly as they are, for programs. Without it, characters that are not visible are escapes, and texts that a spreadsheet ' +
        "would take for formulas (= + - @) have a ' before them",
    ),
  ),
} as const

/** Throws UsageError for the option where no CSV is printed; `expected` is what prints it. */
export function refuseExact(csvExact: boolean | undefined, isCsv: boolean, expected: string): void {
  if (csvExact && !isCsv) throw new UsageError(`--csv-exact: expected ${expected}, too`)
}

/** Prints a query's result. */
export const printRows = (result: DatasetRows | DatasetStream, options: RowOptions): Promise<void> =>
  sendLines(formatRows(result, options))

/**
 * A query's result as lines of text. Integers are exact in every format; in `csv` and `json` all numbers are. The rows of a stream are all
 * read before the first line for `table` only, whose columns are as wide as their longest text.
 */
async function* formatRows(result: DatasetRows | DatasetStream, options: RowOptions): AsyncGenerator<string> {
  const { format } = options
  const { columns } = result
  const parts = 'rows' in result ? [result.rows] : result.parts
  if (format === 'table') return yield* tableLines('rows' in result ? result : { columns, rows: await held(parts) })
  if (format === 'csv') return yield* csvLines(columns, parts, textOf(options))
  for await (const line of jsonLines(columns, parts)) yield visibleJson(line)
}

type Rows = DatasetRows['rows']
type Parts = AsyncIterable<Rows> | Iterable<Rows>

async function held(parts: Parts): Promise<Rows> {
  const rows: Rows[number][] = []
  for await (const part of parts) for (const row of part) rows.push(row)
  return rows
}

/** A table for display: numbers aligned right, floats to nine digits. */
function* tableLines({ columns, rows }: DatasetRows): Generator<string> {
  if (columns.length === 0) return yield 'no result: the last statement gives no rows'
  const texts = rows.map((row) => row.map(tableCell))
  const widths = columns.map((column, i) =>
    texts.reduce((width, row) => Math.max(width, lengthOf(row[i]!)), lengthOf(inCell(column))),
  )
  const isNumeric = columns.map(
    (_, i) => rows.some((row) => isNumber(row[i]!)) && rows.every((row) => row[i] === null || isNumber(row[i]!)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => pad(cell, widths[i]!, isNumeric[i]!))
      .join('  ')
      .trimEnd()
  yield line(columns.map(inCell))
  yield widths.map((width) => '─'.repeat(width)).join('  ')
  for (const row of texts) yield line(row)
  yield `(${plural(rows.length, 'row')})`
}

function pad(text: string, width: number, toTheRight: boolean): string {
  const blanks = ' '.repeat(width - lengthOf(text))
  return toTheRight ? blanks + text : text + blanks
}

const lengthOf = (text: string) => [...text].length

const isNumber = (cell: DatasetCell) => typeof cell === 'number' || typeof cell === 'bigint'

function tableCell(cell: DatasetCell): string {
  if (cell === null) return 'NULL'
  if (typeof cell === 'number' && !Number.isInteger(cell)) return String(Number(cell.toPrecision(9)))
  return inCell(cell instanceof Uint8Array ? `x'${hex(cell)}'` : String(cell))
}

/** RFC 4180. NULL is an empty field, an empty text is `""`. */
async function* csvLines(columns: readonly string[], parts: Parts, textOf: TextOf): AsyncGenerator<string> {
  if (columns.length === 0) return
  const line = (cells: readonly DatasetCell[]) => cells.map((cell) => csvCell(cell, textOf)).join(',')
  yield line(columns)
  for await (const part of parts) for (const row of part) yield line(row)
}

/** How a text is written into a field. */
type TextOf = (text: string) => string

/** What begins a formula in spreadsheets, also in the full width of East Asian characters, after blanks that they skip. */
const FORMULA = /^\s*[=+\-@＝＋－＠]/
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** A text that a spreadsheet may open: a row is a line, and nothing in it is hidden or computed. */
function safeText(text: string): string {
  const shown = inCell(text)
  return FORMULA.test(shown) && !NUMBER.test(shown) ? `'${shown}` : shown
}

function textOf({ csvExact }: RowOptions): TextOf {
  if (!csvExact) return safeText
  return io().stdout.isTTY ? inCell : (text) => text
}

function csvCell(cell: DatasetCell, textOf: TextOf): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return cell instanceof Uint8Array ? hex(cell) : String(cell)
  const text = textOf(cell)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** An array of objects, one per line. Integers beyond 2^53 are plain digits, BLOBs texts of hexadecimal digits. */
async function* jsonLines(columns: readonly string[], parts: Parts): AsyncGenerator<string> {
  const keys = distinct(columns).map((column) => JSON.stringify(column))
  let before = '' // the last line has no comma
  for await (const part of parts)
    for (const row of part) {
      if (before !== '') yield `${before},`
      const fields = row.map((cell, column) => `${keys[column]}: ${jsonCell(cell)}`).join(', ')
      before = `${before === '' ? '[' : ' '}{${fields}}`
    }
  yield before === '' ? '[]' : `${before}]`
}

function jsonCell(cell: DatasetCell): string {
  if (cell === null) return 'null'
  if (typeof cell === 'bigint') return String(cell)
  // JSON has no infinity; but a number too large for a double is read as one.
  if (typeof cell === 'number') return Number.isFinite(cell) ? String(cell) : `${cell < 0 ? '-' : ''}1e999`
  return JSON.stringify(cell instanceof Uint8Array ? hex(cell) : cell)
}

/** Numbers columns of the same name: as keys of one object they would overwrite each other. */
function distinct(columns: readonly string[]): string[] {
  const taken = new Set<string>()
  return columns.map((column) => {
    let key = column
    for (let n = 2; taken.has(key); n++) key = `${column}_${n}`
    taken.add(key)
    return key
  })
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
