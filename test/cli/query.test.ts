import { readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { pathOf } from '../line/support.ts'
import { at, MOE, read, run, useFolder } from './helpers.ts'

useFolder()

beforeAll(() => {
  run([MOE, '-o', 'moe.pftrace'])
})

const CELLS = `select 9223372036854775807 as max, -9223372036854775808 as min, 9007199254740993 as odd, 0.1 as float,
  1e999 as infinite, null as none, '' as empty, 'a "b", c' as text, x'00ff' as blob, 1 as max`

const query = (...args: string[]) => {
  const { code, stdout, stderr } = run(['query', ...args])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

describe('formats', () => {
  test('json: integers are exact literals, BLOBs hexadecimal, columns of one name told apart', () => {
    const stdout = query('moe.pftrace', CELLS, '--format', 'json')
    expect(stdout).toMatch(
      '"max": 9223372036854775807, "min": -9223372036854775808, "odd": 9007199254740993, "float": 0.1',
    )
    expect(JSON.parse(stdout)).toEqual([
      {
        max: 2 ** 63,
        min: -(2 ** 63),
        odd: 2 ** 53,
        float: 0.1,
        infinite: Infinity,
        none: null,
        empty: '',
        text: 'a "b", c',
        blob: '00ff',
        max_2: 1,
      },
    ])
  })

  test('csv: RFC 4180; NULL is an empty field, an empty text is not', () => {
    expect(query('moe.pftrace', CELLS, '--format', 'csv')).toBe(
      'max,min,odd,float,infinite,none,empty,text,blob,max\n' +
        '9223372036854775807,-9223372036854775808,9007199254740993,0.1,Infinity,,"","a ""b"", c",00ff,1\n',
    )
    const lines = (...more: string[]) =>
      query('moe.pftrace', "select 'a' || char(10) || 'b' as x", '--format', 'csv', ...more)
    expect([lines(), lines('--csv-exact')]).toEqual(['x\na\\nb\n', 'x\n"a\nb"\n'])
  })

  test('table: aligned, numbers to the right', () => {
    const sql = "select 'role' as name, 9223372036854775807 as ns, 1/3.0 as ms union all select 'é', null, 2"
    expect(query('moe.pftrace', sql)).toBe(
      [
        'name                   ns           ms',
        '────  ───────────────────  ───────────',
        'role  9223372036854775807  0.333333333',
        'é                    NULL            2',
        '(2 rows)\n',
      ].join('\n'),
    )
  })

  test('table: what a terminal would obey is made visible', () => {
    const sql = "select char(27) || '[31m' || char(10) || 'x' as evil"
    expect(query('moe.pftrace', sql)).toMatch(/^\\x1b\[31m\\nx$/m)
  })

  test('no rows', () => {
    const sql = 'select name, ts from slice where 0'
    expect(query('moe.pftrace', sql)).toBe('name  ts\n────  ──\n(0 rows)\n')
    expect(query('moe.pftrace', sql, '--format', 'csv')).toBe('name,ts\n')
    expect(query('moe.pftrace', sql, '--format', 'json')).toBe('[]\n')
  })

  test('many rows', () => {
    const rows = JSON.parse(query('moe.pftrace', 'select id, ts, name from slice', '--format', 'json'))
    expect(rows.length).toBe(
      Number(query('moe.pftrace', 'select count(*) from slice', '--format', 'csv').split('\n')[1]),
    )
  })
})

describe('inputs', () => {
  const sql = "select count(*) as n from slice where category = 'operator'"
  const answer = 'n\n2664\n'

  test('a trace, a log, a compressed log, and any of them from stdin', () => {
    writeFileSync(at('moe.csv.gz'), gzipSync(readFileSync(MOE)))
    writeFileSync(at('moe.pftrace.gz'), gzipSync(read('moe.pftrace')))
    for (const file of [at('moe.pftrace'), MOE, at('moe.csv.gz'), at('moe.pftrace.gz')]) {
      expect(query(file, sql, '--format', 'csv')).toBe(answer)
      expect(run(['query', '-', sql, '--format', 'csv'], { input: readFileSync(file) }).stdout).toBe(answer)
    }
  })

  test('a log is converted with all details', () => {
    const tids =
      "select count(distinct extract_arg(arg_set_id, 'debug.tid')) as tids from slice where category = 'operator'"
    expect(query(MOE, tids, '--format', 'csv')).toBe('tids\n10\n')
  })

  test('several logs, on one clock, with the options of convert', () => {
    const scheduler = pathOf('perf-script/mono.txt')
    const rows = (...args: string[]) => JSON.parse(run(['query', MOE, ...args, '--format', 'json']).stdout)
    const sql = "select (select count(*) from sched) > 0 as s, count(*) as n from slice where category = 'operator'"
    expect(rows(scheduler, sql)).toEqual([{ s: 0, n: 2664 }]) // the threads of another process
    expect(rows(scheduler, '--all-threads', '--clock', `${scheduler}=+1ms`, sql)).toEqual([{ s: 1, n: 2664 }])
    const count =
      "select count(*) as n, min(extract_arg(arg_set_id, 'debug.tensor')) as tensor from slice where category = 'operator'"
    expect(rows('--tokens', '1', '--detail', 'names', count)).toEqual([{ n: 296, tensor: null }])
    expect(rows('--op-name', 'op', "select count(*) as n from slice where name = 'MUL_MAT'")[0].n).toBeGreaterThan(100)
  })

  test('options for logs are refused for a trace, and a trace together with others', () => {
    expect(run(['query', 'moe.pftrace', 'select 1', '--detail', 'full'])).toMatchObject({
      code: 1,
      stderr: 'error: --detail is for logs; moe.pftrace is a trace, or of no known log format\n',
    })
    expect(run(['query', MOE, 'moe.pftrace', 'select 1'])).toMatchObject({
      code: 1,
      stderr: 'error: moe.pftrace: is a trace, and only logs can be queried together\n',
    })
  })

  test('issues of a log are told, and can be asked for', () => {
    writeFileSync(at('cut.csv'), readFileSync(MOE).subarray(0, 200_000))
    const { code, stdout, stderr } = run(['query', 'cut.csv', "select name from slice where category = 'issue'"])
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: "warning: cut.csv: 2 issues; they are slices of category 'issue'\n",
    })
    expect(stdout).toMatch('torn record')
  })

  test("a trace of another kind that trace_processor knows (Chrome's JSON)", () => {
    writeFileSync(at('chrome.json'), '[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]')
    expect(query('chrome.json', 'select name, dur from slice', '--format', 'csv')).toBe('name,dur\na,2000\n')
  })

  test('a trace that was cut is refused by check, and can be asked as far as it goes', () => {
    writeFileSync(at('cut.pftrace'), read('moe.pftrace').subarray(0, 100_000))
    expect(query('cut.pftrace', 'select count(*) > 0 as ok from slice', '--format', 'csv')).toBe('ok\n1\n')
  })
})

describe('SQL', () => {
  test('from a file, from stdin, and with a comment first', () => {
    writeFileSync(at('one.sql'), '-- one\nselect 1 as one;\n')
    const csv = ['--format', 'csv']
    expect(query('moe.pftrace', '--file', 'one.sql', ...csv)).toBe('one\n1\n')
    expect(run(['query', 'moe.pftrace', '-', ...csv], { input: 'select 2 as two' }).stdout).toBe('two\n2\n')
    expect(query('moe.pftrace', '-- three\nselect 3 as three', ...csv)).toBe('three\n3\n')
    expect(query('moe.pftrace', 'create perfetto table t as select 4 as four; select * from t', ...csv)).toBe(
      'four\n4\n',
    )
  })

  test.each([
    [['moe.pftrace'], 'the SQL is missing\nhint: ggml2perfetto query moe.pftrace "select'],
    [['moe.pftrace', 'select 1', '--file', 'x'], 'two SQLs'],
    [['moe.pftrace', '--file', 'nope.sql'], 'nope.sql: cannot read: no such file'],
    [['-', '-'], 'stdin (-) can be read only once'],
    [['moe.pftrace', 'selec 1'], "syntax error near 'selec'\nline 1 column 1"],
    [['moe.pftrace', 'select x'], 'no such column: x'],
    [['moe.pftrace', 'select 1 where'], 'the SQL ends too early'],
    [['moe.pftrace', ''], 'No valid SQL to run'],
  ])('%j: an error', (args, message) => {
    const { code, stdout, stderr } = run(['query', ...args])
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(message) })
  })
})
