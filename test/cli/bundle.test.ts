import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from '@jest/globals'
import { inLong } from '../long.ts'
import { at, folder, names, read, run, shell, useFolder } from './helpers.ts'

useFolder()

const file = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)))

beforeAll(() => {
  writeFileSync(at('run.ggtrace.gz'), file('test/recorded/outside-graphs.ggtrace.gz'))
  writeFileSync(at('perf.data'), gunzipSync(file('test/fixtures/perf-data/mono.data.gz')))
  writeFileSync(at('own.data'), gunzipSync(file('test/fixtures/perf-data/own-clock.data.gz')))
  writeFileSync(at('sched.txt'), file('test/fixtures/ftrace/trace.txt'))
  writeFileSync(at('sched.dat'), gunzipSync(file('test/fixtures/trace-dat/mono-v6.dat.gz')))
})

const sql = 'select (select count(*) from slice), (select count(*) from perf_sample), (select count(*) from sched)'
const counts = (path: string) => run(['query', path, sql, '--format', 'csv']).stdout.trim().split('\n')[1]

test('--bundle writes one file that check and query take, and says what is in it', () => {
  const { code, stdout, stderr } = run(['run.ggtrace.gz', '--bundle', 'perf.data'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('perf.data: packed as it is, on CLOCK_MONOTONIC; the trace is on its clock')
  expect(stdout).toMatch(/wrote run\.ggtrace\.zip \(.* KiB\): drag it into/)
  run(['run.ggtrace.gz', '-q', '-o', 'alone.pftrace'])
  const [slices] = counts('alone.pftrace')!.split(',')
  expect(counts('run.ggtrace.zip')).toBe(`${slices},114,0`)
  expect(run(['check', 'run.ggtrace.zip']).stderr).toMatch(/an archive, .* but on import:\n {2}perf_record_skipped/)
  expect(run(['run.ggtrace.gz', '--bundle', 'sched.txt', '-q', '-o', 'sched.zip']).code).toBe(0)
  expect(counts('sched.zip')).toBe(`${slices},0,100`)
})

inLong(test)('the archive is one for every other tool, and may go through a pipe', () => {
  expect(shell('$CLI run.ggtrace.gz --bundle perf.data -o - > piped.zip').code).toBe(0)
  expect(shell('$CLI run.ggtrace.gz --bundle perf.data -o plain.zip -q').code).toBe(0)
  expect(read('piped.zip')).toEqual(read('plain.zip'))
  const listed = shell('unzip -t plain.zip && unzip -p plain.zip perf.data | cmp - perf.data')
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('No errors detected')])
})

test('a file that is packed and converted, too, is drawn once and sampled once', () => {
  const { code, stdout } = run([
    'run.ggtrace.gz',
    'perf.data',
    '--all-threads',
    '--bundle',
    'perf.data',
    '-o',
    'both.zip',
  ])
  expect(code).toBe(0)
  const switches = Number(/([\d ]+) switches on 2 CPUs/.exec(stdout)![1]!.replaceAll(' ', ''))
  const [, samples, cpuSlices] = counts('both.zip')!.split(',').map(Number)
  expect(samples).toBe(114)
  expect(cpuSlices).toBe(switches)
})

test.each<[string, string[], RegExp]>([
  ['a clock that is not known', ['--bundle', 'own.data'], /own\.data: does not record .*\n.*--clock own\.data=mono/],
  [
    'what Perfetto does not read',
    ['--bundle', 'sched.dat'],
    /does not read trace-dat files\nhint: to draw it, give it/,
  ],
  ['a file that is not there', ['--bundle', 'none.data'], /none\.data: cannot read: no such file/],
  ['stdin', ['--bundle', '-'], /--bundle -: a file is needed/],
  ['Chrome JSON', ['--bundle', 'perf.data', '--to', 'json'], /not --to json/],
  ['a compressed output', ['--bundle', 'perf.data', '-o', 'x.zip.gz'], /is compressed; found -o x\.zip\.gz/],
  ['the file as output', ['--bundle', 'perf.data', '-o', 'perf.data'], /perf\.data: is the input itself/],
  ['two tales', ['sched.dat', '--bundle', 'sched.txt'], /so does sched\.dat: each would appear twice/],
  ['two files', ['--bundle', 'perf.data', '--bundle', 'own.data'], /--bundle is given 2 times/],
])('%s is refused, and nothing is written', (_, args, message) => {
  const before = names()
  const { code, stderr } = run(['run.ggtrace.gz', ...args], { cwd: folder })
  expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
  expect(names()).toEqual(before)
})

test('only a log goes with it', () => {
  expect(run(['perf.data', '--bundle', 'perf.data']).stderr).toMatch(/is the only input\nhint: ggml2perfetto <log>/)
})
