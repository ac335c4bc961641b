import { count, plural } from '../model/units.ts'
import { type Html, html } from './html.ts'

/** Rows of a table behind a figure. */
const ROWS_MAX = 200

/** The data of a figure. Numbers of rows are counts. */
export interface Table {
  readonly columns: readonly { readonly title: string; readonly isText?: boolean }[]
  readonly rows: readonly (readonly (string | number)[])[]
}

/** A figure: a drawing, what it shows, its data, and how to get these. */
export interface Figure {
  readonly title: string
  /** How to read it. */
  readonly about: string
  readonly legend?: Html | undefined
  readonly chart: Html
  readonly table: Table
  /** Commands, or SQL on the converted trace, that give the data. */
  readonly source: string
}

/** A part of the page. */
export interface Section {
  /** Of its heading, for links. */
  readonly id: string
  readonly title: string
  readonly content: readonly Html[]
}

/** Columns by their titles; those with a leading `<` are texts. */
export const columns = (...titles: readonly string[]): Table['columns'] =>
  titles.map((title) => (title.startsWith('<') ? { title: title.slice(1), isText: true } : { title }))

/** A table of the cells of each row, by the titles of their columns; see {@link columns}. */
export const tableOf = <Row>(
  rows: readonly Row[],
  cells: Readonly<Record<string, (row: Row) => string | number>>,
): Table => ({
  columns: columns(...Object.keys(cells)),
  rows: rows.map((row) => Object.values(cells).map((cell) => cell(row))),
})

/** A table with its caption; rows beyond a maximum are counted. */
export function tableHtml({ columns, rows }: Table, caption: string, rowsMax = ROWS_MAX): Html {
  const kind = (i: number) => (columns[i]?.isText ? 'text' : 'number')
  const cell = (value: string | number, i: number) => {
    const text = typeof value === 'number' ? count(value) : value
    return i === 0 && text !== ''
      ? html`<th scope="row" class="${kind(i)}">${text}</th>`
      : html`<td class="${kind(i)}">${text}</td>`
  }
  const more =
    rows.length > rowsMax
      ? html`<p class="note">The first ${rowsMax} of ${plural(rows.length, 'row')}; the command gives all.</p>`
      : undefined
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption>${caption}</caption>
<thead><tr>${columns.map(({ title }, i) => html`<th scope="col" class="${kind(i)}">${title}</th>`)}</tr></thead>
<tbody>${rows.slice(0, rowsMax).map((row) => html`<tr>${row.map(cell)}</tr>\n`)}</tbody></table></div>${more}`
}

/** The command that prints the data. */
export const sourceHtml = (source: string): Html => html`<p class="source">Source: <code>${source}</code></p>`

/** A figure with its data behind it. */
export function figureHtml({ title, about, legend, chart, table, source }: Figure): Html {
  return html`<figure><figcaption><h3>${title}</h3><p>${about}</p></figcaption>
${legend}${chart}
<details><summary>Data of “${title}”</summary>${tableHtml(table, title)}</details>
${sourceHtml(source)}</figure>
`
}
