#!/usr/bin/env node
// How many planted regressions (build, phase and role) and outliers the questions find in synthetic fleets, and what they find in flat ones:
// node scripts/fleet/seeds.mjs [seeds]
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { QUESTIONS } from '../../dist/datasets.js'
import { fleet } from './rows.mjs'

/** Roles of a decode call of examples/moe.ggtrace.gz, with their share of its time; 4 nodes of each. */
const ROLES = {
  Qcur: 0.1,
  Kcur: 0.08,
  FLASH_ATTN_EXT: 0.08,
  attn_out: 0.1,
  gate: 0.2,
  up: 0.2,
  down: 0.2,
  output: 0.04,
}
const callOf = (ns) =>
  Object.entries(ROLES).flatMap(([role, share], r) =>
    [0, 1, 2, 3].flatMap((n) =>
      [0, 1].map((worker) => ({ node: 4 * r + n, worker, role, op: role, dur_ns: (ns * share) / 4 })),
    ),
  )
const template = { prefill: Object.assign(callOf(900_000), { tokens: 16 }), decode: callOf(100_000) }

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-seeds-'))
const seeds = Number(process.argv[2] ?? 20)
for (const planted of [true, false]) {
  const count = { regressions: { found: 0, missed: 0, wrong: 0 }, outliers: { found: 0, missed: 0, wrong: 0 } }
  for (let seed = 1; seed <= seeds; seed++) {
    const [regressions, outliers] = planted ? [1, 3] : [0, 0]
    const made = fleet(template, { seed, runs: 240, regressions, outliers })
    const answers = await answersOf(made)
    const { truth } = made
    add(
      count.regressions,
      truth.regressions,
      answers.regressions,
      (of) => `${of.model ?? of.setup.split(' ')[0]} ${of.phase} ${of.build} ${of.role ?? of.most_by}`,
    )
    add(count.outliers, truth.outliers, answers.outliers, (of) => of.trace_id ?? of)
  }
  console.log(planted ? 'planted' : 'flat', count)
}
rmSync(folder, { recursive: true })

async function answersOf(made) {
  const rows = { trace: [], operator_sum: [], state: [], finding: [] }
  for (const { tables } of made.runs()) for (const name of Object.keys(rows)) rows[name].push(...tables[name])
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  for (const [name, of] of Object.entries(rows)) {
    const path = join(folder, `${name}.ndjson`)
    const empty = '{"trace_id": "", "rank": 1, "rule": "", "sentence": ""}'
    writeFileSync(path, of.length === 0 ? empty : of.map((row) => JSON.stringify(row)).join('\n'))
    await connection.run(
      `create table ${name} as select * from read_json('${path}', format = 'newline_delimited', sample_size = -1)`,
    )
  }
  const answer = async (name) => (await connection.runAndReadAll(QUESTIONS[name].sql)).getRowObjectsJS()
  const answers = { regressions: await answer('regressions'), outliers: await answer('outliers') }
  connection.closeSync()
  instance.closeSync()
  return answers
}

function add(count, truth, found, key) {
  const [expected, answered] = [truth, found].map((of) => new Set(of.map(key)))
  for (const one of expected) count[answered.has(one) ? 'found' : 'missed']++
  for (const one of answered) if (!expected.has(one)) count.wrong++
}
