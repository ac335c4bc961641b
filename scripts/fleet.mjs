#!/usr/bin/env node
// Writes a synthetic fleet as a dataset, and prints what is planted in it: node scripts/fleet.mjs dataset/ --runs 200 --decode-calls 8
// Operators are those of a real log, examples/moe.ggtrace.gz; the files are written by the library's own writer.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { exportRun, openDataset } from '../dist/datasets.js'
import { TABLES, Tables, tablePath } from '../dist/tables.js'
import { fleet } from './fleet/rows.mjs'

const LOG = fileURLToPath(new URL('../examples/moe.ggtrace.gz', import.meta.url))
const compression = { codec: 'gzip', compress: (bytes) => gzipSync(bytes, { level: 4 }) }

/** The operators of one prefill and one decode call of a log. */
export async function templateOf(log = LOG) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-fleet-'))
  try {
    await exportRun(log, folder, 'fleet')
    const dataset = await openDataset(folder)
    const callOf = async (phase) => {
      const first = `select min(call) from call where phase = '${phase}'`
      const { columns, rows } = await dataset.query(
        `select * exclude (trace_id, day) from operator where call = (${first}) order by node, worker`,
      )
      return rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])))
    }
    const [prefill, decode] = [await callOf('prefill'), await callOf('decode')]
    const { rows } = await dataset.query(`select n_tokens from call where phase = 'prefill' limit 1`)
    dataset.close()
    return { prefill: Object.assign(prefill, { tokens: rows[0][0] }), decode }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Writes a run; that of `trace` last, as `export` does. */
export async function writeRun(root, { day, traceId, tables }) {
  const files = new Tables({ traceId, compression, createdBy: 'scripts/fleet.mjs' })
  for (const [table, rows] of Object.entries(tables)) {
    const columns = Object.entries(TABLES[table].columns)
    const blank = Object.fromEntries(columns.map(([name, { type }]) => [name, type === 'boolean' ? false : null]))
    for (const row of rows) files.add(table, { ...blank, ...row })
  }
  const pieces = new Map()
  for await (const { table, bytes } of files.finish()) pieces.set(table, [...(pieces.get(table) ?? []), bytes])
  for (const [table, bytes] of pieces) {
    const path = join(root, tablePath(table, day, traceId))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, Buffer.concat(bytes))
  }
}

async function main() {
  const numbers = ['seed', 'runs', 'hosts', 'builds', 'setups', 'regressions', 'outliers', 'slow-hosts', 'decode-calls']
  const { values, positionals } = parseArgs({
    options: Object.fromEntries(numbers.map((name) => [name, { type: 'string' }])),
    allowPositionals: true,
  })
  if (positionals.length !== 1) throw new Error('expected the folder of the dataset')
  const camel = (name) => name.replace(/-(.)/, (_, letter) => letter.toUpperCase())
  const options = Object.fromEntries(Object.entries(values).map(([name, value]) => [camel(name), Number(value)]))
  const { truth, runs } = fleet(await templateOf(), options)
  for (const run of runs()) await writeRun(positionals[0], run)
  console.log(JSON.stringify(truth, null, 2))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
