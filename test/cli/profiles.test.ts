import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ZERO_NS } from '../origin.ts'
import { at, read, run, useFolder } from './helpers.ts'

/** Traces of PyTorch's profiler, reports of Nsight Systems and scheduler events by the command line. */

useFolder()

const fixture = (path: string) => readFileSync(fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url)))

/** A trace of the profiler that says what it is behind its events only. */
const BEHIND = JSON.stringify({
  metadata: { num_errors: 0, more: 'x'.repeat(5000) },
  traceEvents: [{ ph: 'X', cat: 'cpu_op', name: 'aten::mm', pid: 7, tid: 7, ts: 123.456, dur: 2 }],
  baseTimeNanoseconds: 1_751_410_836_000_000_000,
})

beforeAll(() => {
  writeFileSync(at('behind.json'), BEHIND)
  writeFileSync(at('h100.json'), gunzipSync(fixture('chrome-json/h100.json.gz')))
  writeFileSync(at('report.sqlite'), gunzipSync(fixture('nsys/two-processes.sqlite.gz')))
  writeFileSync(at('sched.dat'), gunzipSync(fixture('trace-dat/mono-v6.dat.gz')))
  writeFileSync(at('states.txt'), fixture('profinfer-ktrace/real.txt'))
  writeFileSync(
    at('run.ggtrace.gz'),
    readFileSync(fileURLToPath(new URL('../../examples/moe.ggtrace.gz', import.meta.url))),
  )
})

test('what a file tells behind its events is known when it is converted, too', () => {
  expect(run(['behind.json', '-o', 'behind.pftrace']).code).toBe(0)
  const { stdout } = run(['query', 'behind.pftrace', `select ts + ${ZERO_NS} as ns from slice`, '--format', 'csv'])
  expect(stdout).toBe('ns\n1751410836000123456\n')
})

test('one of a kind is told as one', () => {
  expect(run(['info', 'h100.json']).stdout).toMatch(/holds +16 kernels, 1 memory copy, 20 GPU API calls, 415 slices$/m)
})

describe('check takes a trace of the profiler', () => {
  test('as the trace that it is, wherever its events begin', () => {
    expect(run(['check', 'behind.json'])).toMatchObject({ code: 0, stderr: '' })
  })

  test('and says where it was cut', () => {
    writeFileSync(at('cut.json'), BEHIND.slice(0, -80))
    expect(run(['check', 'cut.json'])).toMatchObject({ code: 1, stderr: expect.stringContaining('truncated after') })
  })
})

test.each([['h100.json'], ['report.sqlite']])('info %s tells the clock and how long it was', (name) => {
  const { stdout } = run(['info', name])
  expect(stdout).toMatch(/^ {2}clock {5}CLOCK_REALTIME, from \d{19} ns\n {2}duration {2}.*\n {2}holds {5}\d+ /m)
})

test('how a profile came on the clock of a log is told by info and when it is converted', () => {
  const clock = ['--clock', 'h100.json=@3917s']
  const told = run(['info', 'run.ggtrace.gz', 'h100.json', ...clock])
    .stdout.split('\n\n')
    .join('\n')
  expect(told).toMatch(/^ {2}put on {4}CLOCK_MONOTONIC\n.*by .* to its first time\n.*as .*as given: begins @3917s$/m)
  expect(run(['run.ggtrace.gz', 'h100.json', ...clock]).stdout).toMatch(/slices\n {2}clock: as given: begins @3917s$/m)
})

test.each([
  ['a trace of the profiler', ['h100.json']],
  ['a report', ['report.sqlite']],
  ['scheduler events', ['sched.dat']],
  ['scheduler events as JSON', ['sched.dat', '--to', 'json']],
  ['states of threads', ['states.txt']],
])('the next command that is told of %s has an answer', (_, args) => {
  const next = /^next: ggml2perfetto query (\S+) "(.*)"$/m.exec(run(args).stdout)!
  const { code, stdout } = run(['query', next[1]!, next[2]!, '--format', 'csv'])
  expect(code).toBe(0)
  expect(stdout.trim().split('\n').length).toBeGreaterThan(2)
  expect(read(next[1]!).length).toBeGreaterThan(0)
})
