import { readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { ISSUES } from '../../lib/model/issues.ts'
import { openTrace } from '../../lib/node.ts'
import { at, MOE, names, read, run, shell, useFolder, WARM_UP } from './helpers.ts'

useFolder()

const log = readFileSync(MOE)

/** The first column of a query's result on a trace. */
const ask = async (name: string, sql: string) => {
  const trace = await openTrace(at(name))
  const { rows } = trace.query(sql)
  trace.close()
  return rows.map(([cell]) => cell)
}

const operators = async (name: string) => (await ask(name, "select count(*) from slice where category = 'operator'"))[0]

test('a log becomes <input>.pftrace in the current folder, and the summary tells what it was', async () => {
  const { code, stdout, stderr } = run([MOE])
  expect({ code, stderr, names: names() }).toEqual({ code: 0, stderr: '', names: ['moe.csv.pftrace'] })
  expect(stdout).toMatch(
    /: 9 calls: prefill 16 tokens, decode 8 tokens\n {2}TTFT 26\.1 ms · TPOT 1\.57 ms · 637 tok\/s decode\n/,
  )
  expect(stdout).toMatch(
    / {2}2 664 operators on 2 workers · 9 graphs · 6 layers · no losses; not drawn: 1 030 barrier waits below 1 µs .*\n(why: .*\n( {5}.*\n)+)?wrote moe\.csv\.pftrace \(\d+ KiB\)/,
  )
  expect(await operators('moe.csv.pftrace')).toBe(2664)
})

test('the next command, as the summary prints it, works', () => {
  const next = /^next: ggml2perfetto query (\S+) "(.*)"$/m.exec(run([MOE]).stdout)!
  const { code, stdout } = run(['query', next[1]!, next[2]!])
  expect({ code, first: stdout.split('\n')[2] }).toEqual({ code: 0, first: expect.stringMatching(/MUL_MAT +[\d.]+$/) })
})

test('-o names the trace; an older file is replaced, but only by a complete trace', () => {
  writeFileSync(at('out.pftrace'), 'older')
  writeFileSync(at('bad.log'), 'no log at all')
  expect(run(['bad.log', '--force', '-o', 'out.pftrace']).code).toBe(1)
  expect(String(read('out.pftrace'))).toBe('older')
  expect(run([MOE, '--force', '--output', 'out.pftrace']).code).toBe(0)
  expect(run(['check', 'out.pftrace']).code).toBe(0)
})

test('a trace whose name ends in .gz is compressed, and read as it is by the other commands', async () => {
  run([MOE, '-o', 'plain.pftrace'])
  const { code, stdout } = run([MOE, '-o', 'packed.pftrace.gz'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^wrote packed\.pftrace\.gz \([\d.]+ KiB\)/m)
  expect(gunzipSync(read('packed.pftrace.gz')).equals(read('plain.pftrace'))).toBe(true)
  expect(read('packed.pftrace.gz').length * 3).toBeLessThan(read('plain.pftrace').length)
  expect(await operators('packed.pftrace.gz')).toBe(2664)
  expect(run(['check', 'packed.pftrace.gz']).code).toBe(0)
  const next = /^next: ggml2perfetto query (\S+) "(.*)"$/m.exec(stdout)!
  expect(run(['query', next[1]!, next[2]!]).stdout.split('\n')[2]).toMatch(/MUL_MAT +[\d.]+$/)
})

test('no compressed trace is left behind where a log cannot be read on', () => {
  const before = names()
  writeFileSync(at('bad.log'), gzipSync(log).subarray(0, -9_000))
  expect(run(['bad.log', '--strict', '-o', 'none.pftrace.gz']).code).toBe(1)
  expect(names().filter((name) => !before.includes(name) && name !== 'bad.log')).toEqual([])
})

test('stdin to stdout gives the same bytes as a file, and the summary goes to stderr', () => {
  run([MOE, '-o', 'file.pftrace'])
  const { code, bytes, stderr } = run(['-', '-o', '-'], { input: log })
  expect({ code, same: bytes.equals(read('file.pftrace')) }).toEqual({ code: 0, same: true })
  expect(stderr).toMatch(/^decode 637 tok\/s; .*\nstdin: 9 calls/)
  expect(stderr).not.toMatch(/next:|wrote/)
})

test('from stdin the trace is called stdin.pftrace, from run.csv.gz run.csv.pftrace', () => {
  writeFileSync(at('run.csv.gz'), gzipSync(log))
  expect(run(['-'], { input: log }).stdout).toMatch(/wrote stdin\.pftrace/)
  expect(run(['run.csv.gz']).stdout).toMatch(/wrote run\.csv\.pftrace/)
  expect(read('run.csv.pftrace').equals(read('stdin.pftrace'))).toBe(true)
})

test('several logs go on one timeline, in a trace named after the first', async () => {
  writeFileSync(at('a.csv'), log)
  const { stdout } = run(['a.csv', MOE])
  expect(stdout).toMatch(/^decode 637 tok\/s; .*\na\.csv: 9 calls/)
  expect(stdout).toMatch(/moe\.csv: 9 calls/)
  expect(stdout).toMatch(/wrote a\.csv\.pftrace/)
  expect(await operators('a.csv.pftrace')).toBe(2 * 2664)
})

test('--quiet prints nothing, but issues are told', () => {
  writeFileSync(at('cut.csv'), log.subarray(0, 200_000))
  const [whole, cut] = [run([MOE, '-q']), run(['cut.csv', '--quiet'])]
  expect([whole.stdout, whole.stderr, cut.stdout]).toEqual(['', '', ''])
  expect(cut.stderr).toBe('warning: cut.csv: 2 issues, on the Issues track\n')
})

test('a log that was cut is salvaged: exit code 0, and the issue with its place', async () => {
  writeFileSync(at('cut.csv'), log.subarray(0, 200_000))
  const { code, stdout } = run(['cut.csv'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/4 calls: .* · 1 loss; 1 other issue; not drawn: 413 barrier waits [^\n]*\n/s)
  const [torn, inCall] = [ISSUES['torn-record'].hint, ISSUES['log-ends-in-call'].hint]
  expect(stdout).toMatch(/! torn record: line 2142, byte 199989 \(0x30d35\): expected 28 fields, found 2\n/)
  expect(stdout).toContain(`found 2\n    hint: ${torn}\n  ! log ends within a call: `)
  expect(stdout).toContain(`\n    hint: ${inCall}\n  the Issues track shows where\n`)
  expect(await ask('cut.csv.pftrace', "select name from slice where category = 'issue'")).toEqual([
    'torn record',
    'log ends within a call',
  ])
})

test('--strict stops at the first issue and writes nothing', () => {
  writeFileSync(at('cut.csv'), log.subarray(0, 200_000))
  const { code, stderr } = run(['cut.csv', '--strict', '-o', 'strict.pftrace'])
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^error: cut\.csv: .*torn record/) })
  expect(names().filter((name) => name.includes('strict'))).toEqual([])
  expect(run([MOE, '--strict', '-o', 'strict.pftrace']).code).toBe(0)
})

test('--detail: the more, the larger', () => {
  const sizes = ['names', 'shapes', 'full'].map((detail) => run([MOE, '-o', '-', '--detail', detail]).bytes.length)
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b))
  expect(new Set(sizes).size).toBe(3)
  expect(run([MOE, '-o', '-']).bytes.length).toBe(sizes[1])
})

test.each([
  ['role', 'ffn_moe_up MUL_MAT_ID'],
  ['op', 'MUL_MAT_ID'],
  ['tensor', 'ffn_moe_up-3'],
])('--op-name %s: an operator is called %s', async (naming, name) => {
  run([MOE, '-o', 'named.pftrace', '--op-name', naming])
  const sql = `select count(*) > 0 from slice where category = 'operator' and name = '${name}'`
  expect(await ask('named.pftrace', sql)).toEqual([1])
})

test.each([
  ['3..5', 3],
  ['7', 1],
  ['2..', 7],
  ['0', 1],
  ['0..8', 9],
  ['5..1000', 4],
])('--tokens %s: %d calls are in the trace, and the summary says so', async (range, calls) => {
  const { stdout } = run([MOE, '-o', 'some.pftrace', '--tokens', range])
  expect(stdout).toMatch(`only the calls ${range} are in the trace; the figures are of the whole log`)
  expect(await ask('some.pftrace', "select count(*) from slice where category = 'token'")).toEqual([calls])
})

test.each(['x', '', '5..3', '-1', '1-3', '..3', '3..5..7', '1.5'])(
  '--tokens "%s": an error that shows what would do',
  (range) => {
    const { code, stderr } = run([MOE, `--tokens=${range}`])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: --tokens .*expected 3\.\.5 .*7 .*2\.\. /),
    })
  },
)

test('--tokens beyond the last call: an error, and no trace', () => {
  const { code, stderr } = run([MOE, '-o', 'none.pftrace', '--tokens', '9..'])
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'error: --tokens 9..: nothing to convert, the log has the calls 0..8\n',
  })
  expect(names()).not.toContain('none.pftrace')
})

test('--from names the format; an unknown one is an error that lists them', () => {
  expect(run([MOE, '-o', '-', '--from', 'profinfer-csv']).bytes.equals(run([MOE, '-o', '-']).bytes)).toBe(true)
  const { code, stderr } = run([MOE, '--from', 'nope'])
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^error: no format is called "nope"; known formats:\n {2}ggtrace .*\n( {2}.*\n)* {2}profinfer-csv .*\n( {2}.*\n)* {2}tensor-trace /,
  )
})

test('a warm-up call is excluded from the figures, and that is said', () => {
  expect(run([WARM_UP]).stdout).toMatch(/: 2 calls: prefill 5 tokens, decode 1 token, 1 warm-up call excluded\n/)
})

test('a log that does not tell when calls end: the summary says what its times mean', () => {
  expect(run([WARM_UP]).stdout).toMatch(/\n {2}times end at the start of the last operator: /)
})

test('names with blanks, quotes and a leading dash', () => {
  writeFileSync(at("it's a run.csv"), log)
  writeFileSync(at('-x.csv'), log)
  expect(run(["it's a run.csv"]).stdout).toMatch(`query 'it'\\''s a run.csv.pftrace' "`)
  expect(run(['--', '-x.csv']).stdout).toMatch('query ./-x.csv.pftrace "')
})

test('a pipe by its path as input, a device as output', () => {
  const { code, stdout } = shell('cat $MOE | $CLI /dev/stdin -o /dev/null')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^decode 637 tok\/s; .*\n\/dev\/stdin: 9 calls/),
  })
  expect(run(['check', '/dev/null']).stderr).toBe('error: /dev/null: the input is empty (0 bytes)\n')
})

test('a log and its companions become one trace; each is told of', async () => {
  const buffer = '"buffer_id":93901530271744,"size":4096,"name":"CPU_Compute","usage":2'
  writeFileSync(at('buffer_stats.jsonl'), `{"timestamp_ms":600604880.5,"event":"alloc",${buffer}}\n`)
  const tensors = [{ name: 'output.weight', offset_start: 1048576, offset_end: 1114112, shape: [64, 1024] }]
  writeFileSync(at('memory-map.json'), JSON.stringify({ model_name: 'tiny', total_size_bytes: 1114112, tensors }))
  const { code, stdout, stderr } = run([WARM_UP, 'buffer_stats.jsonl', 'memory-map.json', '-o', 'all.pftrace'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(
    /\nbuffer_stats\.jsonl: 1 backend buffer\nmemory-map\.json: 1 weight of tiny\nwrote all\.pftrace /,
  )
  const weight = "select display_value from args where display_value glob 'output.weight*' limit 1"
  expect(await ask('all.pftrace', weight)).toEqual(['output.weight 64×1024'])
  expect(await ask('all.pftrace', "select name from track where name glob '*allocated'")).toEqual([
    'CPU_Compute: allocated',
  ])
  expect(run(['info', 'memory-map.json']).stdout).toMatch(/ {2}holds {3}1 weight of tiny\n\nno losses/)
  expect(run(['memory-map.json']).stderr).toMatch(/^error: memory-map\.json: contains nothing to draw/)
})
