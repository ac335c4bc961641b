import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { at, CLI, MOE, NODE, read, useFolder } from './helpers.ts'

/** Conversions and reports with Windows' rules for paths (windows.mjs), where nothing native is. */

const HOOKS = fileURLToPath(new URL('windows.mjs', import.meta.url))

useFolder()
beforeAll(() => {
  for (const name of ['work', 'tmp', 'logs/new', 'out']) mkdirSync(at(name), { recursive: true })
  copyFileSync(MOE, at('logs/new/moe.csv'))
  copyFileSync(MOE, at('work/other.csv'))
})

function onWindows(...args: string[]) {
  const env = { ...process.env, WINDOWS_C: at('.').replace(/\/\.$/, ''), HOME: 'C:\\Users\\me', XDG_CACHE_HOME: '' }
  const [node, ...flags] = NODE
  const command = [...flags, '--no-warnings', '--import', HOOKS, CLI, ...args]
  const { status, stdout, stderr } = spawnSync(node, command, { cwd: at('work'), env, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

const operatorsIn = async (trace: string) => {
  const open = await openTrace(read(trace))
  const [[count]] = open.query("select count(*) from slice where category = 'operator'").rows as [[number]]
  open.close()
  return count
}

test('an output is in the current folder, or where it is named', async () => {
  expect(onWindows('..\\logs\\new\\moe.csv')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/wrote moe\.csv\.pftrace/),
  })
  expect(onWindows('C:\\logs\\new\\moe.csv', '-o', 'C:\\out\\run.pftrace')).toMatchObject({ code: 0 })
  expect(await Promise.all(['work/moe.csv.pftrace', 'out/run.pftrace'].map(operatorsIn))).toEqual([2664, 2664])
  expect([readdirSync(at('work')).sort(), readdirSync(at('out'))]).toEqual([
    ['moe.csv.pftrace', 'other.csv'],
    ['run.pftrace'],
  ])
})

test('a folder as output is refused, with the name of a file in it; so is a file that is not there', () => {
  expect(onWindows('C:/logs/new/moe.csv', '-o', 'C:\\out')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      'C:\\out: cannot write: is a directory\nhint: name a file, such as C:\\out\\moe.csv.pftrace',
    ),
  })
  expect(onWindows('C:\\logs\\none.csv')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('C:\\logs\\none.csv: cannot read: no such file'),
  })
})

test('an input is meant by the name of its file', () => {
  const both = ['C:\\logs\\new\\moe.csv', 'other.csv']
  const { code, stdout, stderr } = onWindows(...both, '--clock', 'moe.csv=+1ms', '-o', '..\\out\\both.pftrace')
  expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('  clock: as given: +1ms')])
})

test('a report, a dataset and a page of the docs', () => {
  expect(onWindows('report', 'C:\\logs\\new\\moe.csv', '-o', '..\\out\\run.html')).toMatchObject({ code: 0 })
  expect(readFileSync(at('out/run.html'), 'utf8')).toMatch(/<h1>.*moe/)
  expect(onWindows('export', '..\\logs\\new\\moe.csv', '-o', 'C:\\data\\set', '--day', '2026-01-31')).toMatchObject({
    code: 0,
  })
  const tables = readdirSync(at('data/set'))
  expect(tables).toEqual(expect.arrayContaining(['call', 'operator', 'trace']))
  expect(readdirSync(at('data/set/trace'), { recursive: true })).toContainEqual(
    expect.stringMatching(/^v=\d+\/day=2026-01-31\/\w+\.parquet$/),
  )
  expect(onWindows('help', 'tutorial')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^# /) })
})
