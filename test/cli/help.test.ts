import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { writeDataset } from '../fleet/datasets.ts'
import { at, MOE, run, useFolder } from './helpers.ts'

useFolder()

beforeAll(async () => {
  copyFileSync(MOE, at('run.csv'))
  mkdirSync(at('of-others'))
  writeFileSync(at('of-others/manifest'), 'mine')
  await writeDataset(at('dataset'), { trace: [{ trace_id: '00', log: 'a', workers: 2, calls: 3, exporter: '0' }] })
})

/** Signs of no column or two, which bin/string-width.ts does not know. */
const WIDE = /[\p{Mark}\p{Format}\p{Emoji_Presentation}\u1100-\u115f\u2e80-\uffff]/u

const DOCS = fileURLToPath(new URL('../../docs/', import.meta.url))
const commands = () =>
  [...run(['--help']).stdout.matchAll(/^ {2}ggml2perfetto ([a-z]+) [<[]/gm)].map((match) => match[1]!)

describe('--help', () => {
  test('lists at most ten commands', () => {
    expect(commands()).toContain('record')
    expect(commands().length).toBeLessThanOrEqual(10)
  })

  test('of each command: at most 40 lines of 80 columns, and no list of formats', () => {
    for (const command of [...commands(), 'doctor', 'check', 'peaks', 'nvtx']) {
      const { code, stdout } = run([command, '--help'])
      const lines = stdout.trimEnd().split('\n')
      expect({ command, code, isShort: lines.length <= 40 }).toEqual({ command, code: 0, isShort: true })
      expect(lines.filter((line) => line.length > 80)).toEqual([])
      expect(stdout).toContain(`\nAll options, docs: ggml2perfetto help ${command}\n`)
      expect(stdout).not.toContain('tegrastats')
      expect(stdout).not.toMatch(WIDE)
    }
  })

  test('after an input is that of convert', () => {
    expect(run(['run.csv', '--help']).stdout).toBe(run(['convert', '--help']).stdout)
  })
})

describe('help', () => {
  test('of a command: all its options, then its page', () => {
    const { stdout } = run(['help', 'compare'])
    expect(stdout).toContain('--op-table')
    expect(run(['compare', '--help']).stdout).not.toContain('--op-table')
    expect(stdout.endsWith(readFileSync(join(DOCS, 'compare.md'), 'utf8'))).toBe(true)
    expect(run(['help', 'export']).stdout).not.toContain('--worker')
  })

  test('lists topics, and prints the page of each', () => {
    const { stdout } = run(['help'])
    expect(stdout.startsWith(run(['--help']).stdout)).toBe(true)
    expect(stdout).toMatch(/TTFT .*first token/)
    const [, list] = /help <topic>\n([\s\S]+?)\n\n/.exec(stdout)!
    const topics = list!.split('\n').map((line) => line.trim().split(' ')[0]!)
    const pages = [...readdirSync(DOCS), ...readdirSync(join(DOCS, 'reference'))].filter((name) => name.endsWith('.md'))
    expect(pages).toEqual(expect.arrayContaining(topics.map((topic) => `${topic}.md`)))
    for (const topic of topics) {
      const path = [`${topic}.md`, `reference/${topic}.md`].find((name) => existsSync(join(DOCS, name)))!
      const page = readFileSync(join(DOCS, path), 'utf8').trimEnd()
      expect([topic, run(['help', topic]).stdout.trimEnd().endsWith(page)]).toEqual([topic, true])
    }
    expect(run(['help', 'docs/reference/formats.md']).stdout).toBe(run(['help', 'formats']).stdout)
    expect(run(['help', 'docs/opening.md']).stdout).toBe(run(['help', 'opening']).stdout)
  })

  test.each([
    ['opne', 'error: opne: no such command, and no such topic\nhint: did you mean ggml2perfetto help open?\n'],
    ['qqqqq', 'error: qqqqq: no such command, and no such topic\nhint: ggml2perfetto help lists all\n'],
  ])('of %s', (topic, message) => expect(run(['help', topic])).toMatchObject({ code: 1, stdout: '', stderr: message }))
})

test.each([
  [
    ['info', 'run.csv'],
    ['stats', '--contents', 'run.csv'],
  ],
  [
    ['info', 'run.csv', '--json'],
    ['stats', 'run.csv', '--json', '--contents'],
  ],
  [
    ['ask', 'dataset', 'select log from trace'],
    ['query', 'dataset', 'select log from trace'],
  ],
  [
    ['ask', '-q', 'outliers', '--show-sql'],
    ['query', '-q', 'outliers', '--show-sql'],
  ],
  [['sql'], ['query', '--package']],
  [
    ['info', '--help'],
    ['stats', '--help'],
  ],
])('the older command line %j is %j', (older, line) => {
  const { pid: _, bytes: __, ...printed } = run(older)
  expect(printed.code).toBe(0)
  expect(run(line)).toMatchObject(printed)
})

test.each([
  [['stats', 'run.csv', '--contents', '--by', 'op'], '--contents: prints no statistics; found --by'],
  [['query', '--package', 'of-others'], 'of-others/manifest: is not of the package ggml, and would be lost'],
  [
    ['export', 'run.csv', '--to', 'arrow', '--table', 'operator', '-o', 'of-others/manifest'],
    'of-others/manifest: is no file of this program, which would be lost',
  ],
  [['query', '--package', 'folder', 'run.csv'], '--package: expected no inputs, found run.csv'],
  [['query', 'dataset', 'select 1', '--detail', 'full'], '--detail is for logs; dataset is a dataset'],
  [['query', 'dataset', 'select 1', 'select 2'], 'select 2: one argument too many'],
])('%j', (args, message) => expect(run(args).stderr).toContain(`error: ${message}`))
