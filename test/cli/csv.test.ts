import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COMMANDS } from '../../bin/commands.ts'
import { GgtraceWriter } from '../../lib/core.ts'
import fc from '../seed.ts'
import { at, run, useFolder } from './helpers.ts'
import { NAME, RAW } from './hostile.ts'

/** All tables as CSV are of one kind: a spreadsheet may open them, and with `--csv-exact` they have the exact texts. */

useFolder()

/** Texts that a spreadsheet computes, and some that it does not. */
const FORMULAS = [
  '=1+1',
  '+1+1',
  '-1+1',
  '@SUM(A1)',
  '=cmd|"/C calc"!A0',
  '\t=1',
  '\r=1',
  '\n=1',
  ' =1',
  '＝1',
  '-',
  '-x',
  '+x',
]
const PLAIN = ['a=1', '1-1', '-1', '+1.5', '-.5e-3', 'a', '', '"', 'a,b', 'ä']

const TEXTS = [...FORMULAS, ...PLAIN, NAME]

beforeAll(() => {
  const writer = new GgtraceWriter({ originNs: 1_000n })
  writer.type(0, 'f32')
  writer.run({ level: 'op' }, { monotonic: 1n, boottime: 1n, realtime: 1n })
  const thread = writer.thread(1, 0)
  const texts = TEXTS.filter((text) => text !== '')
  thread.token({ startNs: 0, endNs: 100 * texts.length, call: 0, tokens: 1 })
  thread.call = 0
  for (const [i, name] of texts.entries()) {
    writer.op(i + 1, name)
    const tensor = writer.tensor({ name, op: i + 1, type: 0, ne: [1, 1, 1, 1], nb: [4, 4, 4, 4] })
    thread.operator({ tensor, startNs: 100 * i + 10, endNs: 100 * i + 20 })
  }
  writer.end(100 * texts.length)
  writeFileSync(at('formulas.ggtrace'), writer.take())
})

/** The cells of a table, as RFC 4180 defines them. */
function cellsOf(csv: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^,"\r\n]*))(,|\n|$)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!)
    if (end === '\n') rows.push([])
    else if (end === '') break
  }
  return rows.slice(0, -1)
}

/** Is a field executed, or does it contain what is not visible? */
const isDangerous = (cell: string) =>
  RAW.test(cell) ||
  /[\t\n]/.test(cell) ||
  (/^\s*[=+\-@＝＋－＠]/.test(cell) && !/^[+-]?[\d.]+(?:e[+-]?\d+)?$/i.test(cell))

const selectOf = (texts: readonly string[]) =>
  `select ${texts.map((text, i) => `cast(x'${Buffer.from(text).toString('hex')}' as text) as c${i}`).join(', ')}`

describe('query --format csv', () => {
  const query = (sql: string, ...more: string[]) =>
    run(['query', 'formulas.ggtrace', sql, '--format', 'csv', ...more]).stdout

  test.each(FORMULAS.map((text) => [JSON.stringify(text), text] as const))('%s is no formula', (_, text) => {
    const [, [cell]] = cellsOf(query(selectOf([text]))) as [string[], string[]]
    expect(isDangerous(cell!)).toBe(false)
    expect(cellsOf(query(selectOf([text]), '--csv-exact'))).toEqual([['c0'], [text]])
  })

  test('all other texts, and numbers, are as they are', () => {
    expect(cellsOf(query(selectOf(PLAIN)))[1]).toEqual(PLAIN)
    const numbers = query("select -1 as a, -0.5 as b, 9007199254740993 as c, -1e300 as d, null as e, '' as f")
    expect(numbers).toBe('a,b,c,d,e,f\n-1,-0.5,9007199254740993,-1e+300,,""\n')
  })

  test('names of columns are texts, too', () => {
    expect(query('select 1 as "=1+1", 2 as "-2"')).toBe("'=1+1,-2\n1,2\n")
    expect(query('select 1 as "=1+1", 2 as "-2"', '--csv-exact')).toBe('=1+1,-2\n1,2\n')
  })

  test('any texts: nothing is dangerous; exact ones are the same', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.stringMatching(/^[=+@\-\t\r\n ,"'1ae.\u202e]{0,6}$/),
    )
    const texts = fc.sample(text, 2000).map((text) => Buffer.from(text.replaceAll('\0', '')).toString())
    for (let start = 0; start < texts.length; start += 500) {
      const part = texts.slice(start, start + 500)
      expect(cellsOf(query(selectOf(part)))[1]!.filter(isDangerous)).toEqual([])
      expect(cellsOf(query(selectOf(part), '--csv-exact'))[1]).toEqual(part)
    }
  })

  test('a terminal shows no control characters, exact or not', () => {
    const shown = run(['query', 'formulas.ggtrace', selectOf([NAME]), '--format', 'csv', '--csv-exact'], {
      columns: 80,
    })
    expect(RAW.exec(shown.stdout)).toBe(null)
  })
})

describe('stats --csv', () => {
  const stats = (...more: string[]) => run(['stats', 'formulas.ggtrace', '--csv', ...more]).stdout

  test('has the same rule', () => {
    const rows = cellsOf(stats('--by', 'op'))
    expect(rows.length).toBeGreaterThan(FORMULAS.length)
    expect(rows.flat().filter(isDangerous)).toEqual([])
    const ops = cellsOf(stats('--by', 'op', '--csv-exact')).map(([op]) => op)
    expect(FORMULAS.filter((text) => !ops.includes(text))).toEqual([])
    expect(stats('--by', 'role,op').split('\n').length).toBe(stats('--by', 'role,op').trimEnd().split('\n').length + 1)
  })

  test('is an option of each command that prints CSV', () => {
    const commands = Object.keys(COMMANDS).map((name) => [name, run(['help', name]).stdout] as const)
    const printing = commands.filter(([, help]) => /\s--csv\s|\| csv \|/.test(help)).map(([name]) => name)
    expect(printing).toEqual(['stats', 'query'])
    expect(commands.filter(([, help]) => /\s--csv-exact\s/.test(help)).map(([name]) => name)).toEqual(printing)
  })
})

test('--csv-exact is for CSV', () => {
  const error = (...args: string[]) => run(args).stderr
  expect(error('query', 'formulas.ggtrace', 'select 1', '--csv-exact')).toBe(
    'error: --csv-exact: expected --format csv, too\n',
  )
  expect(error('stats', 'formulas.ggtrace', '--csv-exact')).toBe('error: --csv-exact: expected --csv, too\n')
  expect(error('stats', 'formulas.ggtrace', '--json', '--csv-exact')).toBe('error: --csv-exact: expected --csv, too\n')
})
