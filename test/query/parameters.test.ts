import { expect, test } from '@jest/globals'
import { SqlError } from '../../lib/query/errors.ts'
import { withParameters } from '../../lib/query/parameters.ts'

/** Values in place of the parameters of SQL. */

test('values become literals; texts, names and comments stay as they are', () => {
  const sql = `select ?, '?', "a?", ? -- ?\n, ? /* ? */ from t where x = ?`
  expect(withParameters(sql, ["it's", null, 2n ** 60n, new Uint8Array([1, 255])])).toBe(
    `select 'it''s', '?', "a?", null -- ?\n, 1152921504606846976 /* ? */ from t where x = x'01ff'`,
  )
  expect(withParameters('select :a, @b, $a, 1.5', { a: 0.1, b: true })).toBe('select 1e-1, 1, 1e-1, 1.5')
  expect(withParameters('select ?, ?, ?', [NaN, Infinity, -Infinity])).toBe('select null, 9e999, -9e999')
})

test('mistakes are errors of SQL', () => {
  const wrong = (sql: string, values: Parameters<typeof withParameters>[1]) => expect(() => withParameters(sql, values))
  wrong('select ?', []).toThrow(new SqlError('no value for the parameter 1'))
  wrong('select ?', [1, 2]).toThrow('2 values for 1 parameters')
  wrong('select :a', { b: 1 }).toThrow('no value for the parameter :a')
  wrong('select :a', { a: 1, b: 1 }).toThrow('no parameter is named b')
  wrong('select ?', ['\0']).toThrow('character of code 0')
})
