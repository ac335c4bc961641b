import { beforeAll, expect, test } from '@jest/globals'
import { writeDataset } from '../fleet/datasets.ts'
import { at, run, useFolder } from './helpers.ts'

useFolder()

const NAME = 'a "b", c\n=d'

beforeAll(async () => {
  const row = { trace_id: '00', log: NAME, workers: 2, calls: 3, exporter: '0' }
  await writeDataset(at('dataset'), { trace: [row] })
})

test('prints rows as a table, CSV and JSON', () => {
  const sql = 'select log, calls, calls > 2 as many, 9007199254740993 as odd from trace'
  const json = run(['ask', 'dataset', sql, '--format', 'json'])
  expect(json.stdout).toContain('"many": true, "odd": 9007199254740993')
  expect(JSON.parse(json.stdout)[0]).toMatchObject({ log: NAME, calls: 3 })
  const csv = run(['ask', 'dataset', sql, '--format', 'csv', '--csv-exact'])
  expect(csv.stdout).toBe(`log,calls,many,odd\n"a ""b"", c\n=d",3,true,9007199254740993\n`)
  const table = run(['ask', 'dataset/', '--question', 'by-host'])
  expect(table).toMatchObject({ code: 0, stderr: expect.stringContaining('Time of a token by host') })
  expect(table.stdout).toContain('(0 rows)')
})

test('a result that fails at a later row is an error', () => {
  const sql = "select cast(case when i = 2999999 then 'x' else '1' end as int) as n from range(3000000) as r (i)"
  const { code, stderr } = run(['ask', 'dataset', sql, '--format', 'csv'])
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: Conversion Error/) })
})

test('what cannot be asked is an error with a hint', () => {
  expect(run(['ask', 'dataset', 'drop table trace'])).toMatchObject({
    code: 1,
    stderr: 'error: expected a SELECT, found another statement\nhint: datasets are read-only for SQL\n',
  })
  expect(run(['ask', 'dataset', 'select 1', '-q', 'by-build']).stderr).toContain('found --question and SQL')
  expect(run(['ask', 'none', 'select 1']).stderr).toBe('error: none: cannot read: no such file\n')
  expect(run(['ask', '-q', 'outliers', '--show-sql']).stdout).toMatch(/^with run as \(/)
})
