#!/usr/bin/env node
/**
 * Measures the questions of `ask` on a large synthetic fleet: npm run bench:questions [-- runs, default 1000 [decode calls a run, default 155]]
 * A run has some 50 000 operators with the default. At most 50 runs are made; the others are copies of their files with other ids, which take
 * as long to read. Each question is asked three times, in a process of its own; printed are the best wall time and its time of the
 * CPUs, and both for 1 000 runs: what exceeds the time to open the dataset, scaled. The goal is ≤ 2 s.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDataset, QUESTIONS } from 'ggml2perfetto'

const RUNS_MEANT = 1000
/** Runs that are made; more are copies. */
const MADE_MAX = 50

async function ask(folder, question) {
  const before = { wall: performance.now(), cpu: process.cpuUsage() }
  const dataset = await openDataset(folder)
  const { rows } = await dataset.query(QUESTIONS[question]?.sql ?? 'select 1')
  dataset.close()
  const { user, system } = process.cpuUsage(before.cpu)
  console.log(
    JSON.stringify({ s: (performance.now() - before.wall) / 1e3, cpu: (user + system) / 1e6, rows: rows.length }),
  )
}

function best(folder, question) {
  const command = [fileURLToPath(import.meta.url), '--ask', folder, question]
  const tries = [1, 2, 3].map(() => JSON.parse(execFileSync(process.execPath, command, { encoding: 'utf8' })))
  return tries.reduce((a, b) => (b.s < a.s ? b : a))
}

function measure(folder, runs) {
  const opening = best(folder, 'nothing')
  const scaled = (value, base) => base + ((value - base) * RUNS_MEANT) / runs
  console.log('                    wall s   CPU s   of 1 000 runs: wall s   CPU s')
  const line = (name, { s, cpu }) => {
    const values = [s, cpu, scaled(s, opening.s), scaled(cpu, opening.cpu)].map((value) => value.toFixed(2))
    console.log(name.padEnd(18) + [8, 8, 24, 8].map((width, i) => values[i].padStart(width)).join(''))
  }
  line('(opening)', opening)
  for (const question of Object.keys(QUESTIONS)) line(question, best(folder, question))
}

/** Copies runs of a dataset until it has `runs`: their files with other ids, which are as long and are nowhere compressed. */
function copyRuns(folder, runs) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.parquet'))
  const ids = [...new Set(files.map((path) => basename(path, '.parquet')))]
  for (let i = ids.length; i < runs; i++) {
    const id = ids[i % ids.length]
    const copy = randomBytes(16).toString('hex')
    for (const path of files.filter((path) => path.endsWith(`${id}.parquet`))) {
      const bytes = readFileSync(join(folder, path))
      for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at)) bytes.write(copy, at, 'latin1')
      writeFileSync(join(folder, dirname(path), `${copy}.parquet`), bytes)
    }
  }
}

async function main(runs = RUNS_MEANT, decodeCalls = 155) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-questions-'))
  try {
    const fleet = fileURLToPath(new URL('../fleet.mjs', import.meta.url))
    const made = Math.min(runs, MADE_MAX)
    const start = performance.now()
    execFileSync(process.execPath, [fleet, folder, '--runs', `${made}`, '--decode-calls', `${decodeCalls}`])
    copyRuns(folder, runs)
    const seconds = (performance.now() - start) / 1e3
    const dataset = await openDataset(folder)
    const { rows } = await dataset.query(
      'select count(*), count(distinct trace_id), (select sum(operators) from trace) from operator',
    )
    dataset.close()
    const [operators, ids, expected] = rows[0]
    if (ids !== runs || operators !== Number(expected)) throw new Error(`copies are wrong: ${rows}`)
    console.log(`${runs} runs with ${operators} operators, made in ${seconds.toFixed(0)} s`)
    measure(folder, runs)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [first, ...rest] = process.argv.slice(2)
if (first === '--ask') await ask(...rest)
else await main(...[first, ...rest].filter(Boolean).map(Number))
