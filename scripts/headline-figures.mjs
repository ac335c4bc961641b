/**
 * Compares headline figures with those that programs print themselves: runs programs of Debian's llama.cpp and whisper.cpp packages and hosts
 * from npm under the recorder, and prints a table: figure, the program's own, ours, and by how much they differ.
 *   node scripts/headline-figures.mjs [--only PATTERN] [--json]
 * Exit code 1 if a figure differs by more than 1 %, or by more than 2 % where its definition differs, which the table says. A figure of a program
 * is that of one run; as its own times contain moments in which other programs had the CPU between its clock and the recorder's, a run that
 * differs more is repeated, and the table shows how often (`runs`).
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { analyze } from '../dist/index.js'
import { inputOf } from '../dist/node.js'
import { NotAvailable } from './compatibility/runs.mjs'
import { makePlaces } from './headline-figures/places.mjs'
import { programs } from './headline-figures/programs.mjs'

const LIMIT = 0.01
const LIMIT_OF_OTHER_DEFINITIONS = 0.02
const TRIES = 5
const HEAD = ['program', 'figure', 'its own', 'ours', 'differs', 'runs', 'definition']

const { values } = parseArgs({ options: { only: { type: 'string' }, json: { type: 'boolean', default: false } } })

const differenceOf = ({ own, ours }) => (own === ours ? 0 : own > 0 && ours > 0 ? ours / own - 1 : NaN)
const isWithin = (row) => Math.abs(differenceOf(row)) <= (row.definition ? LIMIT_OF_OTHER_DEFINITIONS : LIMIT)

/** The rows of a program: of the first run in which all figures agree, else of the last. */
async function rowsOf({ name, run, figures }, places) {
  for (let tries = 1; ; tries++) {
    const log = join(places.folder, 'run.ggtrace')
    await rm(log, { force: true })
    const printed = await run(places, log)
    const rows = figures(printed, await analyze(inputOf(log), { series: ['calls'] })).map((row) => ({
      program: name,
      ...row,
      runs: tries,
    }))
    if (rows.every(isWithin) || tries === TRIES) return rows
  }
}

const threeDigits = (value) => (Number.isFinite(value) ? Number(value.toPrecision(4)).toString() : 'none')
const cellsOf = (row) => {
  if (row.missed) return [row.program, row.missed, '', '', '', '', '']
  const { program, figure, own, ours, runs, definition = '', remark = '' } = row
  const notes = [definition, remark].filter((note) => note !== '').join('; ')
  return [
    program,
    figure,
    threeDigits(own),
    threeDigits(ours),
    `${(100 * differenceOf(row)).toFixed(2)} %`,
    runs,
    notes,
  ]
}
const lineOf = (cells) => `| ${cells.join(' | ')} |`

async function main() {
  execFileSync('make', ['-s', '-C', new URL('../native', import.meta.url).pathname], { stdio: ['ignore', 2, 2] })
  const folder = await mkdtemp(join(tmpdir(), 'ggml2perfetto-headline-'))
  const rows = []
  const places = await makePlaces(folder)
  try {
    for (const program of programs.filter(({ name }) => new RegExp(values.only ?? '').test(name))) {
      try {
        rows.push(...(await rowsOf(program, places)))
      } catch (error) {
        const missed = error instanceof NotAvailable ? `not available: ${error.message}` : `failed: ${error.message}`
        rows.push({ program: program.name, missed: missed.split('\n')[0], isFailed: !(error instanceof NotAvailable) })
      }
      console.error(`${program.name}: ${rows.at(-1).missed ?? 'compared'}`)
    }
  } finally {
    await places.clean()
    await rm(folder, { recursive: true, force: true })
  }
  console.log(
    values.json
      ? JSON.stringify(rows, null, 2)
      : [HEAD, HEAD.map(() => '---'), ...rows.map(cellsOf)].map(lineOf).join('\n'),
  )
  for (const row of rows.filter((row) => row.isFailed || (!row.missed && !isWithin(row)))) {
    console.error(`headline figures: ${row.program}: ${row.missed ?? `${row.figure} differs by more than its limit`}`)
    process.exitCode = 1
  }
}

await main()
