#!/usr/bin/env node
/**
 * Measures the questions of `ask` on a large synthetic fleet: npm run bench:questions [-- runs, default 200 [decode calls a run, default 155]]
 * A run has some 50 000 operators with the default. Each question is asked three times, in a process of its own; printed are the best
 * wall time and its time of the CPUs, and both for 1 000 runs: what exceeds the time to open the dataset, scaled. The goal is ≤ 2 s.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDataset, QUESTIONS } from 'ggml2perfetto'

const RUNS_MEANT = 1000

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

async function main(runs = 200, decodeCalls = 155) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-questions-'))
  try {
    const fleet = fileURLToPath(new URL('../fleet.mjs', import.meta.url))
    execFileSync(process.execPath, [fleet, folder, '--runs', `${runs}`, '--decode-calls', `${decodeCalls}`])
    const dataset = await openDataset(folder)
    const { rows } = await dataset.query('select count(*) from operator')
    dataset.close()
    console.log(`${runs} runs with ${rows[0][0]} operators`)
    measure(folder, runs)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [first, ...rest] = process.argv.slice(2)
if (first === '--ask') await ask(...rest)
else await main(...[first, ...rest].filter(Boolean).map(Number))
