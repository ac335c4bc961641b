/**
 * Writes the tables of a dataset into docs/reference/dataset.md, from lib/tables. With --check, writes nothing and exits 1 if the document is
 * stale.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { TABLES } from 'ggml2perfetto/tables'
import { put } from './generated.mjs'

const path = fileURLToPath(new URL('../docs/reference/dataset.md', import.meta.url))
const [begin, end] = [
  '<!-- Made by scripts/tables-docs.mjs from lib/tables. -->\n',
  '<!-- The end of what it makes. -->\n',
]

const lines = []
for (const [name, { about, sortedBy, columns }] of Object.entries(TABLES)) {
  const order = sortedBy.length > 0 ? ` Sorted by ${sortedBy.map((column) => `\`${column}\``).join(', ')}.` : ''
  lines.push(`### ${name}\n`, `${about}${order}\n`, '| column | type | |', '|---|---|---|')
  for (const [column, { type, nullable, about }] of Object.entries(columns))
    lines.push(`| \`${column}\` | ${type}${nullable ? '?' : ''} | ${about} |`)
  lines.push('')
}

const text = readFileSync(path, 'utf8')
const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
const made = `${text.slice(0, from)}\n${lines.join('\n')}\n${text.slice(to)}`
put(path, made, 'tables-docs')
