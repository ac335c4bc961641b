import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import { writeDataset } from '../fleet/datasets.ts'
import { at, CLI, run, useFolder } from './helpers.ts'

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
  const csv = run(['ask', 'dataset', sql, '--format', 'csv'])
  expect(csv.stdout).toBe(`log,calls,many,odd\n"a ""b"", c\n=d",3,true,9007199254740993\n`)
  const table = run(['ask', 'dataset/', '--question', 'by-host'])
  expect(table).toMatchObject({ code: 0, stderr: expect.stringContaining('Time of a token by host') })
  expect(table.stdout).toContain('(0 rows)')
})

test('prints large results in little memory', async () => {
  const sql = "select i, 'row ' || i as name, i * 1.5 as value from range(2000000) as r (i)"
  for (const format of ['csv', 'json']) {
    const child = spawn(process.execPath, [CLI, 'ask', at('dataset'), sql, '--format', format], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    let lines = 0
    let peakKiB = 0
    for await (const piece of child.stdout as AsyncIterable<Buffer>) {
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++
      const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      if (kib !== undefined) peakKiB = Number(kib) // a process that has ended has none
    }
    expect(await ended).toEqual([0, null])
    expect(lines).toBe(2_000_000 + (format === 'csv' ? 1 : 0))
    expect(peakKiB).toBeLessThan(400 * 1024)
    expect(peakKiB).toBeGreaterThan(10 * 1024)
  }
}, 60_000)

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
