import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { CLICKHOUSE_SETTINGS, clickHouseTables, openDataset, QUESTIONS } from '../../lib/datasets.ts'
import { TABLES } from '../../lib/tables.ts'
import { byHyparquet, LOGS, tablesIn, texts } from '../tables/of-logs.ts'
import { writeMixedDataset } from './datasets.ts'
import { smallFleet } from './fleets.ts'

/** `npm install chdb` is ClickHouse as a library, 541 MB: no dependency. */
function chdb(): { Session: new () => { query(sql: string, format?: string): string; cleanup(): void } } | undefined {
  try {
    return createRequire(import.meta.url)('chdb')
  } catch {
    return undefined
  }
}

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-clickhouse-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Both round halves, but ClickHouse to even digits. */
const rounded = (rows: unknown): unknown =>
  JSON.parse(JSON.stringify(rows, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(2)) : value)))

/** Rows in the order of the file, numbers to their last digit. */
const AS_WRITTEN = `settings max_threads = 1, output_format_json_quote_64bit_integers = 1, output_format_json_quote_denormals = 1,
  schema_inference_use_cache_for_file = 0`

const clickHouse = chdb()
const whereInstalled = clickHouse ? test : test.skip

describe('ClickHouse', () => {
  whereInstalled(
    'answers the questions as DuckDB does (skipped where chdb is not installed)',
    async () => {
      const { rows } = smallFleet({ seed: 7, runs: 80, builds: 4, hosts: 4, setups: 1, regressions: 1, outliers: 1 })
      await writeMixedDataset(folder, rows)
      const dataset = await openDataset(folder)
      const session = new clickHouse!.Session()
      session.query('create database fleet')
      session.query('use fleet')
      for (const table of clickHouseTables(`file('${folder}/{files}', 'Parquet')`)) session.query(table)
      const found: Record<string, unknown> = {}
      const expected: Record<string, unknown> = {}
      for (const [name, { sql }] of Object.entries(QUESTIONS)) {
        expected[name] = (await dataset.query(sql)).rows
        found[name] = JSON.parse(session.query(`${sql}\n${CLICKHOUSE_SETTINGS}`, 'JSONCompact')).data
      }
      const all = `select ${Object.keys(TABLES.operator_sum.columns).join(', ')} from operator_sum order by trace_id, phase, role, op`
      expected['sums'] = (await dataset.query(all)).rows
      found['sums'] = JSON.parse(session.query(all, 'JSONCompact')).data
      session.cleanup()
      dataset.close()
      expect(rounded(found)).toEqual(rounded(expected))
      expect(expected['regressions']).toHaveLength(1)
      expect(expected['sums']).toHaveLength(rows.operator_sum!.length)
    },
    600_000,
  )

  whereInstalled(
    'reads each file of each log as another reader does (skipped where chdb is not installed)',
    async () => {
      const session = new clickHouse!.Session()
      const file = join(folder, 'table.parquet')
      let count = 0
      for (const path of LOGS) {
        const made = await tablesIn(path).catch(() => undefined)
        for (const [table, pieces] of made?.files ?? []) {
          const bytes = Buffer.concat(pieces)
          writeFileSync(file, bytes)
          const found = JSON.parse(
            session.query(`select * from file('${file}', Parquet) ${AS_WRITTEN}`, 'JSONCompact'),
          ).data
          expect({ path, table, rows: texts(found) }).toEqual({ path, table, rows: texts(await byHyparquet(bytes)) })
          count++
        }
      }
      session.cleanup()
      expect(count).toBeGreaterThan(300)
    },
    600_000,
  )

  test('tables have the types of the columns', () => {
    expect(clickHouseTables("file('dataset/{files}', 'Parquet')").find((sql) => sql.includes('expert'))).toMatch(
      /^create table expert engine = Memory as select \* from file\('dataset\/expert\/v=1\/\*\/\*.parquet', 'Parquet', 'trace_id Nullable\(String\), .*expert Nullable\(Int64\)'\)$/,
    )
    expect(() => clickHouseTables('file(x)')).toThrow(/expected a table function/)
  })
})
