import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type OpenDataset, openDataset } from '../../lib/datasets.ts'
import { inLong } from '../long.ts'
import { writeDataset } from './datasets.ts'

/** Each table function and each pragma of DuckDB, called by SQL of a user: no setting changes, and no file is written. */

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-test-'))
const root = join(folder, 'dataset')
let dataset: OpenDataset
beforeAll(async () => {
  await writeDataset(root, { trace: [{ trace_id: '00', log: 'a', exporter: '0' }] })
  dataset = await openDataset(root)
})
afterAll(() => {
  dataset.close()
  rmSync(folder, { recursive: true })
})

const textsOf = async (sql: string) => (await dataset.query(sql)).rows.map((row) => row.join('='))
const settings = () => textsOf('select name, value from duckdb_settings() order by name')
const files = () => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
const functions = (kind: string) =>
  textsOf(`select distinct function_name from duckdb_functions() where function_type in (${kind}) order by 1`)

const OUTPUT = join(folder, 'written')
const ARGUMENTS = [
  '',
  `'${OUTPUT}'`,
  `storage = 'file', storage_path = '${OUTPUT}'`,
  `'json', save_location = '${OUTPUT}'`,
  '1',
  '1, 1',
]
const ALLOWED =
  /^(generate_series|range|repeat|unnest|json_(each|tree)|glob|histogram(_values)?|(read_parquet|parquet_(scan|schema|(file_|kv_)?metadata))|duckdb_(columns|functions|settings|tables|types|views)|pragma_(table_info|version))$/

/** Runs it, whatever comes of it. */
const attempt = (sql: string) =>
  dataset.query(sql).then(
    () => 'rows',
    (error: Error) => error.message,
  )

inLong(test)(
  'a table function that is not known to read only is refused before it is bound, wherever it is',
  async () => {
    const [before, written] = [await settings(), files()]
    const names = await functions("'table', 'table_macro'")
    expect(names.length).toBeGreaterThan(80)
    for (const name of names) {
      for (const given of ARGUMENTS) {
        const call = `"${name}"(${given})`
        for (const sql of [
          `from ${call}`,
          `with a as (from ${call}) select 1`,
          `select 1 where 1 in (from MAIN.${call})`,
        ]) {
          const found = await attempt(sql)
          if (!ALLOWED.test(name)) expect([sql, found]).toEqual([sql, expect.stringContaining('is not allowed')])
        }
      }
    }
    expect(await settings()).toEqual(before)
    expect(files()).toEqual(written)
  },
)

test('no pragma, call or other statement runs', async () => {
  const [before, written] = [await settings(), files()]
  const names = await functions("'pragma', 'table'")
  for (const name of names) {
    for (const sql of [
      `pragma ${name}`,
      `pragma ${name}('${OUTPUT}')`,
      `pragma ${name} = '${OUTPUT}'`,
      `call ${name}()`,
    ])
      expect([sql, await attempt(sql)]).toEqual([
        sql,
        expect.stringMatching(/expected a SELECT|syntax error|[Pp]arser/),
      ])
  }
  for (const name of (await settings()).map((text) => text.split('=')[0]!))
    expect(await attempt(`set ${name} = '1'`)).toContain('expected a SELECT')
  expect(await settings()).toEqual(before)
  expect(files()).toEqual(written)
})

test('what is no statement, and two', async () => {
  for (const sql of ['', ' \n']) expect(await attempt(sql)).toBe('the SQL is empty')
  expect(await attempt('-- none')).toBe('expected one statement, found 0')
  expect(await attempt('select 1; select 2')).toBe('expected one statement, found 2')
  expect(await attempt('select from')).not.toContain('native')
})

test('views, subqueries and descriptions are read', async () => {
  const all = ['from trace', 'describe trace', 'summarize trace', 'from range(3) r(i), trace']
  for (const sql of all) expect([sql, await attempt(sql)]).toEqual([sql, 'rows'])
})
