import type { Position } from '../../errors.ts'
import { CsvRow } from '../../input/csv-row.ts'
import type { Row, Tests } from './rows.ts'

/** A kind of lines that contain rows. */
type Form = 'csv' | 'sql' | 'md'

const CSV_HEAD = /^build_commit,(?:\w+,)+\w+\r?$/
const SQL_ROW = /^INSERT INTO (?:llama_bench|test) \((build_commit, [\w, ]+)\) VALUES \('(.*)'\);\r?$/
const SQL_HEAD = /^CREATE TABLE IF NOT EXISTS (?:llama_bench|test) \(/
/** The columns of a table, in this order. */
const MD_HEAD = [/^\| *model +\|/, /\| *test +\|/, /\| *t\/s +\|\r?$/]
const MD_RULE = /^\|(?: *:?-+:? *\|)+\r?$/
/** Rows of a table that wait at most. */
const WAITING_MAX = 4096
const BUILD = /^build: (\w+) \((\d+)\)\r?$/

/** Signs of a quotation in Markdown, or blanks before a table. */
const QUOTE = /^(?:[ \t]{0,8}>){1,8}[ \t]{0,8}|^[ \t]{1,8}(?=\|)/

/** A line as it was before it was quoted. */
const unquoted = (line: string) => {
  const quote = QUOTE.exec(line)
  return quote ? line.slice(quote[0].length).trimEnd() : line
}

/** The form of rows whose first line, or whose header, this is; undefined: neither. */
export function formOf(quoted: string): Form | undefined {
  const line = unquoted(quoted)
  if (MD_HEAD.every((column) => column.test(line))) return 'md'
  if (CSV_HEAD.test(line)) return 'csv'
  return SQL_HEAD.test(line) || SQL_ROW.test(line) ? 'sql' : undefined
}

/** Reads rows from lines. Tables of different forms may follow one another, with other lines between them. */
export class TextRows {
  private form: Form | undefined
  private columns: readonly string[] = []
  private readonly csv = new CsvRow()
  /** Within the definition of the table. */
  private isInDefinition = false
  /** Rows of a Markdown table, which wait for the build below it. */
  private readonly waiting: { readonly row: Row; readonly at: Position }[] = []

  constructor(private readonly tests: Tests) {}

  line(quoted: string, at: Position, isTorn: boolean): void {
    const text = unquoted(quoted)
    if (text.trim() === '') return
    if (this.isInDefinition) {
      this.isInDefinition = !/^\);/.test(text)
      return
    }
    const begun = formOf(text)
    if (begun) {
      this.passOn()
      this.begin(begun, text)
    }
    if (begun && begun !== 'sql') return
    if (SQL_HEAD.test(text)) {
      this.isInDefinition = true
      return
    }
    const build = BUILD.exec(text)
    if (build) return this.passOn({ build_commit: build[1], build_number: build[2] })
    if (this.form === 'md' && MD_RULE.test(text)) return
    const cells = this.cellsOf(text)
    if (!cells) this.tests.otherLines++
    else if (cells.length === this.columns.length) this.add(this.rowOf(cells), at)
    else {
      const found = `expected ${this.columns.length} columns, found ${cells.length}`
      this.tests.issue(isTorn ? 'torn-record' : 'unreadable-row', found, at)
    }
  }

  /** Passes on the rows that wait, all of the same build. */
  passOn(build: Row = {}): void {
    for (const { row, at } of this.waiting.splice(0)) this.tests.add({ ...row, ...build }, at)
  }

  private add(row: Row, at: Position): void {
    if (this.form !== 'md') return this.tests.add(row, at)
    this.waiting.push({ row, at })
    if (this.waiting.length >= WAITING_MAX) this.passOn()
  }

  private begin(form: Form, text: string): void {
    this.form = form
    if (form === 'csv') this.columns = text.trim().split(',')
    if (form === 'md') this.columns = cellsOfTable(text)
  }

  /** Undefined: the line is no row. */
  private cellsOf(text: string): readonly string[] | undefined {
    if (this.form === 'md') return text.startsWith('|') ? cellsOfTable(text) : undefined
    if (this.form === 'csv') {
      if (!text.startsWith('"')) return undefined
      const bytes = encoder.encode(text)
      this.csv.split(bytes, 0, bytes.length)
      return Array.from({ length: this.csv.count }, (_, i) => this.csv.text(i))
    }
    const row = SQL_ROW.exec(text)
    if (!row) return text.startsWith('INSERT INTO') ? [] : undefined
    this.columns = row[1]!.split(', ')
    return row[2]!.split("', '")
  }

  private rowOf(cells: readonly string[]): Row {
    return Object.fromEntries(this.columns.map((column, i) => [column, cells[i]]))
  }
}

const encoder = new TextEncoder()

/** `| a | b |` */
function cellsOfTable(text: string): string[] {
  return text
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim())
}
