/**
 * Prints the table of trials and their misses in Markdown, from files of `trial.mjs --json`: of parts of a seed, too.
 *   node scripts/what-if/table.mjs FILES… [--write]
 * --write: puts it into docs/reference/what-if.md, in place of the one there.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { scoreText } from './score.mjs'

const { positionals, values } = parseArgs({ allowPositionals: true, options: { write: { type: 'boolean' } } })
if (positionals.length === 0) throw new Error('expected files of trial.mjs --json')

const linesOf = (file) => readFileSync(file, 'utf8').trim().split('\n')
const trials = positionals.flatMap(linesOf).map((line) => JSON.parse(line))
const text = scoreText(trials.toSorted((a, b) => a.seed - b.seed || a.number - b.number))
if (!values.write) console.log(text)
else {
  const docs = fileURLToPath(new URL('../../docs/reference/what-if.md', import.meta.url))
  const before = readFileSync(docs, 'utf8')
  // From the sentence before the table to the last miss.
  const old = /^\d+ trials; (?:.*\n)*?\d+ misses:\n\n(?:- .*\n)*/m
  if (!old.test(before)) throw new Error(`${docs}: contains no table of trials`)
  writeFileSync(
    docs,
    before.replace(old, () => `${text}\n`),
  )
}
