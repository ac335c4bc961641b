import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, run, useFolder } from './helpers.ts'

/** Files of options: what is none of them is an error that names the option, the file and the place. */

useFolder()

const LOG = new URL('../recorded/prompt.ggtrace.gz', import.meta.url).pathname

const OPTIONS = [
  ['--peaks', ['stats', LOG]],
  ['--kernels', ['what-if', LOG, '--threads', '1']],
  ['--op-table', ['info', LOG]],
  ['--color-csv', ['dag', LOG]],
] as const

const FILES = {
  'empty.json': '',
  'deep.json': '['.repeat(200_000),
  'nested.json': `[${'['.repeat(20_000)}${']'.repeat(20_000)}]`,
  'schema.json': `{"schema": ${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
  'object.json': '{"schema": {"toString": 1, "valueOf": 1}, "cpu": {"toString": 1}}',
  'prototype.json': '{"__proto__": {"cpu": "x"}, "constructor": 1}',
  'lines.json': '{"cpu":\nerror: all is lost',
  'long.json': `{"cpu": 1, "schema": "${'x'.repeat(1e6)}"}`,
}

beforeAll(() => {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(at(name), text)
})

describe.each(OPTIONS)('%s', (option, command) => {
  const failed = (file: string) => {
    const { code, stdout, stderr } = run([...command, option, file])
    expect([file, code, stdout]).toEqual([file, 1, ''])
    const [first = '', ...more] = stderr.trimEnd().split('\n')
    expect(first).toMatch(option === '--op-table' ? /^error: --op-table "?/ : `error: ${option} ${file}: `)
    // A known table and a hint may follow, and nothing of the file.
    expect(more.join('\n')).not.toMatch(/error:/)
    return stderr
  }

  test.each(Object.keys(FILES))('%s', (file) => {
    expect(failed(file).length).toBeLessThan(1500)
  })

  test('without an end', () => {
    expect(failed('/dev/zero')).toContain('expected a file of at most 64 MiB, found more')
  })

  test('a folder', () => {
    expect(failed('/')).toMatch(/is a directory|illegal operation/)
  })
})

test('an Analysis, for stats, compare and what-if', () => {
  for (const file of ['schema.json', 'object.json', 'long.json', 'deep.json'])
    for (const command of [['stats'], ['compare', LOG, '--with'], ['what-if', LOG, '--threads', '1', '--with']]) {
      const { code, stderr } = run([...command, file])
      expect([command[0], file, code, stderr.length < 1500]).toEqual([command[0], file, 1, true])
      expect(stderr).toMatch(`error: ${file}: `)
    }
})
