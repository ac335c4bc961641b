#!/usr/bin/env node
/**
 * Measures the questions of `ask` on a large synthetic fleet: npm run bench:questions [-- runs, default 1000 [decode calls a run, default 155]]
 * A run has some 50 000 operators with the default. 20 runs are made with them, into which the other runs' names, builds, hosts and times
 * are put: their files of calls, operators, sums and states are copies with other ids, which take as long to read. Each question is asked three
 * times, in a process of its own; printed are the best wall time and its time of the CPUs. The goal for 1 000 runs is 2 s.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDataset, QUESTIONS } from 'ggml2perfetto/datasets'
import { tablePath } from 'ggml2perfetto/tables'
import { fleet } from '../fleet/rows.mjs'
import { templateOf, writeRun } from '../fleet.mjs'

/** Runs whose operators are made. */
const MADE = 20
/** Calls of the others, of which only sums are used. */
const FEW_CALLS = 4

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

function measure(folder) {
  console.log('                    wall s   CPU s')
  for (const question of ['(opening)', ...Object.keys(QUESTIONS)]) {
    const values = Object.values(best(folder, question)).slice(0, 2)
    console.log(question.padEnd(18) + values.map((value) => value.toFixed(2).padStart(8)).join(''))
  }
}

/** Files of a run whose operators were made: id, and bytes by table. */
function filesOf(folder, traceId) {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name.endsWith(`${traceId}.parquet`))
  return files.map((name) => ({ table: name.split('/')[0], traceId, bytes: readFileSync(join(folder, name)) }))
}

/** Writes a file of a run as that of another one: ids are of one length, and are nowhere compressed. */
function copy({ table, traceId, bytes }, folder, { day, traceId: newId }) {
  const copied = Buffer.from(bytes)
  for (let at = copied.indexOf(traceId); at >= 0; at = copied.indexOf(traceId, at + 1))
    copied.write(newId, at, 'latin1')
  const path = join(folder, tablePath(table, day, newId))
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, copied)
}

async function make(folder, runs, decodeCalls) {
  const template = await templateOf()
  const made = []
  const madeAt = join(folder, 'made')
  for (const run of fleet(template, { seed: 2, runs: MADE, decodeCalls }).runs()) {
    await writeRun(madeAt, run)
    made.push(filesOf(madeAt, run.traceId).filter(({ table }) => /^(call|operator|operator_sum|state)$/.test(table)))
  }
  rmSync(madeAt, { recursive: true })
  let number = 0
  for (const run of fleet(template, { runs, decodeCalls: FEW_CALLS, withOperators: false }).runs()) {
    for (const file of made[number++ % MADE]) copy(file, folder, run)
    const { trace, finding } = run.tables
    await writeRun(folder, { ...run, tables: { trace, finding } })
  }
}

async function main(runs = 1000, decodeCalls = 155) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-questions-'))
  try {
    const start = performance.now()
    await make(folder, runs, decodeCalls)
    const seconds = (performance.now() - start) / 1e3
    const dataset = await openDataset(folder)
    const { rows } = await dataset.query('select count(*), count(distinct trace_id) from operator')
    dataset.close()
    const [operators, ids] = rows[0]
    if (ids !== runs) throw new Error(`expected the operators of ${runs} runs, found those of ${ids}`)
    console.log(`${runs} runs with ${operators} operators, made in ${seconds.toFixed(0)} s`)
    measure(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [first, ...rest] = process.argv.slice(2)
if (first === '--ask') await ask(...rest)
else await main(...[first, ...rest].filter(Boolean).map(Number))
