import { writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { inParts, someOf } from '../long.ts'
import { at, MOE, run, useFolder } from './helpers.ts'

useFolder()

/** Names that no ggml op has, so that whose table was used can be seen. */
const NAMES = Array.from({ length: 110 }, (_, i) => `OP_${i}`)

const opsWith = (...args: string[]): string[] => {
  const { ops } = JSON.parse(run(['info', MOE, '--json', ...args]).stdout)
  return ops.map(({ op }: { op: string }) => op)
}

test('a table that is known by name', () => {
  expect(opsWith('--op-table', 'v0.5.0')).toEqual(opsWith())
  expect(opsWith('--op-table', '2026-01')).not.toEqual(opsWith())
})

const TABLES = [
  ['a JSON array', JSON.stringify(NAMES)],
  ['a JSON object with one table', JSON.stringify({ about: 'mine', tables: { mine: NAMES } }, null, 2)],
  ['one name per line', `${NAMES.join('\n')}\n`],
  ['lines of an enum', NAMES.map((name) => `    GGML_OP_${name},\r\n`).join('')],
] as const
inParts(test).each(someOf(TABLES, 4, 1))('a table from a file: %s', (_, text) => {
  writeFileSync(at('ops'), text)
  expect(opsWith('--op-table', 'ops').slice(0, 2)).toEqual(['OP_30', 'OP_29'])
  const sql = "select count(*) > 0 as ok from slice where name = 'Vcur OP_29'"
  expect(run(['query', MOE, sql, '--op-table', 'ops', '--format', 'csv']).stdout).toBe('ok\n1\n')
})

test.each([
  ['[1, 2]', 'element 0 is 1'],
  ['["NONE", "D U P"]', 'element 1 is "D U P"'],
  ['[]', 'no op names in it'],
  ['{"tables": {}}', 'no table in it'],
  ['{"tables": {"a": [], "b": []}}', '2 tables in it ("a", "b")'],
  ['{"ops": []}', 'not an array of op names'],
  ['[1', 'not valid JSON: '],
  ['NONE\n\nDUP\n', 'line 2 is ""'],
  ['\x7fELF\x02\x01', 'line 1 is "\x7fELF'],
])('a file that is no table: %j', (text, what) => {
  writeFileSync(at('ops'), text)
  const { code, stderr } = run([MOE, '--op-table', 'ops'])
  const visible = what.replaceAll('\x7f', '\\x7f')
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(`error: --op-table ops: ${visible}`) })
  expect(stderr).toMatch(/expected a JSON array of op names, .*or one op name per line/)
})

test('neither a table nor a file: an error that lists the known tables', () => {
  const { code, stderr } = run(['info', MOE, '--op-table', 'nope'])
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: --op-table "nope": .*known tables:\n {2}v0\.5\.0 .*\n {2}2026-01 /)
})
